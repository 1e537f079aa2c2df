//! Webhook subscriptions in the form of the contract: what it does not name is left out unless it is set. The platform API
//! has all fields, as null if they are not set.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::Value;
use svc_core::pages::Page;
use svc_core::platform::operations::{CREATE_WEBHOOK, Records};
use svc_core::webhooks::options;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use crate::api::handlers::ParseFn;
use crate::api::routes::{Operation, WEBHOOK_MEMORY};
use crate::api::row::{rendered, row};

/// A record whose options are left out unless they are set.
pub(super) struct InContract<T>(pub(super) T);

impl<T: Serialize> Serialize for InContract<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serde_json::to_value(&self.0).map_err(serde::ser::Error::custom)?;
        if let Value::Object(members) = &mut record {
            members.retain(|name, value| !value.is_null() || !options::FIELDS.contains(&name.as_str()));
        }
        record.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for InContract<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|name| !options::FIELDS.iter().any(|field| name == field));
        }
        schema
    }
}

/// Returns what retrieves a webhook subscription.
fn get() -> ParseFn {
    rendered(Records::<WebhookSubscription>::GET, InContract).with_etag().parser()
}

/// Returns an operation on webhook subscriptions with what the contract says of them, and any other one as it is.
pub(super) fn in_contract(operation: Operation) -> Operation {
    type Webhooks = Records<WebhookSubscription>;
    let Operation { parse, current, shape, .. } = match operation.id {
        "listWebhooks" => rendered(Webhooks::LIST, |Page { data, next_cursor, .. }| {
            Page::new(data.into_iter().map(InContract).collect(), next_cursor)
        })
        .reading(|input| WEBHOOK_MEMORY * input.page.limit.unwrap_or_default().get())
        .described("", "", ""),
        "createWebhook" => rendered(CREATE_WEBHOOK, InContract)
            .with_endpoint()
            .with_event_kinds()
            .creates_record(|created| created.subscription.id.uuid(), get())
            .described("", "", ""),
        "getWebhook" => {
            rendered(Webhooks::GET, InContract).reading(|_| WEBHOOK_MEMORY).with_etag().described("", "", "")
        }
        "updateWebhook" => {
            rendered(Webhooks::UPDATE, InContract).with_etag().if_match(get()).with_endpoint().described("", "", "")
        }
        "deleteWebhook" => row(Webhooks::DELETE).if_match(get()).described("", "", ""),
        _ => return operation,
    };
    Operation { parse, current, shape, ..operation }
}

#[cfg(test)]
mod tests {
    use svc_core::values::EventKinds;

    use crate::api::handlers::RequestParts;
    use crate::api::{platform, routes};

    /// A subscription has up to 220 KiB of certificates and headers, which are read with it.
    #[test]
    fn a_list_of_webhooks_takes_memory_for_their_certificates() {
        let kinds = EventKinds::default();
        for (all, id, needed) in [
            (routes::operations(), "listWebhooks", 40),
            (routes::operations(), "getWebhook", 4),
            (platform::operations(), "listWebhooks", 40),
            (routes::operations(), "listContacts", 10),
        ] {
            let operation = all.iter().find(|operation| operation.id == id).unwrap();
            let record = uuid::Uuid::nil().to_string();
            let is_list = id.starts_with("list");
            let parts = RequestParts {
                id: (!is_list).then_some(&*record),
                query: if is_list { "limit=10" } else { "" },
                body: &[],
                if_none_match: &[],
                base: "",
                event_kinds: &kinds,
            };
            let parsed = (operation.parse)(&parts).ok().unwrap();
            assert_eq!(parsed.records, needed, "{id}");
        }
    }
}
