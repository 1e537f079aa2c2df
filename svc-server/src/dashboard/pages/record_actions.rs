//! The actions on a record beside editing it: the steps of an invoice, what a customer decides about a quote, and
//! deleting and erasing a contact. A page shows the buttons that the record allows.

use serde_json::Value;
use svc_core::operation::AnyOperation;
use svc_core::personal::{self, ErasureCreate};
use svc_core::platform::operations::{CONVERT_QUOTE, INVOICE_JOB, PAY_INVOICE, REFUND_INVOICE, Records};
use svc_core::prelude::*;
use svc_core::resources::invoices::InvoiceStep;
use svc_core::store::Repository;
use svc_core::values::{Amount, RecordKind};
use uuid::Uuid;

use super::kinds::{BOOKINGS, CONTACTS, INVOICES, JOBS, Kind, QUOTES};
use super::record_forms::amount;
use crate::dashboard::contact_file;
use crate::dashboard::prelude::*;

/// Returns the button for a new record, for the heading of a list. Nothing for people who may not create one.
pub(super) fn new_button(cx: &Context<'_>, kind: &Kind) -> Markup {
    html! {
        @if cx.may(Role::Developer) {
            @if matches!(kind.records, RecordKind::Contact | RecordKind::Invoice) {
                a.button href=(cx.url(&format!("/import?kind={}", kind.collection))) { "Import" }
            }
            a.button.primary href=(cx.url(&kind.path("new"))) { "New " (kind.one) }
        }
    }
}

/// Returns the choice between new records. `query` is what the forms of those that belong to contacts begin with; without one, a
/// contact can be chosen too. The class `primary` marks it as the likeliest step.
pub(super) fn new_menu(cx: &Context<'_>, query: &str, class: &str) -> Markup {
    html! {
        @if cx.may(Role::Developer) {
            details.confirm {
                summary class={ "button " (class) } { "New " span aria-hidden="true" { "▾" } }
                div {
                    @let of_all = query.is_empty().then_some(&CONTACTS);
                    @for kind in of_all.into_iter().chain([&BOOKINGS, &QUOTES, &JOBS, &INVOICES]) {
                        @let path = kind.path("new");
                        a.button href=(cx.url(&if query.is_empty() { path } else { format!("{path}?{query}") })) { "New " (kind.one) }
                    }
                }
            }
        }
    }
}

/// Returns the buttons of a record, for the heading of its page, with the name of its contact in their questions. Nothing for people
/// who may not change it.
///
/// # Errors
///
/// [`Error::NotFound`] and [`Error::Store`].
pub(super) async fn buttons(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &Kind,
    id: Uuid,
    customer: Option<&str>,
) -> Result<Markup, Error> {
    if !cx.may(Role::Developer) {
        return Ok(html! {});
    }
    let account = cx.svc.account(tenant.id);
    let edit = html! { a.button href=(cx.url(&format!("{}/edit", kind.path(id)))) { "Edit" } };
    Ok(match kind.records {
        RecordKind::Contact => contact_buttons(cx, &account.contacts().get(id.into()).await?, &edit),
        RecordKind::Invoice => invoice_buttons(cx, &account.invoices().get(id.into()).await?, customer, &edit),
        RecordKind::Quote => quote_buttons(cx, &account.quotes().get(id.into()).await?, customer, &edit),
        RecordKind::Job => job_buttons(cx, &account.jobs().get(id.into()).await?, &edit),
        RecordKind::Booking => booking_buttons(cx, &account.bookings().get(id.into()).await?, &edit),
    })
}

fn contact_buttons(cx: &Context<'_>, contact: &Contact, edit: &Markup) -> Markup {
    html! {
        (new_menu(cx, &layout::query(&[("contact", &contact.id.to_string())]), "primary"))
        (edit)
    }
}

/// Returns the card with a contact's data as a file, and its deletion. It is open while one of its forms was refused.
pub(super) fn data_and_deletion(cx: &Context<'_>, contact: &Contact) -> Markup {
    let path = |action: &str| format!("/contacts/{}/{action}", contact.id);
    let question = format!(
        "Delete {}? Its invoices, quotes, bookings and jobs stay. It cannot be undone.",
        contact.display_name()
    );
    let is_refused = ["delete", "erase"].into_iter().any(|action| cx.problem_at(&path(action)).is_some());
    html! {
        details.card open[is_refused] {
            summary { h2 { "Data and deletion" } }
            div.actions {
                a.button href=(cx.url(&path("data"))) download { "All data" }
                (confirmed(cx, "Delete", &question, &path("delete"), version_field(contact.updated_at), "Delete"))
                @if cx.may(Role::Owner) { (erase_form(cx, contact, &path("erase"))) }
            }
        }
    }
}

/// Returns the form that erases a contact.
fn erase_form(cx: &Context<'_>, contact: &Contact, path: &str) -> Markup {
    let question = format!(
        "Erase {}? It is deleted, and its personal fields are emptied: in the contact, its jobs, the notes of its bookings and in \
         what events have of them. Numbers, amounts and times stay. It cannot be undone.",
        contact.display_name()
    );
    let reason = html! {
        div.field {
            label for="reason" { "Reason" }
            input id="reason" name="reason" type="text" required maxlength="500" value=(cx.form.text("reason")) autocomplete="off"
                aria-describedby="about-reason";
            div.soft id="about-reason" { "The audit log keeps it. Name nobody in it." }
        }
        (version_field(contact.updated_at))
    };
    html! { div.grave { (confirmed(cx, "Erase personal data", &question, path, reason, "Erase for good")) } }
}

/// Erases the contact in the path.
pub(crate) async fn erase(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let reason =
        cx.form.given("reason").ok_or_else(|| PageError::Invalid("Say why the contact is erased.".to_owned()))?;
    let reason = reason.parse().map_err(|issue| PageError::Invalid(format!("The reason {issue}.")))?;
    let (id, erasure) = (cx.id()?, ErasureCreate { reason });
    let input = (id, erasure.clone());
    let is_complete = submit(cx, tenant.id, "svc.contacts.erase", input, async |tx, form| {
        let (id, erasure) = &form.input;
        let contact = Repository::<Contact>::get(tx, form.tenant, *id).await?.ok_or(Error::NotFound)?;
        form.check_version(&contact.updated_at.to_string())?;
        Ok(personal::erase(tx, form.tenant, *id, erasure).await?.is_complete)
    });
    // A form that is sent again goes on where an erasure broke off.
    if !is_complete.await.map_err(refusal)? {
        cx.svc.account(tenant.id).contacts().erase(id, erasure).await?;
    }
    Ok(cx.see_other("/contacts?notice=contact-erased"))
}

/// Returns all that is known of the contact in the path, as a file.
pub(crate) async fn data(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let id: ContactId = cx.id()?;
    contact_file::respond(&cx.svc, tenant.id, id).await
}

fn invoice_buttons(cx: &Context<'_>, invoice: &Invoice, customer: Option<&str>, edit: &Markup) -> Markup {
    let path = |action: &str| format!("/invoices/{}/{action}", invoice.id);
    let version = || version_field(invoice.updated_at);
    let scale = invoice.currency.scale();
    let left = Amount::from_minor(invoice.total.minor() - invoice.amount_paid.minor(), scale);
    let shown = |amount: Amount| amount.in_currency(invoice.currency);
    let (number, total) = (&invoice.invoice_number, shown(invoice.total));
    let of = customer.map(|name| format!(", of {name}")).unwrap_or_default();
    html! {
        @if invoice.allows(InvoiceStep::Send) {
            (post_button(cx, &path("send"), "", version(), "Mark as sent"))
        }
        @if invoice.allows(InvoiceStep::Pay) {
            @let question = format!("{number}{of}: {} of {total} is left to pay.", shown(left));
            (amount_form(cx, &path("pay"), "Record a payment", &question, invoice, &left, "primary", "Record the payment"))
        }
        @if invoice.allows(InvoiceStep::Update) { (edit) }
        @if invoice.allows(InvoiceStep::Resend) {
            (post_button(cx, &path("resend"), "", version(), "Mark as sent again"))
        }
        @if invoice.allows(InvoiceStep::Refund) {
            @let question = format!("Refund {number}{of}, of which {} was paid. All of it cancels the invoice.",
                shown(invoice.amount_paid));
            (amount_form(cx, &path("refund"), "Refund", &question, invoice, &invoice.amount_paid, "danger", "Refund"))
        }
        @if invoice.allows(InvoiceStep::Void) {
            @let question = format!("Void {number}, {total}{of}? It cannot be undone.");
            (confirmed(cx, "Void", &question, &path("void"), version(), "Void"))
        }
    }
}

/// Returns an amount as people type it, with all of its decimals.
fn with_decimals(amount: &Amount) -> String {
    amount.grouped().replace(',', "")
}

/// The fields beside an amount, with their labels.
const NOTES: [(&str, &str); 2] = [("method", "Method"), ("reference", "Reference")];
/// The suggestions for the method of a payment.
const METHODS: [&str; 4] = ["Bank transfer", "Card", "Cash", "Cheque"];

/// Returns a form for an amount of an invoice, behind a button. Typed values stay when they are refused.
#[expect(clippy::too_many_arguments, reason = "the texts of a form, which say nothing without their names")]
fn amount_form(
    cx: &Context<'_>,
    path: &str,
    label: &str,
    question: &str,
    invoice: &Invoice,
    suggested: &Amount,
    class: &str,
    action: &str,
) -> Markup {
    let problem = cx.problem_at(path);
    let typed = problem.map_or_else(|| with_decimals(suggested), |_| cx.form.text("amount").to_owned());
    let id = format!("amount-{class}");
    html! {
        details.confirm open[problem.is_some()] {
            summary class={ "button " @if class == "primary" && !invoice.allows(InvoiceStep::Send) { (class) } } { (label) }
            form method="post" action=(cx.url(path)) {
                (hidden(cx, &Form::default(), &invoice.updated_at.to_string()))
                p { (question) }
                div.field {
                    label for=(id) { "Amount in " (invoice.currency) }
                    input id=(id) name="amount" type="text" inputmode="decimal" value=(typed) autocomplete="off"
                        aria-describedby={ "about-" (id) } aria-invalid=[problem.map(|_| "true")];
                    div id={ "about-" (id) } { @if let Some(reason) = problem { p.error role="alert" { (reason) } } }
                }
                @for (name, label) in NOTES {
                    @let id = format!("{name}-{class}");
                    div.field {
                        label for=(id) { (label) }
                        input id=(id) name=(name) type="text" value=(problem.map_or("", |_| cx.form.text(name))) autocomplete="off"
                            list=[(name == "method").then(|| format!("methods-{class}"))];
                    }
                }
                datalist id={ "methods-" (class) } { @for method in METHODS { option value=(method) {} } }
                button class=(class) type="submit" { (action) }
            }
        }
    }
}

fn quote_buttons(cx: &Context<'_>, quote: &Quote, customer: Option<&str>, edit: &Markup) -> Markup {
    let path = |action: &str| format!("/quotes/{}/{action}", quote.id);
    let total = quote.total.in_currency(quote.currency);
    let by = customer.map(|name| format!(" by {name}")).unwrap_or_default();
    let question =
        format!("Record that {}, {total}, was declined{by}? It cannot be accepted any more.", quote.quote_number);
    html! {
        @if quote.status == QuoteStatus::Accepted {
            details.confirm open[cx.problem_at(&path("convert")).is_some()] {
                summary.button.primary { "Make the job" }
                form method="post" action=(cx.url(&path("convert"))) {
                    (hidden(cx, &Form::default(), ""))
                    (problem(cx, &path("convert")))
                    div.field {
                        label for="title" { "What is to be done" }
                        input id="title" name="title" type="text" value=(cx.form.text("title")) autocomplete="off"
                            placeholder={ "Work for " (quote.quote_number) };
                    }
                    button.primary type="submit" { "Make the job" }
                }
            }
        }
        @if quote.status == QuoteStatus::Draft {
            (post_button(cx, &path("send"), "", version_field(quote.updated_at), "Mark as sent"))
        }
        @if quote.awaits_decision() {
            (post_button(cx, &path("accept"), "primary", version_field(quote.updated_at), "Mark as accepted"))
        }
        (edit)
        @if quote.awaits_decision() {
            (confirmed(cx, "Mark as declined", &question, &path("decline"), version_field(quote.updated_at), "Mark as declined"))
        }
    }
}

fn booking_buttons(cx: &Context<'_>, booking: &Booking, edit: &Markup) -> Markup {
    let path = |action: &str| format!("/bookings/{}/{action}", booking.id);
    let version = || version_field(booking.updated_at);
    let question = "Cancel the booking? The customer is not told by it.";
    let is_confirmed = booking.status == BookingStatus::Confirmed;
    html! {
        @if is_confirmed && booking.start_time <= cx.now {
            (post_button(cx, &path("complete"), "primary", version(), "Mark as completed"))
            (post_button(cx, &path("no-show"), "", version(), "Mark as no show"))
        }
        @if let (BookingStatus::Completed, Some(contact)) = (booking.status, booking.contact_id) {
            a.button.primary href=(cx.url(&INVOICES.path(format!("new?contact={contact}")))) { "New invoice" }
        }
        @if let (BookingStatus::Confirmed, Some(contact)) = (booking.status, booking.contact_id) {
            (new_menu(cx, &layout::query(&[("contact", &contact.to_string())]), ""))
        }
        @if is_confirmed && booking.start_time > cx.now {
            a.button.primary href=(cx.url(&format!("{}/edit#start_time", BOOKINGS.path(booking.id)))) { "Reschedule" }
        }
        (edit)
        @if is_confirmed {
            (confirmed(cx, "Cancel the booking", question, &path("cancel"), version(), "Cancel the booking"))
        }
    }
}

fn job_buttons(cx: &Context<'_>, job: &Job, edit: &Markup) -> Markup {
    let path = format!("/jobs/{}/invoice", job.id);
    let next = match job.status {
        // It begins with a time, without which it would be in no calendar.
        JobStatus::Quoted | JobStatus::OnHold if job.scheduled_start.is_none() => None,
        JobStatus::Quoted => Some(("schedule", "Mark as scheduled")),
        JobStatus::Scheduled | JobStatus::OnHold => Some(("start", "Start the job")),
        JobStatus::InProgress => Some(("complete", "Mark as completed")),
        JobStatus::Completed | JobStatus::Invoiced | JobStatus::Cancelled => None,
    };
    let invoice = if job.status == JobStatus::Completed { "button primary" } else { "button" };
    let problem = cx.problem_at(&path);
    let suggested = job.actual_total.or(job.estimated_total).as_ref().map(with_decimals).unwrap_or_default();
    let typed = problem.map_or(suggested.as_str(), |_| cx.form.text("amount"));
    html! {
        @if next.is_none() && matches!(job.status, JobStatus::Quoted | JobStatus::OnHold) { (schedule_form(cx, job)) }
        @if let Some((step, label)) = next {
            (post_button(cx, &format!("/jobs/{}/{step}", job.id), "primary", version_field(job.updated_at), label))
        }
        @if job.invoice_id.is_none() && job.status != JobStatus::Cancelled {
            details.confirm open[problem.is_some()] {
                summary class=(invoice) { "Make the invoice" }
                form method="post" action=(cx.url(&path)) {
                    (hidden(cx, &Form::default(), ""))
                    p { "Makes a draft invoice for " (job.job_number) ". Check the amount." }
                    @if job.status != JobStatus::Completed {
                        p.hint { "The job is not completed yet. It becomes invoiced, and leaves the overview. For a deposit, create a separate invoice." }
                    }
                    div.field {
                        label for="invoiced" { "Amount" }
                        input id="invoiced" name="amount" type="text" inputmode="decimal" value=(typed) autocomplete="off"
                            aria-describedby="about-invoiced" aria-invalid=[problem.map(|_| "true")];
                        div id="about-invoiced" { @if let Some(reason) = problem { p.error role="alert" { (reason) } } }
                    }
                    button.primary type="submit" { "Make the invoice" }
                }
            }
        }
        (edit)
    }
}

/// Returns the form that plans a job, behind a button.
fn schedule_form(cx: &Context<'_>, job: &Job) -> Markup {
    let path = format!("/jobs/{}/schedule", job.id);
    let problem = cx.problem_at(&path);
    html! {
        details.confirm open[problem.is_some()] {
            summary.button.primary { "Schedule" }
            form method="post" action=(cx.url(&path)) {
                (hidden(cx, &Form::default(), &job.updated_at.to_string()))
                @for (name, label) in PLANNED {
                    div.field {
                        label for=(name) { (label) }
                        input id=(name) name=(name) type="datetime-local" value=(cx.form.text(name)) required[name == PLANNED[0].0];
                    }
                }
                @if let Some(reason) = problem { p.error role="alert" { (reason) } }
                button.primary type="submit" { "Schedule the job" }
            }
        }
    }
}

/// The times of a job that is planned, with their labels.
const PLANNED: [(&str, &str); 2] = [("scheduled_start", "Starts"), ("scheduled_end", "Ends, if that is known")];

/// Marks the job in the path as scheduled, for the times of the form if it has any.
pub(crate) async fn schedule(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let mut body = serde_json::json!({ "status": JobStatus::Scheduled.as_str() });
    for (name, label) in PLANNED {
        if let Some(text) = cx.form.given(name) {
            let at = tenant.time_zone.time_of(text, "");
            let at = at.map_err(|issue| PageError::Invalid(format!("{label}: the time {issue}.")))?;
            body[name] = at.to_string().into();
        }
    }
    change(cx, tenant.id, &Records::<Job>::UPDATE, &body.to_string(), "/jobs/{id}?notice=saved").await
}

/// Makes the job of the quote in the path.
pub(crate) async fn make_job(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let body = match cx.form.given("title") {
        Some(title) => serde_json::json!({ "title": title }),
        None => serde_json::json!({}),
    };
    change(cx, tenant.id, &CONVERT_QUOTE, &body.to_string(), "/jobs/{id}?notice=created").await
}

/// The most decimals of a currency: that of a job's invoice is the one of its quote, whichever that is.
const MOST_DECIMALS: u8 = 4;

/// Makes the invoice of the job in the path.
pub(crate) async fn invoice_job(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let amount = amount(cx.form.text("amount"), MOST_DECIMALS).map_err(PageError::Invalid)?;
    change(cx, tenant.id, &INVOICE_JOB, &format!("{{\"total\":{amount}}}"), "/invoices/{id}?notice=created").await
}

/// Records a payment of the invoice in the path.
pub(crate) async fn pay(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    change_with_amount(cx, tenant, &PAY_INVOICE, "/invoices/{id}?notice=invoice-paid").await
}

/// Records a refund of the invoice in the path.
pub(crate) async fn refund(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    change_with_amount(cx, tenant, &REFUND_INVOICE, "/invoices/{id}?notice=invoice-refunded").await
}

async fn change_with_amount(
    cx: &Context<'_>,
    tenant: &Tenant,
    operation: &'static dyn AnyOperation,
    next: &str,
) -> Result<PageResponse, PageError> {
    let invoice = cx.svc.account(tenant.id).invoices().get(cx.id()?).await?;
    let amount = amount(cx.form.text("amount"), invoice.currency.scale()).map_err(PageError::Invalid)?;
    let note = |name: &str| cx.form.given(name).map(|text| format!(",\"{name}\":{}", Value::from(text)));
    let notes: String = NOTES.iter().filter_map(|(name, _)| note(name)).collect();
    change(cx, tenant.id, operation, &format!("{{\"amount\":{amount}{notes}}}"), next).await
}
