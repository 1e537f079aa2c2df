//! The records of an account, as the API returns them, and their history. Nothing here changes them: `record_forms` and
//! `record_actions` do.

mod list;
mod show;

use maud::{Markup, html};
use serde::Serialize;
use serde_json::{Map, Value};
use svc_core::accounts::tenants::Tenant;
use svc_core::error::{Error, StoreError};
use svc_core::prelude::*;
use uuid::Uuid;

pub(in crate::dashboard) use self::list::list;
pub(in crate::dashboard) use self::show::show;
use crate::dashboard::components::{Tone, badge, exact_time, number};
use crate::dashboard::context::Context;

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
pub(super) fn money(amount: &str, currency: Option<Currency>) -> String {
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
