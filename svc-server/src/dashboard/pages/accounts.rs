//! The accounts, for operators.

use std::num::NonZeroU32;

use http::StatusCode;
use svc_core::accounts::limits::{CappedCollection, parse_limit, parse_max_webhooks};
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::platform::{AccountUpdate, AtLeastOne, WebhookCount, WriteLimitChanges};
use svc_core::values::{Patch, TenantId};

use super::settings::save_account;
use crate::dashboard::prelude::*;

/// The number of accounts on a page.
const PAGE: usize = 50;
/// The number of accounts among which one page searches.
const SEARCHED: u32 = 1_000;

/// Lists the accounts, or those whose name contains what is searched.
pub(crate) async fn list(cx: &Context<'_>) -> Result<PageResponse, PageError> {
    let search = cx.query.text("search");
    let after = cx.query.given("after").and_then(|id| id.parse::<TenantId>().ok());
    let mut tenants = cx.svc.accounts().list(after, SEARCHED).await?;
    let read_all = tenants.len() < SEARCHED as usize;
    let last_read = tenants.last().map(|tenant| tenant.id);
    let wanted = search.to_lowercase();
    tenants.retain(|tenant| tenant.name.to_lowercase().contains(&wanted) || tenant.id.to_string() == wanted);
    let more = tenants.len() > PAGE;
    tenants.truncate(PAGE);
    let next = if more { tenants.last().map(|tenant| tenant.id) } else { last_read.filter(|_| !read_all) };
    let content = html! {
        (heading("Accounts", "The businesses on this server, oldest first.", html! {
            form.filters method="get" action=(cx.url("/accounts")) role="search" {
                input type="search" name="search" value=(search) placeholder="Name or id" aria-label="Search by name or id";
                button type="submit" { "Search" }
            }
        }))
        @if tenants.is_empty() && search.is_empty() && after.is_none() {
            (empty("account", "No accounts yet", "An account is created on the server.", html! {
                pre { code { "svc account create --name 'Harbour Plumbing'" } }
            }))
        } @else if tenants.is_empty() {
            (empty("account", "Nothing found", "No account that was searched has this name or id.", html! {}))
        } @else {
            (table("Accounts", &["Name", "Developer access", "Time zone", "Currency", "Created"], html! {
                @for tenant in &tenants {
                    tr {
                        th scope="row" {
                            a href=(cx.url(&format!("/accounts/{}", tenant.id))) { (tenant.name) }
                            div.soft { code { (tenant.id) } }
                        }
                        td { (access(tenant)) }
                        td { (tenant.time_zone) }
                        td { (tenant.currency) }
                        td { (time(cx.now, &tenant.time_zone, tenant.created_at)) }
                    }
                }
            }))
        }
        @if let Some(next) = next {
            (page_links("More accounts", None, html! {
                a.button href=(cx.url(&format!("/accounts?{}", layout::query(&[("search", search), ("after", &next.to_string())])))) {
                    "Next"
                }
            }))
        }
    };
    Ok(layout::page(cx, None, "Accounts", &content))
}

fn access(tenant: &Tenant) -> Markup {
    let tone = match tenant.developer_access {
        DeveloperAccess::Approved => Tone::Good,
        DeveloperAccess::Pending => Tone::Warn,
        DeveloperAccess::Suspended => Tone::Bad,
    };
    badge(tone, tenant.developer_access.as_str())
}

/// Shows one account.
pub(crate) async fn show(cx: &Context<'_>) -> Result<PageResponse, PageError> {
    let tenant = cx.svc.accounts().get(cx.id()?).await?;
    let values = limits_form(&tenant);
    let state = FormState::new(&values);
    Ok(detail(cx, &tenant, &state))
}

fn detail(cx: &Context<'_>, tenant: &Tenant, limits: &FormState<'_>) -> PageResponse {
    let path = |action: &str| format!("/accounts/{}/{action}", tenant.id);
    let link = |id: TenantId| html! { a href=(cx.url(&format!("/accounts/{id}"))) { code { (id) } } };
    let sandbox = tenant.sandbox_id.map(|id| ("Sandbox", link(id)));
    let owner = tenant.sandbox_of.map(|id| ("Sandbox of", link(id)));
    let actions = html! {
        @match tenant.developer_access {
            // It follows that of the account.
            _ if tenant.is_sandbox() => {}
            DeveloperAccess::Approved => {
                (confirmed(cx, "Withdraw access", &format!("Requests with the keys of {} are refused at once. Its data is kept.", tenant.name),
                    &path("access"), html! { input type="hidden" name="access" value="suspended"; }, "Withdraw access"))
            }
            _ => {
                (post_button(cx, &path("access"), "", html! { input type="hidden" name="access" value="approved"; },
                    "Approve access"))
            }
        }
        (post_button(cx, &path("view"), "primary", html! {}, "View as this account"))
    };
    let mut known = vec![
        ("Id", html! { code { (tenant.id) } }),
        ("Developer access", access(tenant)),
        ("Time zone", html! { (tenant.time_zone) }),
        ("Currency", html! { (tenant.currency) }),
        ("Created", exact_time(&tenant.time_zone, tenant.created_at)),
    ];
    known.extend(sandbox.into_iter().chain(owner));
    let content = html! {
        (heading(&tenant.name, "", actions))
        (section("Account", facts(&known)))
        (edit_form(cx, limits, EditForm { path: &path("limits"), top: html! {
            h2 { "Limits" }
            p.hint { "An empty field means the limit of the server. Rates are requests of one key per minute." }
            (problem(cx, &path("limits")))
        }, version: &limits_form(tenant).digest(), fields: html! {
            (limits.text("rate_limit", "All requests", ""))
            @for collection in CappedCollection::ALL {
                (limits.text(collection.as_str(), &format!("Writes of {collection}"), ""))
            }
            (limits.text("max_webhooks", "Webhook endpoints", "From 1 to 1000."))
        }, action: "Save limits", others: html! {} }))
    };
    layout::page(cx, None, &tenant.name, &content)
}

/// Returns the limits of an account as the fields of their form.
fn limits_form(tenant: &Tenant) -> Form {
    let text = |limit: Option<u32>| limit.map(|limit| limit.to_string()).unwrap_or_default();
    let of = |limit: Option<NonZeroU32>| text(limit.map(NonZeroU32::get));
    let mut fields = vec![("rate_limit", of(tenant.limits.rate_limit)), ("max_webhooks", text(tenant.max_webhooks))];
    let writes = CappedCollection::ALL.iter().copied();
    fields.extend(writes.map(|c| (c.as_str(), of(tenant.limits.write_rate_limits.of(c)))));
    Form::from_fields(fields)
}

/// Sets the limits of an account.
pub(crate) async fn set_limits(cx: &Context<'_>) -> Result<PageResponse, PageError> {
    let tenant = cx.svc.accounts().get(cx.id()?).await?;
    let mut errors = Errors::default();
    let mut limit = |field: &'static str| {
        let given = cx.form.given(field)?;
        errors.take(field, parse_limit(given).map_err(|issue| format!("The limit {issue}.")))
    };
    let rate_limit = limit("rate_limit").map(AtLeastOne);
    let writes = CappedCollection::ALL.iter().map(|collection| (*collection, limit(collection.as_str()))).collect();
    let max_webhooks = cx.form.given("max_webhooks").and_then(|given| {
        errors.take("max_webhooks", parse_max_webhooks(given).map_err(|issue| format!("The number {issue}.")))
    });
    if !errors.is_empty() {
        let state = FormState::refused(&cx.form, &errors);
        return Ok(detail(cx, &tenant, &state).status(StatusCode::UNPROCESSABLE_ENTITY));
    }
    let change = AccountUpdate {
        rate_limit: Patch::Set(rate_limit),
        write_rate_limits: Patch::Set(WriteLimitChanges(writes)),
        max_webhooks: Patch::Set(max_webhooks.map(WebhookCount)),
        ..AccountUpdate::default()
    };
    save_account(cx, tenant.id, limits_form, change).await?;
    Ok(cx.see_other(&format!("/accounts/{}?notice=saved", tenant.id)))
}

/// Approves or withdraws the developer access of an account.
pub(crate) async fn set_access(cx: &Context<'_>) -> Result<PageResponse, PageError> {
    let access = match cx.form.text("access") {
        "approved" => DeveloperAccess::Approved,
        "suspended" => DeveloperAccess::Suspended,
        _ => return Err(PageError::Invalid("Choose whether access is approved or withdrawn.".to_owned())),
    };
    let tenant: TenantId = cx.id()?;
    cx.svc.account(tenant).change_settings(move |tenant| tenant.developer_access = access).await?;
    Ok(cx.see_other(&format!("/accounts/{tenant}?notice=saved")))
}

/// Shows the pages of an account to the operator.
pub(crate) async fn view(cx: &Context<'_>) -> Result<PageResponse, PageError> {
    cx.svc.dashboard().view(cx.session.id, Some(cx.id()?)).await?;
    cx.site.check_sessions();
    Ok(cx.see_other("/"))
}

/// Shows the pages of no account any more.
pub(crate) async fn leave(cx: &Context<'_>) -> Result<PageResponse, PageError> {
    let viewed = cx.session.viewed_tenant_id;
    cx.svc.dashboard().view(cx.session.id, None).await?;
    cx.site.check_sessions();
    Ok(cx.see_other(&viewed.map_or("/accounts".to_owned(), |tenant| format!("/accounts/{tenant}"))))
}
