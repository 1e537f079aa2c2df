//! Who made a change, for people.

use maud::{Markup, html};
use svc_core::accounts::keys::{ApiKey, KeyId};
use svc_core::accounts::tenants::Tenant;
use svc_core::error::Error;

use crate::dashboard::context::Context;
use crate::dashboard::pages::filters;

/// The number of keys in the filter: the newest ones.
const MAX_KEYS: usize = 100;

/// What the actors of an account are called.
pub(super) struct Actors<'a> {
    cx: &'a Context<'a>,
    tenant: &'a Tenant,
    keys: Vec<ApiKey>,
    /// The actors of the changes that are shown.
    seen: Vec<String>,
}

impl<'a> Actors<'a> {
    pub(super) async fn new(cx: &'a Context<'a>, tenant: &'a Tenant, mut seen: Vec<String>) -> Result<Self, Error> {
        seen.extend(cx.query.given("actor").map(str::to_owned));
        let keys = cx.svc.account(tenant.id).keys().list().await?;
        Ok(Self { cx, tenant, keys, seen })
    }

    fn key(&self, actor: &str) -> Option<&ApiKey> {
        let id: KeyId = actor.strip_prefix("key:")?.parse().ok()?;
        self.keys.iter().find(|key| key.id == id)
    }

    /// Returns what people call an actor.
    pub(super) fn name(&self, actor: &str) -> String {
        if let Some(key) = self.key(actor) {
            return key_name(key);
        }
        match actor.split_once(':') {
            Some(("dashboard", person)) => person.to_owned(),
            Some(("cli", user)) => format!("{user} with svc"),
            Some(("platform_key", _)) => "the platform API".to_owned(),
            Some(("key", id)) => format!("key {id}"),
            _ => match actor {
                "system" => "the service".to_owned(),
                "sender" => "the webhook sender".to_owned(),
                "unknown" => "not known".to_owned(),
                other => other.to_owned(),
            },
        }
    }

    /// Returns what people call an actor. A key is linked.
    pub(super) fn render(&self, actor: &str) -> Markup {
        match self.key(actor) {
            Some(key) => html! {
                a href=(self.cx.url(&format!("/keys#key-{}", key.id))) { (key_name(key)) }
                div.soft { "API key" }
            },
            None => html! { (self.name(actor)) },
        }
    }

    /// Returns the options of the filter: the keys and the members of the account, what else acts, and who is shown.
    pub(super) async fn options(&self, cx: &Context<'_>) -> Result<Markup, Error> {
        let members = cx.svc.account(self.tenant.id).members().list().await?;
        let keys = self.keys.iter().rev().take(MAX_KEYS).map(|key| format!("key:{}", key.id));
        let members = members.iter().map(|member| format!("dashboard:{}", member.email));
        let others = ["system", "sender"].map(str::to_owned);
        let mut actors: Vec<String> = keys.chain(members).chain(others).collect();
        for actor in &self.seen {
            if !actors.contains(actor) {
                actors.push(actor.clone());
            }
        }
        let any = std::iter::once((String::new(), "Everyone".to_owned()));
        let named = actors.into_iter().map(|actor| {
            let name = self.name(&actor);
            let name = if self.key(&actor).is_some() { format!("{name} (key)") } else { name };
            (actor, name)
        });
        Ok(filters::options(cx.query.text("actor"), any.chain(named)))
    }
}

fn key_name(key: &ApiKey) -> String {
    key.name.clone().unwrap_or_else(|| format!("{}…", key.prefix))
}
