//! The sandbox of an account: a part of its settings. People who look at the sandbox see the same page there.

use svc_core::sandboxes::{self, NewSandbox};
use svc_core::values::TenantId;

use super::new_secrets::{NewSecrets, STORED, SecretsPage, text_of};

use crate::dashboard::prelude::*;

const ABOUT: &str =
    "A place to try programs in, apart from the account: it has records, keys, webhooks and limits of its own.";

/// Returns the account whose sandbox a page is about: the one that is shown, or the one whose sandbox is shown. A person who
/// may see a sandbox alone has no part in its account.
fn owner(cx: &Context<'_>, shown: &Tenant) -> Result<TenantId, PageError> {
    match shown.sandbox_of {
        None => Ok(shown.id),
        Some(owner) if cx.session.tenant_id == Some(owner) => Ok(owner),
        Some(_) => Err(PageError::NotFound),
    }
}

/// Shows the sandbox, or offers to create it.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let sandbox = cx.svc.account(owner(cx, tenant)?).sandbox().find().await?;
    let content = html! {
        (heading("Sandbox", ABOUT, html! {}))
        @match &sandbox {
            None => {
                (empty("sandbox", "No sandbox yet", "It begins with a few sample records and a key of its own. Members of this account \
                    can use it with the same role.",
                    post_button(cx, "/settings/sandbox/create", "primary", html! {}, "Create sandbox")))
            }
            Some(sandbox) => { (card(cx, tenant, sandbox)) }
        }
    };
    Ok(layout::page(cx, Some(tenant), "Sandbox", &content))
}

fn card(cx: &Context<'_>, shown: &Tenant, sandbox: &Tenant) -> Markup {
    let known = facts(&[
        ("Id", html! { code { (sandbox.id) } }),
        ("Name", html! { (sandbox.name) }),
        ("Created", time(cx.now, &shown.time_zone, sandbox.created_at)),
    ]);
    section(
        "This account has a sandbox",
        html! {
            (known)
            p { "Its API keys begin with " code { "svc_test_" } ", and its webhooks are sent with the header "
                code { "X-SVC-Test: true" } "." }
            div.actions {
                @if shown.id == sandbox.id {
                    (post_button(cx, "/settings/sandbox/leave", "", html! {}, "Back to the account"))
                } @else if can_switch(cx) {
                    (post_button(cx, "/settings/sandbox/open", "primary", html! {}, "Open the sandbox"))
                }
                (confirmed(cx, "Reset", &format!("The records, events, deliveries and logged requests of {} are deleted, and the sample \
                    records are created again. Its keys and webhooks stay.", sandbox.name),
                    "/settings/sandbox/reset", html! {}, "Reset sandbox"))
                (confirmed(cx, "Delete", &format!("{} is deleted with all that it has. Its keys are refused at once.", sandbox.name),
                    "/settings/sandbox/delete", html! {}, "Delete sandbox"))
            }
        },
    )
}

/// Returns whether the person can choose what their session shows. Where an application signs people in, it chooses.
fn can_switch(cx: &Context<'_>) -> bool {
    !cx.session.id.uuid().is_nil()
}

/// Creates the sandbox, and shows its first key.
pub(crate) async fn create(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let new = submit(cx, owner(cx, tenant)?, "dashboard.create_sandbox", (), async |tx, form| {
        let NewSandbox { sandbox, key, .. } = sandboxes::create(tx, form.tenant).await?;
        Ok(NewSecrets { id: sandbox.id.0, secret: text_of(Some(&key.text)), ..NewSecrets::default() })
    });
    let new = new.await.map_err(refusal)?;
    let key = new.secret.as_deref();
    let page = SecretsPage {
        title: "Sandbox created",
        about: "It has a few sample records, and this key. Copy the key now and store it where your program reads it. It will not be \
                shown again.",
        texts: &[("key", "API key of the sandbox", key)],
        example: key,
        next: "/settings/sandbox",
    };
    Ok(page.respond(cx, tenant, STORED))
}

/// Deletes what the sandbox has, and creates the sample records again.
pub(crate) async fn reset(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    cx.svc.account(owner(cx, tenant)?).sandbox().reset().await?;
    Ok(cx.see_other("/settings/sandbox?notice=sandbox-reset"))
}

/// Deletes the sandbox. Sessions that show it then show the account.
pub(crate) async fn delete(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    cx.svc.account(owner(cx, tenant)?).sandbox().delete().await?;
    cx.site.check_sessions();
    Ok(cx.see_other("/settings/sandbox?notice=sandbox-deleted"))
}

/// Shows the pages of the sandbox from now on.
pub(crate) async fn open(cx: &Context<'_>, _: &Tenant) -> Result<PageResponse, PageError> {
    cx.svc.dashboard().show_sandbox(cx.session.id, true).await?;
    cx.site.check_sessions();
    Ok(cx.see_other("/"))
}

/// Shows the pages of the account again.
pub(crate) async fn leave(cx: &Context<'_>) -> Result<PageResponse, PageError> {
    if cx.session.tenant_id.is_some() && cx.session.viewed_tenant_id.is_some() {
        cx.svc.dashboard().show_sandbox(cx.session.id, false).await?;
        cx.site.check_sessions();
    }
    Ok(cx.see_other("/"))
}
