//! The records of an account, as the API returns them, and their history. Nothing on these pages changes them.

use http::StatusCode;
use maud::{Markup, html};
use serde::Serialize;
use serde_json::{Map, Value};
use svc_core::accounts::tenants::Tenant;
use svc_core::error::{Error, StoreError};
use svc_core::pages::Limit;
use svc_core::prelude::*;
use uuid::Uuid;

use super::audit::entry_table;
use crate::dashboard::components::{Tone, badge, empty, exact_time, facts, heading, number, section, table};
use crate::dashboard::context::Context;
use crate::dashboard::layout;
use crate::dashboard::page_response::{PageError, PageResponse};

/// The number of records on a page.
const PAGE: u32 = 50;
/// The number of changes of the account among which the history of a record is looked for.
const HISTORY: u32 = 500;
/// The longest text in a list, in characters.
const MAX_TEXT: usize = 120;

/// Which of the facade's accessors has the records.
#[derive(Clone, Copy)]
enum Records {
    Contacts,
    Invoices,
    Quotes,
    Bookings,
    Jobs,
}

/// A kind of record.
pub(in crate::dashboard) struct Kind {
    records: Records,
    /// The path of its list, which is its collection in the API.
    collection: &'static str,
    title: &'static str,
    /// One record, for sentences.
    one: &'static str,
    icon: &'static str,
    /// What the search takes besides an id.
    search: &'static str,
    /// The statuses by which its list is filtered. None for a list without this filter.
    statuses: fn() -> Vec<&'static str>,
    /// The headings and the fields of the list, after the name.
    columns: &'static [(&'static str, &'static str)],
}

pub(in crate::dashboard) const CONTACTS: Kind = Kind {
    records: Records::Contacts,
    collection: "contacts",
    title: "Contacts",
    one: "contact",
    icon: "contact",
    search: "Email address or id",
    statuses: Vec::new,
    columns: &[("Email", "email"), ("Company", "company_name"), ("Phone", "phone"), ("Created", "created_at")],
};
pub(in crate::dashboard) const INVOICES: Kind = Kind {
    records: Records::Invoices,
    collection: "invoices",
    title: "Invoices",
    one: "invoice",
    icon: "invoice",
    search: "Number or id",
    statuses: || InvoiceStatus::ALL.iter().map(|status| status.as_str()).collect(),
    columns: &[("Status", "status"), ("Total", "total"), ("Due", "due_date"), ("Created", "created_at")],
};
pub(in crate::dashboard) const QUOTES: Kind = Kind {
    records: Records::Quotes,
    collection: "quotes",
    title: "Quotes",
    one: "quote",
    icon: "quote",
    search: "Id",
    statuses: || QuoteStatus::ALL.iter().map(|status| status.as_str()).collect(),
    columns: &[("Status", "status"), ("Total", "total"), ("Valid until", "valid_until"), ("Created", "created_at")],
};
pub(in crate::dashboard) const BOOKINGS: Kind = Kind {
    records: Records::Bookings,
    collection: "bookings",
    title: "Bookings",
    one: "booking",
    icon: "booking",
    search: "Id",
    statuses: Vec::new,
    columns: &[("Status", "status"), ("Starts", "start_time"), ("Ends", "end_time"), ("Created", "created_at")],
};
pub(in crate::dashboard) const JOBS: Kind = Kind {
    records: Records::Jobs,
    collection: "jobs",
    title: "Jobs",
    one: "job",
    icon: "job",
    search: "Number or id",
    statuses: || JobStatus::ALL.iter().map(|status| status.as_str()).collect(),
    columns: &[("Title", "title"), ("Status", "status"), ("Scheduled", "scheduled_start"), ("Created", "created_at")],
};

/// A page of records as JSON objects, and where the next page begins.
type Found = (Vec<Map<String, Value>>, Option<Uuid>);

fn objects<R: Serialize>(page: Page<R>) -> Result<Found, Error> {
    let records = page.data.iter().map(object).collect::<Result<_, _>>()?;
    Ok((records, page.next_cursor))
}

fn object(record: &impl Serialize) -> Result<Map<String, Value>, Error> {
    match serde_json::to_value(record) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(StoreError::Internal(format!("a record is not an object: {other}")).into()),
        Err(error) => Err(StoreError::Internal(error.to_string()).into()),
    }
}

/// Returns a page of records. `search` and `status` are as they were sent.
async fn find(
    account: Account<'_>,
    kind: &Kind,
    params: ListParams,
    search: &str,
    status: &str,
) -> Result<Found, Error> {
    fn parsed<T, I: std::fmt::Display>(
        field: &'static str,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, I>,
    ) -> Result<Option<T>, Error> {
        let parse = |text| parse(text).map_err(|issue| Error::NotAllowed(format!("The {field} {issue}.")));
        (!text.is_empty()).then_some(text).map(parse).transpose()
    }
    let known = "is not one of those that there are";
    match kind.records {
        Records::Contacts => {
            let email = parsed("email address", search, Email::parse)?;
            objects(account.contacts().list(ContactFilter { email, ..ContactFilter::default() }, params).await?)
        }
        Records::Invoices => {
            let status = parsed("status", status, |text| InvoiceStatus::from_text(text).ok_or(known))?;
            let number = parsed("number", search, Text::parse)?;
            objects(account.invoices().list(InvoiceFilter { status, number }, params).await?)
        }
        Records::Quotes => {
            let status = parsed("status", status, |text| QuoteStatus::from_text(text).ok_or(known))?;
            objects(account.quotes().list(QuoteFilter { status }, params).await?)
        }
        Records::Bookings => objects(account.bookings().list(NoFilter {}, params).await?),
        Records::Jobs => {
            let status = parsed("status", status, |text| JobStatus::from_text(text).ok_or(known))?;
            let job_number = parsed("number", search, Text::parse)?;
            objects(account.jobs().list(JobFilter { status, job_number }, params).await?)
        }
    }
}

async fn get(account: Account<'_>, kind: &Kind, id: Uuid) -> Result<Map<String, Value>, Error> {
    match kind.records {
        Records::Contacts => object(&account.contacts().get(id.into()).await?),
        Records::Invoices => object(&account.invoices().get(id.into()).await?),
        Records::Quotes => object(&account.quotes().get(id.into()).await?),
        Records::Bookings => object(&account.bookings().get(id.into()).await?),
        Records::Jobs => object(&account.jobs().get(id.into()).await?),
    }
}

/// Lists the records, or finds some.
pub(in crate::dashboard) async fn list(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &Kind,
) -> Result<PageResponse, PageError> {
    let (search, status) = (cx.query.text("search"), cx.query.text("status"));
    let path = format!("/{}", kind.collection);
    if let Ok(id) = search.parse::<Uuid>() {
        return Ok(PageResponse::see_other(&cx.url(&format!("{path}/{id}"))));
    }
    let cursor = cx.query.given("cursor").and_then(|cursor| cursor.parse::<Uuid>().ok());
    let params = ListParams { limit: Limit::new(PAGE), cursor: cursor.map(Into::into), ..ListParams::default() };
    let found = match find(cx.svc.account(tenant.id), kind, params, search, status).await {
        Ok(found) => Ok(found),
        Err(Error::NotAllowed(reason)) => Err(reason),
        Err(Error::InvalidCursor) => Err(Error::InvalidCursor.to_string()),
        Err(other) => return Err(other.into()),
    };
    let is_filtered = !search.is_empty() || !status.is_empty();
    let content = html! {
        (heading(kind.title, "", filters(cx, kind, &path, search, status)))
        @match &found {
            Err(reason) => { p.banner.bad role="alert" { (reason) } }
            Ok((records, _)) if records.is_empty() && is_filtered => {
                (empty(kind.icon, "Nothing found", &format!("No {} matches.", kind.one),
                    html! { a.button href=(cx.url(&path)) { "Show all" } }))
            }
            Ok((records, _)) if records.is_empty() => {
                (none_yet(tenant, kind))
            }
            Ok((records, next)) => {
                (record_table(cx, tenant, kind, records))
                @if next.is_some() || cursor.is_some() {
                    nav.pages aria-label="Pages of the list" {
                        @if cursor.is_some() { a.button href=(cx.url(&path)) { "Newest" } } @else { span {} }
                        @if let Some(next) = next {
                            @let next = next.to_string();
                            @let query = layout::query(&[("search", search), ("status", status), ("cursor", &next)]);
                            a.button href=(cx.url(&format!("{path}?{query}"))) { "Older" }
                        }
                    }
                }
            }
        }
    };
    let response = layout::page(cx, Some(tenant), kind.title, &content);
    Ok(if found.is_err() { response.status(StatusCode::UNPROCESSABLE_ENTITY) } else { response })
}

/// Says where the records of an account that has none come from.
fn none_yet(tenant: &Tenant, kind: &Kind) -> Markup {
    let title = format!("No {} yet", kind.collection);
    match kind.records {
        Records::Invoices => empty(
            kind.icon,
            &title,
            "The service itself creates invoices, over the platform API or with svc. The API of the account reads them.",
            html! { pre { code { "svc invoice create --account " (tenant.id) " --total 149.50" } } },
        ),
        Records::Contacts | Records::Quotes | Records::Bookings | Records::Jobs => empty(
            kind.icon,
            &title,
            "Programs create them through the API.",
            html! { pre { code { "POST /api/v1/" (kind.collection) } } },
        ),
    }
}

fn filters(cx: &Context<'_>, kind: &Kind, path: &str, search: &str, status: &str) -> Markup {
    let statuses = (kind.statuses)();
    html! {
        form.filters method="get" action=(cx.url(path)) role="search" {
            @if !statuses.is_empty() {
                select name="status" aria-label="Status" {
                    option value="" { "All statuses" }
                    @for known in &statuses {
                        option value=(known) selected[*known == status] { (words(known)) }
                    }
                }
            }
            input type="search" name="search" value=(search) placeholder=(kind.search) aria-label=(kind.search);
            button type="submit" { "Search" }
        }
    }
}

fn record_table(cx: &Context<'_>, tenant: &Tenant, kind: &Kind, records: &[Map<String, Value>]) -> Markup {
    let headings: Vec<&str> = std::iter::once("Name").chain(kind.columns.iter().map(|(heading, _)| *heading)).collect();
    table(
        kind.title,
        &headings,
        html! {
            @for record in records {
                tr {
                    th scope="row" {
                        a href=(cx.url(&format!("/{}/{}", kind.collection, text(record, "id")))) { (short(&name(kind, record))) }
                    }
                    @for (_, field) in kind.columns {
                        td { (value(cx, tenant, record, field)) }
                    }
                }
            }
        },
    )
}

/// Returns what people call a record.
fn name(kind: &Kind, record: &Map<String, Value>) -> String {
    let fields: &[&str] = match kind.records {
        Records::Contacts => &["first_name", "last_name"],
        Records::Invoices => &["invoice_number"],
        Records::Quotes => &["quote_number"],
        Records::Bookings => &["service_name"],
        Records::Jobs => &["job_number"],
    };
    let names: Vec<&str> = fields.iter().map(|field| text(record, field)).filter(|name| !name.is_empty()).collect();
    let others = ["company_name", "email"].map(|field| text(record, field));
    match names.join(" ") {
        named if !named.is_empty() => named,
        _ => others
            .into_iter()
            .find(|other| !other.is_empty())
            .map_or_else(|| format!("Unnamed {}", kind.one), str::to_owned),
    }
}

fn text<'r>(record: &'r Map<String, Value>, field: &str) -> &'r str {
    record.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the name of a field or a status for people.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Returns the value of a field, by what its name says that it is.
fn value(cx: &Context<'_>, tenant: &Tenant, record: &Map<String, Value>, field: &str) -> Markup {
    let nothing = html! { span.soft { "–" } };
    match (field, record.get(field)) {
        (_, None | Some(Value::Null)) => nothing,
        ("status", Some(Value::String(status))) => badge(status_tone(status), &words(status)),
        ("total" | "amount_paid" | "estimated_total" | "actual_total", Some(amount)) => {
            let currency = Currency::parse(text(record, "currency")).ok();
            html! { span.fixed { (money(&amount.to_string(), currency)) } }
        }
        ("contact_id" | "quote_id" | "invoice_id", Some(Value::String(id))) => {
            let collection = field.replace("_id", "s");
            html! { a href=(cx.url(&format!("/{collection}/{id}"))) { code { (id) } } }
        }
        (_, Some(Value::String(content))) => match Timestamp::parse(content) {
            Ok(at) => exact_time(&tenant.time_zone, at),
            Err(_) => html! { (short(content)) },
        },
        (_, Some(other)) => html! { (short(&other.to_string())) },
    }
}

/// Returns an amount with all decimals of its currency, such as `15,680.00 AUD`. Jobs have amounts without a currency.
fn money(amount: &str, currency: Option<Currency>) -> String {
    let (whole, decimals) = amount.split_once('.').unwrap_or((amount, ""));
    let places = currency.map_or(decimals.len(), |currency| usize::from(currency.scale()));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), number);
    let amount = if places == 0 { whole } else { format!("{whole}.{decimals:0<places$}") };
    currency.map_or_else(|| amount.clone(), |currency| format!("{amount} {currency}"))
}

fn status_tone(status: &str) -> Tone {
    match status {
        "paid" | "accepted" | "completed" | "confirmed" | "invoiced" => Tone::Good,
        "overdue" | "declined" | "no_show" => Tone::Bad,
        "partial" | "on_hold" | "expired" | "refunded" => Tone::Warn,
        _ => Tone::Neutral,
    }
}

/// Shows one record with its history.
pub(in crate::dashboard) async fn show(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &Kind,
) -> Result<PageResponse, PageError> {
    let id: Uuid = cx.id()?;
    let account = cx.svc.account(tenant.id);
    let record = get(account, kind, id).await?;
    let mut history = account.audit_log().before(None, HISTORY).await?;
    history.retain(|entry| entry.object_id == id);
    let name = name(kind, &record);
    let fields: Vec<(String, Markup)> =
        record.keys().map(|field| (words(field), value(cx, tenant, &record, field))).collect();
    let fields: Vec<(&str, Markup)> = fields.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let content = html! {
        p { a href=(cx.url(&format!("/{}", kind.collection))) { (kind.title) } }
        (heading(&short(&name), "", html! {}))
        (section("Fields", facts(&fields)))
        section.card {
            div {
                h2 { "History" }
                p.soft { "Its changes among the newest " (HISTORY) " of the account." }
            }
            @if history.is_empty() {
                p { "There are none." }
            } @else {
                (entry_table(cx, &tenant.time_zone, &history))
            }
        }
    };
    Ok(layout::page(cx, Some(tenant), &short(&name), &content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_decimals_of_their_currency() {
        let currency = |code| Some(Currency::parse(code).unwrap());
        for (amount, code, shown) in [
            ("15680", currency("AUD"), "15,680.00 AUD"),
            ("149.5", currency("AUD"), "149.50 AUD"),
            ("1200", currency("JPY"), "1,200 JPY"),
            ("0.125", currency("KWD"), "0.125 KWD"),
            ("420.5", None, "420.5"),
        ] {
            assert_eq!(money(amount, code), shown);
        }
    }
}
