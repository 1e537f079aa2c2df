//! The fields of records for people.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use svc_core::error::Error;
use svc_core::prelude::*;
use svc_core::values::JOB_SCALE;
use uuid::Uuid;

use super::get;
use crate::dashboard::pages::kinds::{CONTACTS, INVOICES, Kind, QUOTES};
use crate::dashboard::prelude::*;

/// The longest text in a list, in characters.
const MAX_TEXT: usize = 120;

/// The context for showing fields of records.
pub(crate) struct FieldValues<'a> {
    cx: &'a Context<'a>,
    tenant: &'a Tenant,
    names: ContactNames,
    /// The numbers of the quotes and invoices that records name, by their ids.
    numbers: BTreeMap<Uuid, String>,
}

/// The fields of records that name a quote or an invoice, with its kind.
const NUMBERED: [(&str, &Kind); 2] = [("quote_id", &QUOTES), ("invoice_id", &INVOICES)];

/// The names of contacts.
pub(crate) struct ContactNames(BTreeMap<ContactId, String>);

impl ContactNames {
    /// Returns what the contact is called whose id this is.
    pub(crate) fn get(&self, id: &str) -> Option<&str> {
        id.parse().ok().and_then(|id: ContactId| self.0.get(&id)).map(String::as_str)
    }
}

/// Looks up the names of contacts. Texts that are no ids are left out.
pub(crate) async fn names_of(
    svc: &Svc,
    tenant: TenantId,
    contacts: impl Iterator<Item = &str>,
) -> Result<ContactNames, Error> {
    let mut ids: Vec<ContactId> = contacts.filter_map(|id| id.parse().ok()).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ContactNames(match ids.as_slice() {
        [] => BTreeMap::new(),
        _ => svc.account(tenant).contacts().names(ids).await?,
    }))
}

impl<'a> FieldValues<'a> {
    /// Looks up the names of contacts.
    pub(crate) async fn new(
        cx: &'a Context<'a>,
        tenant: &'a Tenant,
        contacts: impl Iterator<Item = &str>,
    ) -> Result<Self, Error> {
        let names = names_of(&cx.svc, tenant.id, contacts).await?;
        Ok(Self { cx, tenant, names, numbers: BTreeMap::new() })
    }

    /// Looks up the names of the contacts, quotes and invoices that a record names.
    pub(super) async fn of(
        cx: &'a Context<'a>,
        tenant: &'a Tenant,
        record: &Map<String, Value>,
    ) -> Result<Self, Error> {
        let mut values = Self::new(cx, tenant, std::iter::once(text(record, "contact_id"))).await?;
        for (field, _) in NUMBERED {
            values.numbers.extend(number_in(cx.svc.account(tenant.id), field, text(record, field)).await?);
        }
        Ok(values)
    }

    /// Returns what the contact is called whose id this is.
    pub(crate) fn contact(&self, id: &str) -> Option<&str> {
        self.names.get(id)
    }

    /// Returns the value of a field, by what its name says that it is.
    pub(super) fn value(&self, record: &Map<String, Value>, field: &str) -> Markup {
        match (field, record.get(field)) {
            (_, None | Some(Value::Null)) => html! { span.soft { "–" } },
            ("outstanding", left) if is_zero(left) => html! { span.soft { "–" } },
            ("status", Some(Value::String(status))) => badge(status_tone(status), &words(status)),
            (field, Some(amount)) if is_amount(field) => html! { span.fixed { (money(record, amount)) } },
            ("contact_id", Some(Value::String(id))) => {
                html! { a href=(self.cx.url(&CONTACTS.path(id))) { (short(self.contact(id).unwrap_or(id))) } }
            }
            (field, Some(Value::String(id)))
                if let Some((_, kind)) = NUMBERED.iter().find(|(name, _)| *name == field) =>
            {
                let number = id.parse::<Uuid>().ok().and_then(|id| self.numbers.get(&id));
                html! {
                    @match number {
                        Some(number) => { a href=(self.cx.url(&kind.path(id))) { (number) } }
                        None => { span.soft { "deleted" } }
                    }
                }
            }
            ("email" | "customer_email", Some(Value::String(email))) => {
                html! { a href=(mailto(email, "", "")) { (short(email)) } }
            }
            ("phone" | "customer_phone", Some(Value::String(phone))) => {
                html! { a href=(tel(phone)) { (short(phone)) } }
            }
            (field, Some(Value::String(date))) if is_date(field) => {
                Date::parse(date).map_or_else(|_| html! { (short(date)) }, day)
            }
            (_, Some(Value::String(content))) => match Timestamp::parse(content) {
                Ok(at) => minute(&self.tenant.time_zone, at),
                Err(_) => html! { (short(content)) },
            },
            (_, Some(other)) => html! { (short(&other.to_string())) },
        }
    }
}

/// Returns whether a field names a quote or an invoice.
pub(crate) fn is_numbered(field: &str) -> bool {
    NUMBERED.iter().any(|(name, _)| *name == field)
}

/// Returns the id in a field that names a quote or an invoice, with the number of that. `None` for other fields, and if it is not
/// there.
pub(crate) async fn number_in(account: Account<'_>, field: &str, id: &str) -> Result<Option<(Uuid, String)>, Error> {
    let found = NUMBERED.iter().find(|(name, _)| *name == field).zip(id.parse::<Uuid>().ok());
    let Some(((_, kind), id)) = found else { return Ok(None) };
    Ok(if_found(get(account, kind, id).await)?.map(|record| (id, name(kind, &record))))
}

/// Returns whether a field holds a date.
pub(crate) fn is_date(field: &str) -> bool {
    matches!(field, "issue_date" | "due_date" | "valid_until")
}

/// Returns whether a field holds an amount of money.
pub(crate) fn is_amount(field: &str) -> bool {
    matches!(field, "total" | "amount_paid" | "outstanding" | "estimated_total" | "actual_total" | "refunded_amount")
}

/// Returns whether an amount is missing or zero.
pub(super) fn is_zero(amount: Option<&Value>) -> bool {
    amount.is_none_or(|amount| amount.is_null() || amount.to_string().chars().all(|char| matches!(char, '0' | '.')))
}

/// Returns an amount in the currency of a record with all of its decimals, such as `AUD 15,680.00`. Jobs have amounts
/// without a currency.
pub(crate) fn money(record: &Map<String, Value>, amount: &Value) -> String {
    let digits = amount.to_string();
    let currency = Currency::from_stored(text(record, "currency"));
    let scale = currency.map_or(JOB_SCALE, Currency::scale);
    match (digits.parse::<Decimal>().ok().and_then(|amount| amount.to_amount(scale).ok()), currency) {
        (Some(amount), Some(currency)) => amount.in_currency(currency),
        (Some(amount), None) => amount.grouped(),
        (None, _) => digits,
    }
}

/// Returns what people call a record.
pub(crate) fn name(kind: &Kind, record: &Map<String, Value>) -> String {
    let names: Vec<&str> = kind.name.iter().map(|field| text(record, field)).filter(|name| !name.is_empty()).collect();
    let others = ["company_name", "email"].map(|field| text(record, field));
    match names.join(" ") {
        named if !named.is_empty() => named,
        _ => others
            .into_iter()
            .find(|other| !other.is_empty())
            .map_or_else(|| format!("Unnamed {}", kind.one), str::to_owned),
    }
}

pub(crate) fn text<'r>(record: &'r Map<String, Value>, field: &str) -> &'r str {
    record.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the beginning of a long text.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the name of a status for people.
pub(crate) fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Returns the name of a field for people.
pub(crate) fn label(field: &str) -> String {
    let name = match field {
        "contact_id" => "contact",
        "quote_id" => "quote",
        "invoice_id" => "invoice",
        "amount_paid" => "paid",
        "paid_at" => "paid on",
        "created_at" => "created",
        "updated_at" => "changed",
        "issue_date" => "issued",
        "due_date" => "due",
        "company_name" => "company",
        "service_name" => "service",
        "scheduled_start" => "planned start",
        "scheduled_end" => "planned end",
        "estimated_total" => "estimate",
        "actual_total" => "final price",
        "start_time" => "starts",
        "end_time" => "ends",
        other => return words(other),
    };
    name.to_owned()
}

pub(crate) fn status_tone(status: &str) -> Tone {
    match status {
        "sent" | "viewed" | "scheduled" | "in_progress" => Tone::Accent,
        "paid" | "accepted" | "completed" | "confirmed" | "invoiced" => Tone::Good,
        "overdue" | "declined" | "no_show" => Tone::Bad,
        "partial" | "on_hold" | "expired" | "refunded" => Tone::Warn,
        _ => Tone::Neutral,
    }
}
