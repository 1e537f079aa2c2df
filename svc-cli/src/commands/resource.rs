//! A resource on the command line: its operations, and the columns and details of its records, whose fields are those of the
//! API.

use clap::Command;
use serde::Serialize;
use serde::de::DeserializeOwned;
use svc_core::input::json::Json;
use svc_core::input::{Input, ToBody};
use svc_core::lookup::KindInAccount;
use svc_core::operation::{Listing, Operation};
use svc_core::pages::{ListParams, Page};
use svc_core::resources::Resource;
use svc_core::values::{Id, TenantId, Timestamp};

use crate::document::Document;
use crate::output::{DASH, fields, state};
use crate::times::{full, moment};

/// Lists records.
pub(super) type ListOperation<R> =
    Operation<TenantId, Listing<ListParams, <R as ResourceCommands>::ListFilter>, Page<R>>;
/// Creates a record.
pub(super) type CreateOperation<R> =
    Operation<TenantId, <R as ResourceCommands>::Create, <R as ResourceCommands>::Creation>;
/// Changes a record.
pub(super) type UpdateOperation<R> = Operation<(TenantId, Id<R>), <R as ResourceCommands>::Update, R>;

/// A resource on the command line.
pub(crate) trait ResourceCommands: Resource<Filter: ToBody> + DeserializeOwned {
    /// The filters of its list.
    type ListFilter: Input + ToBody + Clone;
    /// The body that creates a record.
    type Create: Input + ToBody + Clone;
    /// The body that changes a record.
    type Update: Input + ToBody + Clone;
    /// The output of a creation: the record, or more.
    type Creation: Serialize + DeserializeOwned + Send + 'static;
    /// The kind of record, whose name is that of the command.
    const KIND: KindInAccount;
    /// Lists records.
    const LIST: ListOperation<Self>;
    /// Creates a record.
    const CREATE: CreateOperation<Self>;
    /// Changes a record.
    const UPDATE: UpdateOperation<Self>;
    /// Options that create a record, as an example.
    const CREATE_EXAMPLE: &'static str;
    /// Options that change a record, as an example.
    const UPDATE_EXAMPLE: &'static str;
    /// The number of records that `list` lists unless told otherwise.
    const DEFAULT_LIMIT: &'static str = "50";
    /// The columns of a list: their headings, and the fields in them, with spaces between several. People see the names of
    /// contacts in place of their ids.
    const COLUMNS: &'static [(&'static str, &'static str)];
    /// The fields that `show` shows, in this order, with spaces between. None stand for all.
    const DETAILS: &'static str = "";
    /// The field by which people call the record, after the name of its type.
    const TITLE: &'static str = "id";

    /// Returns the command that creates a record with what only this resource has.
    fn with_own_options(create: Command) -> Command {
        create
    }

    /// Returns the fields that people see otherwise than the API has them, and those that it does not have.
    fn shown(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// Returns the fields of a record as the API returns them, except for those that people see otherwise.
pub(super) fn members<R: ResourceCommands>(record: &R) -> Vec<(String, Json)> {
    let json = serde_json::to_vec(record).unwrap_or_default();
    let Document::Json(Json::Object(mut members)) = Document::parse(&json) else { return Vec::new() };
    for (name, text) in record.shown() {
        let text = Json::String(text);
        match members.iter_mut().find(|(known, _)| known == name) {
            Some((_, value)) => *value = text,
            None => members.push((name.to_owned(), text)),
        }
    }
    members
}

/// Returns what people call a record, after the name of its type: its number, or else its id.
pub(super) fn title<R: ResourceCommands>(record: &R) -> String {
    cell(&members(record), R::TITLE)
}

/// Formats the fields of a record for people, one per line.
pub(super) fn details<R: ResourceCommands>(record: &R) -> String {
    let members = members(record);
    let mut shown: Vec<&str> = R::DETAILS.split_whitespace().collect();
    if shown.is_empty() {
        shown.extend(members.iter().map(|(name, _)| name.as_str()));
    }
    let value = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, value)| text(value, moment));
    fields(shown.iter().map(|name| (name.replace('_', " "), value(name).unwrap_or_default())))
}

/// Formats the values of fields, which are separated by spaces, as the cell of a table.
pub(super) fn cell(members: &[(String, Json)], fields: &str) -> String {
    let values = fields.split(' ').filter_map(|name| members.iter().find(|(known, _)| known == name));
    let values = values.filter(|(_, value)| *value != Json::Null).map(|(_, value)| text(value, full));
    let cell = values.collect::<Vec<_>>().join(" ");
    match fields {
        _ if cell.is_empty() => DASH.to_owned(),
        "status" => state(cell),
        _ => cell,
    }
}

/// Formats the value of a field, with times in this form.
fn text(value: &Json, time: fn(Timestamp) -> String) -> String {
    match value {
        Json::Null => DASH.to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(digits) => digits.clone(),
        // The API writes all times like this one.
        Json::String(text) if text.len() == "2026-03-14T15:09:26.535897Z".len() => {
            Timestamp::parse(text).map_or_else(|_| text.clone(), time)
        }
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().map(|item| self::text(item, time)).collect::<Vec<_>>().join(","),
        Json::Object(members) => {
            let values = members.iter().map(|(_, value)| value).filter(|value| **value != Json::Null);
            values.map(|value| self::text(value, time)).collect::<Vec<_>>().join(" ")
        }
    }
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;

    use svc_core::resources::bookings::Booking;
    use svc_core::resources::contacts::Contact;
    use svc_core::resources::invoices::Invoice;
    use svc_core::resources::jobs::Job;
    use svc_core::resources::quotes::Quote;
    use svc_core::webhooks::subscriptions::WebhookSubscription;

    use super::*;

    /// Fields that people see and the API does not have.
    const MORE: [&str; 2] = ["amount_paid", "status"];

    fn check<R: ResourceCommands>() {
        let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<R>().to_value();
        let columns = R::COLUMNS.iter().flat_map(|(_, fields)| fields.split(' '));
        for field in columns.chain(R::DETAILS.split_whitespace()).chain([R::TITLE]) {
            let is_known = schema["properties"].get(field).is_some() || MORE.contains(&field);
            assert!(is_known, "{} has no {field}", R::KIND);
        }
    }

    #[test]
    fn columns_and_details_name_fields() {
        check::<Contact>();
        check::<Booking>();
        check::<Quote>();
        check::<Job>();
        check::<Invoice>();
        check::<WebhookSubscription>();
    }
}
