//! An invoice or a quote on paper, and the link with which its customer sees it.

use serde_json::{Map, Value};
use svc_core::accounts::shared_links::{self, SharedLink, SharedLinkPurpose};
use svc_core::error::Error;
use svc_core::prelude::InvoiceStatus;
use svc_core::shared_documents::{self, SharedDocument};
use svc_core::values::{Amount, RecordKind, TenantId};
use uuid::Uuid;

use super::kinds::{Kind, of_path};
use super::records::text;
use crate::dashboard::paper;
use crate::dashboard::prelude::*;

/// The field with the version of a draft that is to be marked as sent, and the change of the list that does so.
const SEND: &str = "send";

/// Returns the purpose of the links of a kind of record, if it is one that customers see.
fn purpose_of(kind: &Kind) -> Option<SharedLinkPurpose> {
    match kind.records {
        RecordKind::Invoice => Some(SharedLinkPurpose::Invoice),
        RecordKind::Quote => Some(SharedLinkPurpose::Quote),
        RecordKind::Contact | RecordKind::Booking | RecordKind::Job => None,
    }
}

/// Returns the kind, the purpose and the id of the record in the path.
fn record(cx: &Context<'_>) -> Result<(&'static Kind, SharedLinkPurpose, Uuid), PageError> {
    let kind = of_path(cx.path)?;
    Ok((kind, purpose_of(kind).ok_or(PageError::NotFound)?, cx.id()?))
}

async fn document(
    cx: &Context<'_>,
    tenant: TenantId,
    purpose: SharedLinkPurpose,
    id: Uuid,
) -> Result<SharedDocument, Error> {
    let input = (tenant, purpose, id);
    let read = cx.svc.store().read("dashboard.document", input, async |tx, &(tenant, purpose, id)| {
        tx.read_as(tenant)?;
        shared_documents::read(tx, tenant, purpose, id).await
    });
    read.await
}

/// Returns the link to the page that is printed: nothing for records that customers do not see.
pub(super) fn print_button(cx: &Context<'_>, kind: &Kind, id: Uuid) -> Markup {
    html! {
        @if purpose_of(kind).is_some() { a.button href=(cx.url(&format!("{}/print", kind.path(id)))) { "Print" } }
    }
}

/// Shows the record in the path as it is printed.
pub(crate) async fn print(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let (kind, purpose, id) = record(cx)?;
    let document = document(cx, tenant.id, purpose, id).await?;
    let actions = html! {
        div.actions {
            a.button href=(cx.url(&kind.path(id))) { "Back" }
            button.primary.js type="button" data-print { "Print" }
        }
        @if tenant.address.is_none() {
            p.hint { "The address, the tax number and the payment details of the business are in its " a href=(cx.url("/settings")) { "settings" } "." }
        }
    };
    Ok(paper::page(cx.site, &document, &actions))
}

/// Returns whether the customer is yet to pay an invoice or to decide about a quote with this status.
pub(super) fn is_open(status: &str) -> bool {
    matches!(status, "draft" | "sent" | "viewed" | "overdue" | "partial")
}

/// Returns the part of the page of a record about its link: nothing for records that customers do not see.
pub(super) async fn card(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &Kind,
    id: Uuid,
    record: &Map<String, Value>,
) -> Result<Markup, Error> {
    let Some(purpose) = purpose_of(kind) else { return Ok(html! {}) };
    let status = text(record, "status");
    let input = (tenant.id, purpose, id);
    let link = cx.svc.store().read("dashboard.shared_link", input, async |tx, &(tenant, purpose, id)| {
        tx.read_as(tenant)?;
        shared_links::get(tx, tenant, purpose, Some(id)).await
    });
    let link = link.await?;
    let messages = match &link {
        Some(link) if cx.may(Role::Developer) => messages(cx, tenant, kind, id, link).await?,
        _ => Vec::new(),
    };
    let may_send = cx.may(Role::Developer) && is_open(status);
    let title = match (may_send, status) {
        (false, _) => "Link for the customer",
        (true, "overdue") => "Send a reminder",
        (true, _) => "Send to the customer",
    };
    let (is_draft, is_next) = (status == "draft", is_open(status) && status != "draft");
    let content = html! {
        @if may_send && is_draft {
            @if link.is_some() { p { "First mark it as sent: until then, the customer sees a draft." } }
            @else { (post_button(cx, &format!("{}/share", kind.path(id)), "primary", html! {
                (version_of(None))
                input type="hidden" name=(SEND) value=(text(record, "updated_at"));
            }, "Mark as sent and make a link")) }
        }
        (about(cx, tenant, kind, id, is_next, link.as_ref(), &messages))
    };
    Ok(section(title, content))
}

/// Returns what begins a message with a link to the customer of its record: the labels with the URLs, as far as it is known how the
/// customer is reached.
async fn messages(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &Kind,
    id: Uuid,
    link: &SharedLink,
) -> Result<Vec<(&'static str, String)>, Error> {
    let account = cx.svc.account(tenant.id);
    let (number, what, contact) = match kind.records {
        RecordKind::Quote => {
            let quote = account.quotes().get(id.into()).await?;
            let what = format!("here is quote {} for {}", quote.quote_number, quote.total.in_currency(quote.currency));
            (quote.quote_number, what, quote.contact_id)
        }
        _ => {
            let invoice = account.invoices().get(id.into()).await?;
            let amount = |amount: Amount| amount.in_currency(invoice.currency);
            let what = match (invoice.status, invoice.due_date) {
                (InvoiceStatus::Overdue, Some(due)) => format!(
                    "a reminder: invoice {}, of which {} is to be paid, was due {}",
                    invoice.invoice_number,
                    amount(invoice.outstanding()),
                    due.in_words()
                ),
                (InvoiceStatus::Paid | InvoiceStatus::Cancelled, _) | (_, None) => {
                    format!("here is invoice {} for {}", invoice.invoice_number, amount(invoice.total))
                }
                (_, Some(due)) => format!(
                    "here is invoice {}, of which {} is to be paid by {}",
                    invoice.invoice_number,
                    amount(invoice.outstanding()),
                    due.in_words()
                ),
            };
            (invoice.invoice_number, what, invoice.contact_id)
        }
    };
    let Some(contact) = contact else { return Ok(Vec::new()) };
    let Some(contact) = if_found(account.contacts().get(contact).await)? else { return Ok(Vec::new()) };
    let subject = format!("{} {number} of {}", capitalized(kind.one), tenant.name);
    let (name, address) = (contact.display_name(), address(cx, link));
    let body = format!("Hello {name},\n\n{what}:\n{address}\n\n{}", tenant.name);
    let email = contact.email.map(|email| ("Email the link", mailto(email.as_str(), &subject, &body)));
    let phone = contact.phone.map(|phone| ("Text the link", sms(phone.as_str(), &body)));
    Ok(email.into_iter().chain(phone).collect())
}

fn about(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &Kind,
    id: Uuid,
    is_next: bool,
    link: Option<&SharedLink>,
    messages: &[(&str, String)],
) -> Markup {
    let path = |action: &str| format!("{}/{action}", kind.path(id));
    let what = match kind.records {
        RecordKind::Quote => "can see this quote, and accept or decline it once it is sent",
        _ => "can see this invoice",
    };
    html! {
        p.soft { "Anyone who has the link " (what) ", without signing in. It also ends when the contact is deleted." }
        @match link {
            None => {
                @if cx.may(Role::Developer) {
                    div.actions { (post_button(cx, &path("share"), if is_next { "primary" } else { "" }, version_of(None), if is_next { "Make a link to send" } else { "Make a link" })) }
                } @else {
                    p { "There is none." }
                }
            }
            Some(link) if cx.may(Role::Developer) => {
                (copyable("link", "Link", &address(cx, link)))
                p.hint { "Made " (time(cx.now, &tenant.time_zone, link.created_at)) "." }
                div.actions {
                    @for (at, (label, url)) in messages.iter().enumerate() {
                        a.button.primary[is_next && at == 0] href=(url) { (label) }
                    }
                    (confirmed(cx, "New link", "The address that the customer has ends.", &path("share"), version_of(Some(link)),
                        "Make a new link"))
                    (confirmed(cx, "End the link", "The address that the customer has ends at once.", &path("unshare"),
                        version_of(Some(link)), "End the link"))
                }
            }
            Some(link) => { p { "There is one, made " (time(cx.now, &tenant.time_zone, link.created_at)) "." } }
        }
    }
}

/// Returns the address of a link, as people outside of the network open it.
pub(super) fn address(cx: &Context<'_>, link: &SharedLink) -> String {
    format!("{}{}", cx.public_address(), link.path())
}

/// Returns the field with the version of the link that a form makes, renews or ends.
pub(super) fn version_of(link: Option<&SharedLink>) -> Markup {
    version_field(link_version(link))
}

/// Returns the version of a link, which a renewal changes.
pub(super) fn link_version(link: Option<&SharedLink>) -> String {
    link.map_or_else(|| "none".to_owned(), |link| link.created_at.to_string())
}

/// Makes or renews the link of the record in the path, and marks a draft as sent if the form has its version for that.
pub(crate) async fn share(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let (kind, purpose, id) = record(cx)?;
    let send = match (cx.form.given(SEND), kind.bulk.iter().find(|change| change.name == SEND)) {
        (Some(shown), Some(send)) => {
            let current = parse(cx, kind.update.current.ok_or(PageError::NotFound)?, "")?;
            Some((parse(cx, send.operation, send.body)?, current, shown.to_owned()))
        }
        _ => None,
    };
    let share = submit(cx, tenant.id, "dashboard.share", (purpose, id, send), async |tx, form| {
        let (purpose, id, send) = (form.input.0, form.input.1, &form.input.2);
        let before = shared_links::get(tx, form.tenant, purpose, Some(id)).await?;
        form.check_version(&link_version(before.as_ref()))?;
        if let Some((send, current, shown)) = send {
            if version(tx, &**current, form.tenant, id).await? != *shown {
                return Err(Error::PreconditionFailed);
            }
            send.run(tx, form.tenant, id).await?;
        }
        shared_documents::share(tx, form.tenant, purpose, id, before.is_some()).await.map(drop)
    });
    share.await.map_err(refusal)?;
    Ok(cx.see_other(&format!("{}?notice=link-made", kind.path(id))))
}

/// Ends the link of the record in the path.
pub(crate) async fn unshare(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let (kind, purpose, id) = record(cx)?;
    let ended = submit(cx, tenant.id, "dashboard.unshare", (purpose, id), async |tx, form| {
        let (purpose, id) = form.input;
        let before = shared_links::get(tx, form.tenant, purpose, Some(id)).await?;
        form.check_version(&link_version(before.as_ref()))?;
        shared_documents::unshare(tx, form.tenant, purpose, id).await
    });
    ended.await.map_err(refusal)?;
    Ok(cx.see_other(&format!("{}?notice=link-ended", kind.path(id))))
}
