//! Webhook subscriptions in the public API: fields that the contract does not name are left out unless they are set. The platform API
//! has all fields, as null if they are not set. And the check of a key, which the public API alone has.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::events::{self, OfWebhook};
use super::records::{self, Records};
use crate::operation::Listing;
use crate::operation::{Method, Operation, Viewed};
use crate::pages::{ListParams, Page};
use crate::platform::SecretRotation;
use crate::resources::{NoFilter, Update};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::options;
use crate::webhooks::subscriptions::{WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret};

type Webhooks = Records<WebhookSubscription>;

/// A record whose options are left out unless they are set.
struct InContract<T>(T);

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

static PAGE: Viewed<Page<WebhookSubscription>, Page<InContract<WebhookSubscription>>> =
    Viewed(|Page { data, next_cursor, .. }| Page::new(data.into_iter().map(InContract).collect(), next_cursor));
static RECORD: Viewed<WebhookSubscription, InContract<WebhookSubscription>> = Viewed(InContract);
static WITH_SECRET: Viewed<WebhookSubscriptionWithSecret, InContract<WebhookSubscriptionWithSecret>> =
    Viewed(InContract);

/// Lists webhook subscriptions.
pub const LIST_WEBHOOKS: Operation<TenantId, Listing<ListParams, NoFilter>, Page<WebhookSubscription>> =
    Webhooks::LIST.viewed(&PAGE);

/// Retrieves a webhook subscription.
pub const GET_WEBHOOK: Operation<OfWebhook, (), WebhookSubscription> = Webhooks::GET.viewed(&RECORD).with_etag();

/// Creates a webhook subscription.
pub const CREATE_WEBHOOK: Operation<TenantId, WebhookCreate, WebhookSubscriptionWithSecret> =
    records::CREATE_WEBHOOK.viewed(&WITH_SECRET).retrieved_by(&GET_WEBHOOK);

/// Changes a webhook subscription.
pub const UPDATE_WEBHOOK: Operation<OfWebhook, <WebhookSubscription as Update>::Input, WebhookSubscription> =
    Webhooks::UPDATE.viewed(&RECORD).with_etag().if_match(&GET_WEBHOOK);

/// Deletes a webhook subscription.
pub const DELETE_WEBHOOK: Operation<OfWebhook, (), ()> = Webhooks::DELETE.if_match(&GET_WEBHOOK);

/// Replaces the secret of a webhook subscription.
pub const ROTATE_WEBHOOK_SECRET: Operation<OfWebhook, SecretRotation, WebhookSubscriptionWithSecret> =
    events::ROTATE_WEBHOOK_SECRET.viewed(&WITH_SECRET);

/// The response body of `GET /ping`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ping {
    /// Always true: the API key is valid.
    pub ok: bool,
    /// The id of the account that the API key belongs to.
    pub tenant_id: TenantId,
    /// The time of the server.
    pub timestamp: Timestamp,
}

/// Checks an API key.
pub const PING: Operation<TenantId, (), Ping> =
    Operation::new("ping", Method::Get, "ping", "", &async |tx, account, _| {
        Ok(Ping { ok: true, tenant_id: account, timestamp: tx.env().now() })
    })
    .unwrapped()
    .ignoring_query()
    .reading(|_| 0)
    .described(
        "Check the API key",
        "Returns the account that the API key belongs to and the time of the server. Use it to test a key and the \
         connection. Query parameters are ignored.",
        "The API key is valid.",
    );
