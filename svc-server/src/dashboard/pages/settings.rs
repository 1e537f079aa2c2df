//! The settings of an account, its members, and who is signed in to it.

use http::StatusCode;
use svc_core::accounts::limits::CappedCollection;
use svc_core::accounts::members;
use svc_core::accounts::sessions::{Role, Session, SessionId};
use svc_core::accounts::tenants;
use svc_core::error::Error;
use svc_core::platform::operations::UPDATE_ACCOUNT;
use svc_core::platform::{AccountUpdate, DaysUntilDue, Zone};
use svc_core::values::{Currency, Email, Note, Patch, TenantId, Text, TimeZone};

use super::members as member_forms;
use super::sign_in;

use crate::dashboard::prelude::*;

/// Shows the settings.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    with_new_member(cx, tenant, &FormState::new(&member_forms::new())).await
}

/// Shows the settings with the form of a new member in this state.
async fn with_new_member(
    cx: &Context<'_>,
    tenant: &Tenant,
    new_member: &FormState<'_>,
) -> Result<PageResponse, PageError> {
    let values = settings_form(tenant);
    page(cx, tenant, &FormState::new(&values), new_member).await
}

/// Returns the settings of an account as the fields of their form.
fn settings_form(tenant: &Tenant) -> Form {
    Form::from_fields(vec![
        ("name", tenant.name.clone()),
        ("time_zone", tenant.time_zone.to_string()),
        ("currency", tenant.currency.to_string()),
        ("address", tenant.address.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("tax_number", tenant.tax_number.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("days_until_due", tenant.days_until_due.map(|days| days.to_string()).unwrap_or_default()),
        ("payment_details", tenant.payment_details.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("unique_contact_email", if tenant.unique_contact_email { "on" } else { "" }.to_owned()),
    ])
}

async fn page(
    cx: &Context<'_>,
    tenant: &Tenant,
    state: &FormState<'_>,
    new_member: &FormState<'_>,
) -> Result<PageResponse, PageError> {
    let sessions = cx.svc.dashboard().sessions(Some(tenant.id)).await?;
    let list = cx.svc.account(tenant.id).members().list().await?;
    let content = html! {
        (heading("Settings", "", html! {}))
        @if cx.may(Role::Owner) {
            (edit_form(cx, state, EditForm { path: "/settings", top: html! {
                h2 { "Account" }
                (problem(cx, "/settings"))
            }, version: &settings_form(tenant).digest(), fields: html! {
                (state.text("name", "Name", "The name of the business."))
                (state.text("time_zone", "Time zone", "Decides which day it is, for due dates for example. A name such as \
                    Australia/Sydney."))
                (state.text("currency", "Currency", "Of new invoices and quotes that name no other. A code such as AUD."))
                (state.lines("address", "Address", "The postal address of the business, for invoices and quotes. It can be empty."))
                (state.text("tax_number", "Tax number", "With its name, such as ABN 51 824 753 556, for invoices and quotes. It can be \
                    empty."))
                (state.text("days_until_due", "Days until due", "After the day of issue, for invoices without a due date of their \
                    own, such as those of jobs. If it is empty, they have none."))
                (state.lines("payment_details", "Payment details", "How customers pay, such as the number of a bank account. Invoices \
                    that are to be paid show it. It can be empty."))
                (state.checkbox("unique_contact_email", "Email addresses of contacts are unique",
                    "A second contact with the same address is refused."))
            }, action: "Save", others: html! {} }))
        } @else {
            (section("Account", facts(&[
                ("Name", html! { (tenant.name) }),
                ("Time zone", html! { (tenant.time_zone) }),
                ("Currency", html! { (tenant.currency) }),
                ("Address", html! { (tenant.address.as_ref().map_or("–", |address| address.as_str())) }),
                ("Tax number", html! { (tenant.tax_number.as_ref().map_or("–", |number| number.as_str())) }),
                ("Days until due", html! { (tenant.days_until_due.map_or("–".to_owned(), |days| days.to_string())) }),
                ("Payment details", html! { (tenant.payment_details.as_ref().map_or("–", |details| details.as_str())) }),
            ])))
        }
        (limits(tenant))
        @if cx.may(Role::Owner) && !tenant.is_sandbox() {
            (member_forms::card(cx, tenant, &list, new_member))
        }
        section.card {
            div {
                h2 { "Sessions" }
                p.soft {
                    "The people who are signed in to this account. A session ends by itself after twelve hours or an hour without use, and after 30 days where the person stays signed in."
                    @if let Some(owner) = cx.sandbox_of.get() {
                        " Members of " (owner) " use its sandbox with the same role, and their sessions are listed there."
                    }
                }
            }
            (session_table(cx, &tenant.time_zone, &sessions, cx.may(Role::Owner), "/settings/sessions"))
            @if cx.session.email.is_some() && !tenant.is_sandbox() {
                div.actions {
                    (confirmed(cx, "Sign out everywhere", "All sessions in which you see this account end, also this one. Those \
                        in which you see another account go on.", "/settings/sign-out-everywhere", html! {},
                        "Sign out everywhere"))
                }
            }
        }
    };
    Ok(layout::page(cx, Some(tenant), "Settings", &content))
}

/// Returns the limits that the account has in place of the server's, if it has any.
fn limits(tenant: &Tenant) -> Markup {
    let of = |collection| tenant.limits.write_rate_limits.of(collection);
    let writes = CappedCollection::ALL.iter().map(|c| (format!("Writes of {c}"), of(*c)));
    let rates = std::iter::once(("All requests".to_owned(), tenant.limits.rate_limit)).chain(writes);
    let rates = rates.filter_map(|(name, limit)| limit.map(|limit| (name, html! { (limit) " per minute and key" })));
    let webhooks = tenant.max_webhooks.map(|limit| ("Webhook endpoints".to_owned(), html! { (limit) }));
    let own: Vec<(String, Markup)> = rates.chain(webhooks).collect();
    html! {
        @if !own.is_empty() {
            (section("Limits", html! {
                p.soft { "The operator of the server has set these. Its own limits apply to everything else." }
                (facts(&own))
            }))
        }
    }
}

/// Returns a table of sessions, each with a button that revokes it.
pub(super) fn session_table(
    cx: &Context<'_>,
    zone: &TimeZone,
    sessions: &[Session],
    may_revoke: bool,
    path: &str,
) -> Markup {
    table(
        "Sessions",
        &["Person", "Role", "Signed in", "Last used", ""],
        html! {
            @for session in sessions {
                tr {
                    th scope="row" {
                        (session.identity)
                        @if session.id == cx.session.id { " " (badge(Tone::Good, "this session")) }
                    }
                    td { (role(session)) }
                    td { (time(cx.now, zone, session.created_at)) }
                    td { (time(cx.now, zone, session.last_used_at)) }
                    td.end {
                        @if may_revoke {
                            div.actions {
                                (confirmed(cx, "Revoke", &format!("{} is signed out of this session, last used {}, with the next request.",
                                    session.identity, distance(cx.now, session.last_used_at)),
                                    &format!("{path}/{}/revoke", session.id), html! {}, "Revoke session"))
                            }
                        }
                    }
                }
            }
        },
    )
}

fn role(session: &Session) -> &'static str {
    match session.tenant_id {
        _ if session.is_operator() => "operator",
        Some(_) => session.role.as_str(),
        None => "member without an account",
    }
}

/// Changes the settings.
pub(crate) async fn save(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let mut errors = Errors::default();
    let name = match cx.form.given("name") {
        None => Err("The name must not be empty.".to_owned()),
        Some(name) => Text::<300>::parse(name).map_err(|issue| format!("The name {issue}.")),
    };
    let name = errors.take("name", name);
    let zone = TimeZone::parse(cx.form.text("time_zone")).map_err(|issue| format!("The time zone {issue}."));
    let zone = errors.take("time_zone", zone);
    let currency = Currency::parse(&cx.form.text("currency").to_uppercase());
    let currency = errors.take("currency", currency.map_err(|issue| format!("The currency {issue}.")));
    let address = errors.take("address", lines(&cx.form, "address", "address"));
    let tax_number = cx.form.given("tax_number").map(Text::<100>::parse).transpose();
    let tax_number = errors.take("tax_number", tax_number.map_err(|issue| format!("The tax number {issue}.")));
    let days_until_due = cx.form.given("days_until_due").map(DaysUntilDue::parse).transpose();
    let days_until_due = days_until_due.map_err(|issue| format!("The number of days until an invoice is due {issue}."));
    let days_until_due = errors.take("days_until_due", days_until_due);
    let payment_details = errors.take("payment_details", lines(&cx.form, "payment_details", "text"));
    let unique_contact_email = cx.form.text("unique_contact_email") == "on";
    let (
        Some(name),
        Some(zone),
        Some(currency),
        Some(address),
        Some(tax_number),
        Some(days_until_due),
        Some(payment_details),
    ) = (name, zone, currency, address, tax_number, days_until_due, payment_details)
    else {
        let state = FormState::refused(&cx.form, &errors);
        let new_member = member_forms::new();
        let page = page(cx, tenant, &state, &FormState::new(&new_member)).await?;
        return Ok(page.status(StatusCode::UNPROCESSABLE_ENTITY));
    };
    let change = AccountUpdate {
        name: Patch::Set(name),
        time_zone: Patch::Set(Zone(zone)),
        currency: Patch::Set(currency),
        address: Patch::Set(address),
        tax_number: Patch::Set(tax_number),
        days_until_due: Patch::Set(days_until_due),
        payment_details: Patch::Set(payment_details),
        unique_contact_email: Patch::Set(unique_contact_email),
        ..AccountUpdate::default()
    };
    save_account(cx, tenant.id, settings_form, change).await?;
    Ok(cx.see_other("/settings?notice=saved"))
}

/// Reads a text of several lines, which browsers end with CR and LF. `None` if it is empty. `noun` is what an error calls it.
fn lines(form: &Form, name: &str, noun: &str) -> Result<Option<Note<500>>, String> {
    let typed = form.all(name).next().unwrap_or_default().replace("\r\n", "\n");
    let typed = typed.trim();
    if typed.chars().any(|char| char.is_control() && char != '\n') {
        return Err(format!("The {noun} must have no control characters."));
    }
    let text = Some(typed).filter(|typed| !typed.is_empty()).map(Note::parse).transpose();
    text.map_err(|issue| format!("The {noun} {issue}."))
}

/// Changes an account, of which a form shows these fields.
pub(super) async fn save_account(
    cx: &Context<'_>,
    tenant: TenantId,
    shown: fn(&Tenant) -> Form,
    change: AccountUpdate,
) -> Result<(), PageError> {
    let saved = submit(cx, tenant, "svc.settings.change", (shown, change), async |tx, form| {
        let (shown, change) = &form.input;
        form.check_version(&shown(&tenants::get(tx, form.tenant).await?).digest())?;
        UPDATE_ACCOUNT.run(tx, form.tenant, change).await.map(drop)
    });
    saved.await.map_err(refusal)
}

/// Adds a member, and shows the link with which the person signs in.
pub(crate) async fn add_member(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let mut errors = Errors::default();
    let email = Email::parse(cx.form.text("email")).map_err(|issue| format!("The email address {issue}."));
    let email = errors.take("email", email);
    let role = errors.take("role", Role::from_text(cx.form.text("role")).ok_or("Choose one of the roles."));
    if let (Some(email), Some(role)) = (email, role) {
        let added = submit(cx, tenant.id, "svc.members.add", (email.clone(), role), async |tx, form| {
            let (email, role) = &form.input;
            members::add(tx, form.tenant, email, *role).await?;
            member_forms::invite(tx, form.tenant, email).await
        });
        match added.await {
            Err(Error::NotAllowed(reason)) => errors.add("email", reason),
            added => {
                let invitation = added.map_err(refusal)?;
                return Ok(member_forms::invited(cx, tenant, "Member added", &email, &invitation));
            }
        }
    }
    let state = FormState::refused(&cx.form, &errors);
    Ok(with_new_member(cx, tenant, &state).await?.status(StatusCode::UNPROCESSABLE_ENTITY))
}

/// Revokes a session of the account.
pub(crate) async fn revoke_session(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    cx.svc.dashboard().revoke(Some(tenant.id), cx.id::<SessionId>()?).await?;
    cx.site.check_sessions();
    Ok(cx.see_other("/settings?notice=session-revoked"))
}

/// Ends all sessions of the member who asks that show the account.
pub(crate) async fn sign_out_everywhere(cx: &Context<'_>, email: &Email) -> Result<PageResponse, PageError> {
    let Some(tenant) = cx.session.tenant_id else { return Ok(cx.see_other("/switch")) };
    cx.svc.dashboard().sign_out_everywhere(tenant, email.clone()).await?;
    cx.site.check_sessions();
    Ok(sign_in::signed_out(cx))
}
