//! The message that a stream publishes for an event.

use crate::webhooks::events::{self, Event};

/// A message: an event on its way to a broker.
#[derive(Clone, Debug)]
pub struct Message {
    /// The event.
    pub event: Event,
    /// Whether the tenant is the sandbox of an account.
    pub is_sandbox: bool,
    /// Whether the body has the `id` of the record alone.
    pub is_thin: bool,
}

impl Message {
    /// Returns the body: that of a delivery of the event, as a JSON object. A message that is published again must have the
    /// same bytes, so `delivered_at` is the time of the event.
    pub fn body(&self) -> Vec<u8> {
        events::body(&self.event, self.is_thin, self.event.created_at)
    }

    /// Returns the headers that identify the message, with names in lower case: `x-svc-event` with the kind,
    /// `x-svc-event-id` by which duplicates are recognised, `x-svc-account`, and in sandboxes and for test events
    /// `x-svc-test`.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("x-svc-event", self.event.kind.as_str().to_owned()),
            ("x-svc-event-id", self.event.id.to_string()),
            ("x-svc-account", self.event.tenant_id.to_string()),
        ];
        if self.is_sandbox || self.event.is_test() {
            headers.push(("x-svc-test", "true".to_owned()));
        }
        headers
    }
}
