//! Developer apps: those that belong to this account. Owners of any account can then connect them.

use http::StatusCode;
use svc_core::accounts::apps::{self, App, AppCreate, AppId, AppUpdate, MAX_REDIRECT_URIS, NewApp};
use svc_core::crypto::sha256;
use svc_core::error::Error;
use svc_core::oauth;
use svc_core::values::{RedirectUri, Text, WebhookUrl};

use super::apps::{scopes_in_words, website_host};
use super::new_secrets::{NewSecrets, STORED, SecretsPage, text_of};

use crate::dashboard::prelude::*;

/// Returns the app in the path, if it belongs to the account.
async fn own_app(cx: &Context<'_>, tenant: &Tenant) -> Result<App, PageError> {
    let app = cx.svc.apps().get(cx.id::<AppId>()?).await?;
    if app.tenant_id == Some(tenant.id) { Ok(app) } else { Err(PageError::NotFound) }
}

fn status(app: &App) -> Markup {
    match app.disabled_at {
        Some(_) => badge(Tone::Neutral, "disabled"),
        None => badge(Tone::Good, "enabled"),
    }
}

fn kind(app: &App) -> &'static str {
    if app.confidential { "confidential" } else { "public" }
}

/// Lists the apps.
pub(crate) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let apps = cx.svc.apps().list(Some(tenant.id)).await?;
    let create = html! {
        @if cx.may(Role::Owner) {
            a.button.primary href=(cx.url("/developer-apps/new")) { "Create app" }
        }
    };
    let about = "Apps that you develop. Owners of any account on this service can connect them by OAuth 2.0.";
    let content = html! {
        (heading("Developer apps", about, if apps.is_empty() { html! {} } else { create.clone() }))
        @if apps.is_empty() {
            (empty("code", "No apps yet", "An app works on the accounts of others, with the consent of their owners. A program \
                that works on this account alone needs an API key instead.", create))
        } @else {
            (table("Developer apps", &["App", "Status", "Kind", "May ask to", "Created"], html! {
                @for app in &apps {
                    tr {
                        th scope="row" {
                            a href=(cx.url(&format!("/developer-apps/{}", app.id))) { (isolated(app.name.as_str())) }
                            @if let Some(host) = website_host(app) { div.soft { (host) } }
                        }
                        td { (status(app)) }
                        td { (kind(app)) }
                        td { (scopes_in_words(&app.scopes)) }
                        td { (time(cx.now, &tenant.time_zone, app.created_at)) }
                    }
                }
            }))
        }
    };
    Ok(layout::page(cx, Some(tenant), "Developer apps", &content))
}

/// Shows an app.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let app = own_app(cx, tenant).await?;
    let zone = &tenant.time_zone;
    let or_none = |url: &Option<WebhookUrl>| match url {
        Some(url) => html! { (url) },
        None => html! { span.soft { "none" } },
    };
    let content = html! {
        (heading(&without_bidi_controls(app.name.as_str()), "", html! { @if cx.may(Role::Owner) { (actions(cx, &app)) } }))
        (section("App", facts(&[
            ("Status", status(&app)),
            ("Client id", html! { code { (app.client_id) } }),
            ("Kind", html! { (kind(&app)) }),
            ("Secret", html! {
                @match (app.confidential, app.previous_until.filter(|until| *until > cx.now)) {
                    (false, _) => { span.soft { "none" } }
                    (true, Some(until)) => { "the one before is taken as well until " (exact_time(zone, until)) }
                    (true, None) => { "shown once, when it was made" }
                }
            }),
            ("May ask to", html! { (scopes_in_words(&app.scopes)) }),
            ("Website", or_none(&app.website)),
            ("Redirect URIs", html! { @for uri in &app.redirect_uris { div { (uri) } } }),
            ("Disconnect URL", or_none(&app.disconnect_url)),
            ("Created", html! { (exact_time(zone, app.created_at)) }),
        ])))
        (section("Endpoints", facts(&endpoints(cx))))
    };
    Ok(layout::page(cx, Some(tenant), "Developer app", &content))
}

/// Returns the addresses that the program of an app needs.
fn endpoints(cx: &Context<'_>) -> Vec<(&'static str, Markup)> {
    let issuer = cx.site.issuer().map_or("", |issuer| issuer.url.as_str());
    let url = |path: &str| html! { code { (issuer) (path) } };
    vec![
        ("Metadata", url("/.well-known/oauth-authorization-server")),
        ("Authorization", url("/oauth/authorize")),
        ("Tokens", url("/oauth/token")),
    ]
}

fn actions(cx: &Context<'_>, app: &App) -> Markup {
    let path = |action: &str| format!("/developer-apps/{}/{action}", app.id);
    let name = without_bidi_controls(app.name.as_str());
    html! {
        a.button href=(cx.url(&path("edit"))) { "Edit" }
        @if app.confidential {
            (confirmed(cx, "Rotate secret", &format!("{name} gets a new secret. The old one is taken as well meanwhile, for:"),
                &path("rotate"), overlap_choice("How long the old secret is taken"), "Create new secret"))
        }
        @if app.disabled_at.is_some() {
            (post_button(cx, &path("enable"), "primary", html! {}, "Enable"))
        } @else {
            (confirmed(cx, "Disable", &format!("All requests of {name} are refused from now on, and no account can connect it. What \
                accounts granted holds again when you enable it."), &path("disable"), html! {}, "Disable app"))
        }
        (confirmed(cx, "Delete", &format!("{name} is deleted with its access to all accounts and its webhooks there. This cannot \
            be undone."), &path("delete"), html! {}, &format!("Delete {name}")))
    }
}

/// Shows the form of a new app.
pub(crate) async fn new(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    Ok(form(cx, tenant, None, &FormState::new(&Form::of(b"kind=confidential&scopes=read"))))
}

/// Shows the form of an app that is there.
pub(crate) async fn edit(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let app = own_app(cx, tenant).await?;
    let url = |url: &Option<WebhookUrl>| url.as_ref().map(ToString::to_string).unwrap_or_default();
    let uris: Vec<&str> = app.redirect_uris.iter().map(RedirectUri::as_str).collect();
    let values = Form::from_fields(vec![
        ("name", app.name.to_string()),
        ("website", url(&app.website)),
        ("redirect_uris", uris.join("\n")),
        ("scopes", if app.writes() { "write" } else { "read" }.to_owned()),
        ("disconnect_url", url(&app.disconnect_url)),
    ]);
    Ok(form(cx, tenant, Some(&app), &FormState::new(&values)))
}

fn form(cx: &Context<'_>, tenant: &Tenant, app: Option<&App>, state: &FormState<'_>) -> PageResponse {
    let (title, action, back, path) = match app {
        None => ("Create an app", "Create app", "/developer-apps".to_owned(), "/developer-apps/new".to_owned()),
        Some(app) => {
            let back = format!("/developer-apps/{}", app.id);
            ("Change an app", "Save", back.clone(), format!("{back}/edit"))
        }
    };
    let version = app.map(version).unwrap_or_default();
    let of_scopes = match app {
        None => "The most that the app may ask an owner for.",
        Some(_) => "The most that the app may ask an owner for. What was granted stays as it is.",
    };
    let content = html! {
        (heading(title, "", html! {}))
        (edit_form(cx, state, EditForm { path: &path, top: html! {}, version: &version, fields: html! {
            (state.text("name", "Name", "Owners see it when the app asks for access."))
            (state.text("website", "Website", "Owners see its host below the name. You can leave it empty."))
            (state.lines("redirect_uris", "Redirect URIs", "Where the browser returns to, one a line, at most ten: https of your host, \
                http://127.0.0.1 for a program on the device of its user, or a scheme of your app such as com.example.app:/callback. \
                Each is compared character by character."))
            @if app.is_none() {
                (state.choice("kind", "Kind", "A confidential app runs on your server and gets a secret. A public one runs on the \
                    devices of its users and has none. This cannot be changed later.",
                    &[("confidential", "Confidential"), ("public", "Public")]))
            }
            (state.choice("scopes", "Scopes", of_scopes, &[("read", "Read only"), ("write", "Read and write")]))
            (state.text("disconnect_url", "Disconnect URL", "Where a signed app.disconnected is sent when an account ends the access. \
                You can leave it empty."))
        }, action, others: html! { a.button href=(cx.url(&back)) { "Cancel" } } }))
    };
    layout::page(cx, Some(tenant), title, &content)
}

/// Reads the form. Only that of a new app says whether the app is public.
fn read(form: &Form, tenant: &Tenant, is_new: bool) -> Result<AppCreate, Errors> {
    let mut errors = Errors::default();
    let sentence = |subject: &'static str| move |issue| format!("{subject} {issue}.");
    let name = errors.take("name", Text::parse(form.text("name")).map_err(sentence("The name")));
    let url = |field| form.given(field).map(WebhookUrl::parse).transpose();
    let website = errors.take("website", url("website").map_err(sentence("The website")));
    let disconnect_url = errors.take("disconnect_url", url("disconnect_url").map_err(sentence("The URL")));
    let redirect_uris = errors.take("redirect_uris", redirect_uris(form.text("redirect_uris")));
    let write = errors.take(
        "scopes",
        match form.text("scopes") {
            "write" => Ok(true),
            "read" => Ok(false),
            _ => Err("Choose what the app may ask for."),
        },
    );
    let public = match form.text("kind") {
        "public" => is_new,
        "confidential" => false,
        _ => {
            if is_new && errors.is_empty() {
                errors.add("kind", "Choose where the app runs.");
            }
            false
        }
    };
    match (name, website, redirect_uris, write, disconnect_url) {
        (Some(name), Some(website), Some(redirect_uris), Some(write), Some(disconnect_url)) if errors.is_empty() => {
            Ok(AppCreate { owner: Some(tenant.id), name, redirect_uris, website, public, write, disconnect_url })
        }
        _ => Err(errors),
    }
}

/// Reads redirect URIs, one a line. An error names the line.
fn redirect_uris(text: &str) -> Result<Vec<RedirectUri>, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return Err("There must be at least one URI.".to_owned());
    }
    if lines.len() > MAX_REDIRECT_URIS {
        return Err(format!("There can be at most {MAX_REDIRECT_URIS} URIs."));
    }
    let mut uris = Vec::new();
    for (at, line) in lines.into_iter().enumerate() {
        let uri = RedirectUri::parse(line).map_err(|issue| format!("URI {} {issue}.", at + 1))?;
        if uris.contains(&uri) {
            return Err(format!("URI {} is repeated.", at + 1));
        }
        uris.push(uri);
    }
    Ok(uris)
}

/// Returns the form with what the rules refused. All else that may be wrong with an app was read before.
fn refused(cx: &Context<'_>, tenant: &Tenant, app: Option<&App>, error: Error) -> Result<PageResponse, PageError> {
    let mut errors = Errors::default();
    match error {
        Error::Validation(_) => {
            errors.add("disconnect_url", error.to_string());
            Ok(refilled(cx, tenant, app, &errors))
        }
        Error::PreconditionFailed => {
            errors.add("name", changed_meanwhile("app"));
            Ok(refilled(cx, tenant, app, &errors).status(StatusCode::CONFLICT))
        }
        error => Err(refusal(error)),
    }
}

/// Returns what tells the settings of an app from others, for a form that shows them. The app has no time of its last change.
fn version(app: &App) -> String {
    hex::encode(sha256(serde_json::to_string(app).unwrap_or_default().as_bytes()))
}

fn secrets_of(new: &NewApp) -> NewSecrets {
    NewSecrets {
        id: new.app.id.uuid(),
        client_id: Some(new.app.client_id.clone()),
        secret: text_of(new.secret.as_ref()),
        signing_secret: text_of(new.webhook_secret.as_ref()),
    }
}

fn refilled(cx: &Context<'_>, tenant: &Tenant, app: Option<&App>, errors: &Errors) -> PageResponse {
    form(cx, tenant, app, &FormState::refused(&cx.form, errors)).status(StatusCode::UNPROCESSABLE_ENTITY)
}

/// Creates an app and shows its secret.
pub(crate) async fn create(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let input = match read(&cx.form, tenant, true) {
        Ok(input) => input,
        Err(errors) => return Ok(refilled(cx, tenant, None, &errors)),
    };
    let new = submit(cx, tenant.id, "dashboard.create_app", input, async |tx, form| {
        Ok(secrets_of(&oauth::create_app(tx, form.input.clone()).await?))
    });
    match new.await {
        Ok(new) => Ok(secrets(cx, tenant, &new, "App created")),
        Err(error) => refused(cx, tenant, None, error),
    }
}

/// Changes an app. A new disconnect URL has a secret of its own, which is shown.
pub(crate) async fn change(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let app = own_app(cx, tenant).await?;
    let input = match read(&cx.form, tenant, false) {
        Ok(input) => input,
        Err(errors) => return Ok(refilled(cx, tenant, Some(&app), &errors)),
    };
    let change = AppUpdate {
        name: Some(input.name),
        redirect_uris: Some(input.redirect_uris),
        website: Some(input.website),
        write: Some(input.write),
        disconnect_url: Some(input.disconnect_url),
        disabled: None,
    };
    let changed = submit(cx, tenant.id, "dashboard.change_app", (app.id, change), async |tx, form| {
        let (id, change) = &form.input;
        form.check_version(&version(&apps::get(tx, *id).await?))?;
        Ok(secrets_of(&oauth::update_app(tx, *id, change.clone()).await?))
    });
    match changed.await {
        Ok(changed) if changed.signing_secret.is_some() => Ok(secrets(cx, tenant, &changed, "App changed")),
        Ok(_) => Ok(back(cx, app.id, "saved")),
        Err(error) => refused(cx, tenant, Some(&app), error),
    }
}

/// Shows the secrets of an app that were just made.
fn secrets(cx: &Context<'_>, tenant: &Tenant, new: &NewSecrets, title: &str) -> PageResponse {
    let has_any = new.secret.is_some() || new.signing_secret.is_some();
    let about = match has_any {
        true => "Copy what is secret now and store it where your app reads it. It will not be shown again.",
        false => "Your app sends the client id. It is no secret.",
    };
    let page = SecretsPage {
        title,
        about,
        texts: &[
            ("client-id", "Client id", new.client_id.as_deref()),
            ("client-secret", "Client secret", new.secret.as_deref()),
            ("signing-secret", "Signing secret of app.disconnected", new.signing_secret.as_deref()),
        ],
        example: None,
        next: &format!("/developer-apps/{}", new.id),
    };
    page.respond(cx, tenant, if has_any { STORED } else { "Continue" })
}

/// Replaces the secret, and the old one is taken as well for a while.
pub(crate) async fn rotate(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let app = own_app(cx, tenant).await?;
    let overlap = chosen_overlap(&cx.form, "Choose how long the old secret is taken.")?;
    let new = submit(cx, tenant.id, "dashboard.rotate_app", (app.id, overlap), async |tx, form| {
        let (id, overlap) = form.input;
        Ok(secrets_of(&apps::rotate_secret(tx, id, overlap).await?))
    });
    Ok(secrets(cx, tenant, &new.await.map_err(refusal)?, "Secret rotated"))
}

fn back(cx: &Context<'_>, id: AppId, notice: &str) -> PageResponse {
    cx.see_other(&format!("/developer-apps/{id}?notice={notice}"))
}

/// Enables an app.
pub(crate) async fn enable(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    set_disabled(cx, tenant, false, "app-enabled").await
}

/// Disables an app.
pub(crate) async fn disable(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    set_disabled(cx, tenant, true, "app-disabled").await
}

async fn set_disabled(
    cx: &Context<'_>,
    tenant: &Tenant,
    disabled: bool,
    notice: &str,
) -> Result<PageResponse, PageError> {
    let app = own_app(cx, tenant).await?;
    let change = AppUpdate { disabled: Some(disabled), ..AppUpdate::default() };
    let changed = submit(cx, tenant.id, "svc.apps.update", (app.id, change), async |tx, form| {
        let (id, change) = &form.input;
        oauth::update_app(tx, *id, change.clone()).await.map(drop)
    });
    changed.await.map_err(refusal)?;
    Ok(back(cx, app.id, notice))
}

/// Deletes an app.
pub(crate) async fn delete(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let app = own_app(cx, tenant).await?;
    cx.svc.apps().delete(app.id).await?;
    Ok(cx.see_other("/developer-apps?notice=app-deleted"))
}
