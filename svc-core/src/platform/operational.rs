//! The content of operational events, for the document of the platform API.

use schemars::{Schema, SchemaGenerator};

use crate::accounts::operational::{AccountApproved, OperationalKind};
use crate::oauth::{AppAuthorized, AppDisconnected, AppRevoked};
use crate::webhooks::operational::{DeliveryExhausted, EndpointPaused, KeyExpiring};

/// Returns the schema of the `data` of an operational event, and what it is, to follow "`data` is".
pub fn operational_data(kind: OperationalKind, generator: &mut SchemaGenerator) -> (Schema, &'static str) {
    match kind {
        OperationalKind::EndpointPaused => {
            (generator.subschema_for::<EndpointPaused>(), "the webhook subscription as it was when it was paused")
        }
        OperationalKind::DeliveryExhausted => {
            (generator.subschema_for::<DeliveryExhausted>(), "the delivery after its last attempt")
        }
        OperationalKind::KeyExpiring => (generator.subschema_for::<KeyExpiring>(), "the API key"),
        OperationalKind::AppAuthorized => (generator.subschema_for::<AppAuthorized>(), "the access that was granted"),
        OperationalKind::AppRevoked => (generator.subschema_for::<AppRevoked>(), "the access that has ended"),
        OperationalKind::AppDisconnected => {
            (generator.subschema_for::<AppDisconnected>(), "the access that has ended, as the app knows it")
        }
        OperationalKind::AccountApproved => (generator.subschema_for::<AccountApproved>(), "the account"),
    }
}
