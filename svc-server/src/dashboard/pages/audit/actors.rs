//! The author of a change, for people.

use svc_core::Svc;
use svc_core::accounts::actor::split_tool;
use svc_core::accounts::apps::{App, AppId};
use svc_core::accounts::keys::{ApiKey, KeyId};
use svc_core::error::Error;
use svc_core::values::TenantId;

use crate::dashboard::pages::apps::ConnectedApps;
use crate::dashboard::pages::filters;
use crate::dashboard::prelude::*;

/// The number of keys and of apps in the filter: the newest keys, and the oldest apps.
const MAX_KEYS: usize = 100;
/// The prefix of an app in the text of an actor.
const APP: &str = "app:";

/// The names of the actors of an account.
pub(super) struct Actors {
    keys: Vec<ApiKey>,
    connected: ConnectedApps,
    /// The apps that are not connected any more.
    others: Vec<App>,
    /// The actors of the changes that are shown.
    seen: Vec<String>,
}

impl Actors {
    /// Looks up the names of those who made changes, `seen`, and of the apps that changes are about.
    pub(super) async fn new(svc: &Svc, tenant: TenantId, seen: Vec<String>, about: Vec<AppId>) -> Result<Self, Error> {
        let keys = svc.account(tenant).keys().list().await?;
        let connected = ConnectedApps::of(svc, tenant).await?;
        // Only those that the log has: nobody learns the name of an app by its id.
        let mut ids: Vec<AppId> = seen.iter().filter_map(|actor| app_id(actor)).chain(about).collect();
        ids.retain(|id| connected.app(*id).is_none());
        ids.sort_unstable();
        ids.dedup();
        let mut others = Vec::new();
        for id in ids {
            others.extend(if_found(svc.apps().get(id).await)?);
        }
        Ok(Self { keys, connected, others, seen })
    }

    /// Returns the app that acted, whatever tool it has called. `None` for others, and for an app that was deleted.
    fn app(&self, actor: &str) -> Option<&App> {
        let id = app_id(actor)?;
        self.connected.app(id).or_else(|| self.others.iter().find(|app| app.id == id))
    }

    /// Returns the name of an app that changes are about. `None` if it was deleted.
    pub(super) fn name_of_app(&self, id: &str) -> Option<String> {
        self.app(&format!("{APP}{id}")).map(name_of)
    }

    fn key(&self, actor: &str) -> Option<&ApiKey> {
        let id: KeyId = split_tool(actor).0.strip_prefix("key:")?.parse().ok()?;
        self.keys.iter().find(|key| key.id == id)
    }

    /// Returns what people call an actor, with the tool of an assistant.
    pub(super) fn name(&self, actor: &str) -> String {
        match split_tool(actor) {
            (client, Some(tool)) => format!("{} with {tool}", self.name_of_client(client)),
            (actor, None) => self.name_of_client(actor),
        }
    }

    fn name_of_client(&self, actor: &str) -> String {
        if let Some(key) = self.key(actor) {
            return key_name(key);
        }
        if let Some(app) = self.app(actor) {
            return name_of(app);
        }
        match actor.split_once(':') {
            Some(("dashboard", person)) => person.to_owned(),
            Some(("cli", user)) => format!("{user} with svc"),
            Some(("platform_key", _)) => "the platform API".to_owned(),
            Some(("key", id)) => format!("key {id}"),
            Some(("app", id)) => format!("app {id}"),
            Some(("shared_link", _)) => "the customer, by a link".to_owned(),
            _ => match actor {
                "system" => "the service".to_owned(),
                "sender" => "the webhook sender".to_owned(),
                "unknown" => "not known".to_owned(),
                other => other.to_owned(),
            },
        }
    }

    /// Returns what people call an actor. A key is linked, and so is an app that is connected.
    pub(super) fn render(&self, cx: &Context<'_>, actor: &str) -> Markup {
        if let Some(app) = self.app(actor) {
            return html! {
                @match self.connected.grant_of(app.id) {
                    Some(grant) => { a href=(cx.url(&format!("/apps#grant-{grant}"))) { (isolated(&name_of(app))) } }
                    None => { (isolated(&name_of(app))) }
                }
                div.soft { "app" (with_tool(actor)) }
            };
        }
        match self.key(actor) {
            Some(key) => html! {
                a href=(cx.url(&format!("/keys#key-{}", key.id))) { (key_name(key)) }
                div.soft { "API key" (with_tool(actor)) }
            },
            None => html! { (self.name(actor)) },
        }
    }

    /// Returns the filter of who made a change: the keys and the members of the account, what else acts, and who is shown.
    pub(super) async fn filter(&self, cx: &Context<'_>, tenant: TenantId) -> Result<Markup, Error> {
        let members = cx.svc.account(tenant).members().list().await?;
        let keys = self.keys.iter().rev().take(MAX_KEYS).map(|key| format!("key:{}", key.id));
        let apps = self.connected.ids().take(MAX_KEYS).map(|id| format!("{APP}{id}"));
        let members = members.iter().map(|member| format!("dashboard:{}", member.email));
        let others = ["system", "sender"].map(str::to_owned);
        let mut actors: Vec<String> = keys.chain(apps).chain(members).chain(others).collect();
        for actor in self.seen.iter().map(String::as_str).chain(cx.query.given("actor")) {
            if !actors.iter().any(|known| known == actor) {
                actors.push(actor.to_owned());
            }
        }
        let named = actors.into_iter().map(|actor| {
            let name = self.name(&actor);
            let name = match (self.key(&actor), self.app(&actor)) {
                (Some(_), _) => format!("{name} (key)"),
                (None, Some(_)) => format!("{name} (app)"),
                (None, None) => name,
            };
            (actor, name)
        });
        Ok(filters::one_of(cx, "actor", "Who", "Everyone", named))
    }
}

/// Returns the name of an app. The publisher of an app can change its name at any time, but not its host.
fn name_of(app: &App) -> String {
    let name = without_bidi_controls(app.name.as_str());
    match app.published_host() {
        Some(host) => format!("{name} ({host}, not verified)"),
        None => name,
    }
}

/// Returns the tool of an assistant, as what follows on the kind of client.
fn with_tool(actor: &str) -> Markup {
    html! { @if let (_, Some(tool)) = split_tool(actor) { ", with " code { (tool) } } }
}

/// Returns the id of an app that acted.
fn app_id(actor: &str) -> Option<AppId> {
    split_tool(actor).0.strip_prefix(APP)?.parse().ok()
}

fn key_name(key: &ApiKey) -> String {
    key.name.clone().unwrap_or_else(|| format!("{}…", key.prefix))
}
