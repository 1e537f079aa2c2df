//! API keys.

use std::time::Duration;

use http::StatusCode;
use svc_core::accounts::keys::{self, ApiKey, KeyCreate, KeyId, NewKey, Scope};
use svc_core::values::is_one_line;

use super::new_secrets::{NewSecrets, STORED, SecretsPage, text_of};

use crate::dashboard::prelude::*;

/// The number of keys on a page.
const PAGE: usize = 100;
/// The longest name of a key, in characters.
const MAX_NAME: usize = 300;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a new key can be valid: the values of the form, their texts, and the numbers of days.
const EXPIRIES: [(&str, &str); 5] =
    [("", "Never"), ("30", "30 days"), ("90", "90 days"), ("180", "180 days"), ("365", "1 year")];

/// Lists the keys.
pub(crate) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let mut keys = cx.svc.account(tenant.id).keys().list().await?;
    keys.reverse();
    if let Some(before) = cx.query.given("before").and_then(|id| id.parse::<KeyId>().ok()) {
        keys.retain(|key| key.id < before);
    }
    let has_older = keys.len() > PAGE;
    keys.truncate(PAGE);
    let may_change = cx.may(Role::Owner);
    let create = html! {
        @if cx.may(Role::Developer) && cx.site.reference.is_some() {
            a.button href=(cx.url("/reference")) { "Try the API" }
        }
        @if may_change {
            a.button.primary href=(cx.url("/keys/new")) { "Create key" }
        }
    };
    let about = "Programs send a key with each request. The text of a key is shown once, when it is created.";
    let content = html! {
        (heading("API keys", about, if keys.is_empty() { html! {} } else { create.clone() }))
        @if keys.is_empty() {
            (empty("key", "No keys yet", "A program needs a key to call the API. Create one for each program, so that you \
                can revoke them one by one.", create))
        } @else {
            (table("API keys", &["Name", "Status", "Scopes", "Last used", "Created", "Expires", ""], html! {
                @for key in &keys { (row(cx, tenant, key, may_change)) }
            }))
            @if let Some(last) = keys.last().filter(|_| has_older) {
                (page_links("Pages of the keys", None, html! {
                    a.button href=(cx.url(&format!("/keys?before={}", last.id))) { "Older" }
                }))
            }
        }
    };
    Ok(layout::page(cx, Some(tenant), "API keys", &content))
}

fn row(cx: &Context<'_>, tenant: &Tenant, key: &ApiKey, may_change: bool) -> Markup {
    let zone = &tenant.time_zone;
    let is_expired = key.expires_at.is_some_and(|at| at <= cx.now);
    let status = match (key.revoked_at, is_expired) {
        (Some(_), _) => badge(Tone::Neutral, "revoked"),
        (None, true) => badge(Tone::Neutral, "expired"),
        (None, false) => badge(Tone::Good, "active"),
    };
    let path = |action| format!("/keys/{}/{action}", key.id);
    let name = key.name.as_deref().unwrap_or(key.prefix.as_str());
    let used = last_used(cx.now, key.last_used_at);
    html! {
        tr id={ "key-" (key.id) } {
            th scope="row" {
                (key.name.as_deref().unwrap_or("Unnamed"))
                div.soft { code { (key.prefix) "…" } }
            }
            td { (status) }
            td {
                (if key.scopes.contains(&Scope::Write) { "read, write" } else { "read" })
                @if key.signing_secret.is_some() { div.soft { "writes are signed" } }
            }
            td { (time_or(cx.now, zone, key.last_used_at, "never")) }
            td { (time(cx.now, zone, key.created_at)) }
            td { (time_or(cx.now, zone, key.expires_at, "never")) }
            td.end {
                @if may_change && key.revoked_at.is_none() && !is_expired {
                    div.actions {
                        (confirmed(cx, "Rotate", &format!("A new key takes the place of {name}, {used}, with the same name and scopes. \
                            The old one stays valid meanwhile for:"), &path("rotate"),
                            overlap_choice("How long the old key stays valid"),
                            "Create new key"))
                        (confirmed(cx, "Revoke", &format!("Requests with {name}, {used}, are refused at once. This cannot be undone."),
                            &path("revoke"), html! {}, &format!("Revoke {name}")))
                    }
                }
            }
        }
    }
}

/// Shows the form of a new key.
pub(crate) async fn new(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    Ok(form(cx, tenant, &FormState::new(&Form::of(b"scopes=write"))))
}

fn form(cx: &Context<'_>, tenant: &Tenant, state: &FormState<'_>) -> PageResponse {
    let content = html! {
        (heading("Create an API key", "", html! {}))
        (edit_form(cx, state, EditForm { path: "/keys/new", top: html! {}, version: "", fields: html! {
            (state.text("name", "Name", "What the key is for, such as the program that uses it. You can leave it empty."))
            (state.choice("scopes", "Scopes", "A key that only reads cannot change anything.",
                &[("write", "Read and write"), ("read", "Read only")]))
            (state.choice("expires", "Expires", "Requests are refused from then on.", &EXPIRIES))
            (state.checkbox("signed", "Require signed writes", "The key gets a signing secret, with which the program signs each \
                POST, PATCH and DELETE. A stolen key alone then changes nothing."))
        }, action: "Create key", others: html! { a.button href=(cx.url("/keys")) { "Cancel" } } }))
    };
    layout::page(cx, Some(tenant), "Create an API key", &content)
}

fn read(form: &Form) -> Result<KeyCreate, Errors> {
    let mut errors = Errors::default();
    let name = form.given("name").map(str::to_owned);
    if name.as_ref().is_some_and(|name| name.chars().count() > MAX_NAME || !is_one_line(name)) {
        errors.add("name", format!("The name must be one line of at most {MAX_NAME} characters."));
    }
    let write = match form.text("scopes") {
        "write" => true,
        "read" => false,
        _ => {
            errors.add("scopes", "Choose what the key may do.");
            false
        }
    };
    let expires = form.text("expires");
    let days = EXPIRIES.iter().find(|(value, _)| *value == expires).map(|(value, _)| value.parse::<u32>().ok());
    if days.is_none() {
        errors.add("expires", "Choose one of the times.");
    }
    let expires_in = days.flatten().map(|days| DAY * days);
    if errors.is_empty() {
        Ok(KeyCreate { name, write, expires_in, signed: form.text("signed") == "on" })
    } else {
        Err(errors)
    }
}

/// Creates a key and shows its text.
pub(crate) async fn create(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    match read(&cx.form) {
        Ok(input) => {
            let new = submit(cx, tenant.id, "dashboard.create_key", input, async |tx, form| {
                Ok(secrets_of(&keys::create(tx, form.tenant, form.input.clone()).await?))
            });
            Ok(created(cx, tenant, &new.await.map_err(refusal)?))
        }
        Err(errors) => {
            let state = FormState::refused(&cx.form, &errors);
            Ok(form(cx, tenant, &state).status(StatusCode::UNPROCESSABLE_ENTITY))
        }
    }
}

fn secrets_of(new: &NewKey) -> NewSecrets {
    NewSecrets {
        id: new.key.id.uuid(),
        secret: text_of(Some(&new.text)),
        signing_secret: text_of(new.key.signing_secret.as_ref()),
        ..NewSecrets::default()
    }
}

/// Shows a new key.
fn created(cx: &Context<'_>, tenant: &Tenant, new: &NewSecrets) -> PageResponse {
    let key = new.secret.as_deref();
    let page = SecretsPage {
        title: "Key created",
        about: "Copy it now and store it where your program reads it. It will not be shown again.",
        texts: &[("key", "API key", key), ("signing-secret", "Signing secret", new.signing_secret.as_deref())],
        example: key,
        next: "/keys",
    };
    page.respond(cx, tenant, STORED)
}

/// Replaces a key, which stays valid for a while.
pub(crate) async fn rotate(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let overlap = chosen_overlap(&cx.form, "Choose how long the old key stays valid.")?;
    let input = (cx.id::<KeyId>()?, overlap);
    let new = submit(cx, tenant.id, "dashboard.rotate_key", input, async |tx, form| {
        let (id, overlap) = form.input;
        keys::get_of(tx, form.tenant, id).await?;
        Ok(secrets_of(&keys::rotate(tx, id, overlap).await?))
    });
    Ok(created(cx, tenant, &new.await.map_err(refusal)?))
}
