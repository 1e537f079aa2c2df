//! Connected apps: the programs of others that an owner lets work on the account, and how their access ends.

use svc_core::Svc;
use svc_core::accounts::apps::{App, AppId};
use svc_core::accounts::grants::{Grant, GrantId};
use svc_core::accounts::keys::Scope;
use svc_core::error::Error;
use svc_core::values::{TenantId, WebhookUrl};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use super::deliveries;

use crate::dashboard::prelude::*;

/// The number of webhooks that are listed for an app.
const MAX_WEBHOOKS: usize = 3;

/// The apps that may work on an account.
pub(super) struct ConnectedApps(Vec<(Grant, App)>);

impl ConnectedApps {
    pub(super) async fn of(svc: &Svc, tenant: TenantId) -> Result<Self, Error> {
        Ok(Self(svc.account(tenant).grants().list().await?))
    }

    /// Returns the app that a grant is for. The request log keeps the id of the grant in place of that of a key.
    pub(super) fn by_grant(&self, grant: Uuid) -> Option<&App> {
        self.0.iter().find(|(known, _)| known.id.uuid() == grant).map(|(_, app)| app)
    }

    /// Returns the app with this id.
    pub(super) fn app(&self, id: AppId) -> Option<&App> {
        self.0.iter().find(|(_, app)| app.id == id).map(|(_, app)| app)
    }

    /// Returns the ids of the grants with the names of their apps.
    pub(super) fn names(&self) -> impl Iterator<Item = (GrantId, &str)> {
        self.0.iter().map(|(grant, app)| (grant.id, app.name.as_str()))
    }

    /// Returns the id of the grant for an app.
    pub(super) fn grant_of(&self, id: AppId) -> Option<GrantId> {
        self.0.iter().find(|(_, app)| app.id == id).map(|(grant, _)| grant.id)
    }

    /// Returns the ids of the apps.
    pub(super) fn ids(&self) -> impl Iterator<Item = AppId> {
        self.0.iter().map(|(_, app)| app.id)
    }

    /// Names the app that a webhook belongs to, with a link to its access. Nothing for a webhook of the account itself.
    pub(super) fn owner_of(&self, cx: &Context<'_>, endpoint: &WebhookSubscription) -> Option<Markup> {
        let grant = endpoint.grant_id?;
        let app = self.by_grant(grant.uuid())?;
        Some(html! { a href=(cx.url(&format!("/apps#grant-{grant}"))) { (isolated(app.name.as_str())) } })
    }
}

/// Returns the host of the website of an app.
pub(super) fn website_host(app: &App) -> Option<&str> {
    app.website.as_ref().map(WebhookUrl::host)
}

/// Returns what tells an app from another with the same name: the host of its website or, if nobody has registered it, the one at
/// which it describes itself, and that it is not verified.
pub(crate) fn origin_of(app: &App) -> Markup {
    html! {
        @if let Some(host) = app.published_host() {
            div.soft { (host) }
            div { (badge(Tone::Warn, "not verified")) }
        } @else if let Some(host) = website_host(app) { div.soft { (host) } }
    }
}

/// Returns what an app may do, in words.
pub(super) fn scopes_in_words(scopes: &[Scope]) -> &'static str {
    if scopes.contains(&Scope::Write) { "see and change all records" } else { "see all records" }
}

/// Lists the apps that may work on the account.
pub(crate) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let apps = ConnectedApps::of(&cx.svc, tenant.id).await?;
    let webhooks = deliveries::list_endpoints(&cx.svc, tenant.id).await?;
    let about = "Apps of others that an owner lets work on this account. They stay connected when the owner leaves.";
    let content = html! {
        (heading("Connected apps", about, html! {}))
        @if apps.0.is_empty() {
            (empty("app", "No connected apps", "An app asks for access from its own pages. An owner of this account then sees here \
                what it may do, and ends the access at any time.", html! {}))
        } @else {
            (table("Connected apps", &["App", "May", "Connected", "Last used", "Requests", "Webhooks", ""], html! {
                @for (grant, app) in &apps.0 { (row(cx, tenant, grant, app, &webhooks)) }
            }))
        }
    };
    Ok(layout::page(cx, Some(tenant), "Connected apps", &content))
}

fn row(cx: &Context<'_>, tenant: &Tenant, grant: &Grant, app: &App, webhooks: &[WebhookSubscription]) -> Markup {
    let zone = &tenant.time_zone;
    let own: Vec<&WebhookSubscription> =
        webhooks.iter().filter(|endpoint| endpoint.grant_id == Some(grant.id)).collect();
    html! {
        tr id={ "grant-" (grant.id) } {
            th scope="row" {
                (isolated(app.name.as_str()))
                @if app.disabled_at.is_some() { " " (badge(Tone::Neutral, "disabled")) }
                (origin_of(app))
            }
            td { (scopes_in_words(&grant.scopes)) }
            td { (time(cx.now, zone, grant.created_at)) div.soft { "by " (isolated(&grant.member)) } }
            td { (time_or(cx.now, zone, grant.last_used_at, "never")) }
            td { (number(grant.requests)) }
            td {
                @if own.is_empty() { span.soft { "none" } }
                @for endpoint in own.iter().take(MAX_WEBHOOKS) {
                    div { a.clip href=(cx.url(&format!("/webhooks/{}", endpoint.id))) { (endpoint.url) } }
                }
                @if own.len() > MAX_WEBHOOKS {
                    div.soft { "and " (own.len() - MAX_WEBHOOKS) " more" }
                }
            }
            td.end {
                @if cx.may(Role::Owner) {
                    div.actions { (disconnect_button(cx, grant, app, own.len())) }
                }
            }
        }
    }
}

fn disconnect_button(cx: &Context<'_>, grant: &Grant, app: &App, webhooks: usize) -> Markup {
    let used = last_used(cx.now, grant.last_used_at);
    let webhooks = match webhooks {
        0 => String::new(),
        1 => " Its webhook is deleted.".to_owned(),
        count => format!(" Its {count} webhooks are deleted."),
    };
    let name = without_bidi_controls(app.name.as_str());
    let question =
        format!("{name}, {used}, is refused at once.{webhooks} To come back, it has to ask for access again.");
    confirmed(
        cx,
        "Disconnect",
        &question,
        &format!("/apps/{}/disconnect", grant.id),
        html! {},
        &format!("Disconnect {name}"),
    )
}
