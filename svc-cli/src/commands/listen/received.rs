//! The printed form of a received delivery.

use std::time::{Duration, UNIX_EPOCH};

use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde::Serialize;
use svc_core::values::Timestamp;
use svc_webhook_verify::Verifier;

use crate::document::Document;
use crate::output::{fields, or_dash, plain, plain_json, plain_line, pretty, verdict};
use crate::times::{full, span};

/// A received delivery and the response to it.
#[derive(Debug, Serialize)]
pub(super) struct ReceivedDelivery {
    received_at: Timestamp,
    event: Option<String>,
    delivery_id: Option<String>,
    attempt: Option<u32>,
    /// Whether the event is a test.
    test: bool,
    /// The time since the attempt, in milliseconds. Negative if the sender's clock is ahead.
    age_ms: Option<i64>,
    pub(super) verified: bool,
    /// Why the delivery is not verified.
    error: Option<String>,
    #[serde(rename = "answered")]
    response_status: Option<u16>,
    /// Why the request could not be forwarded.
    forward_error: Option<String>,
    body: Option<Document>,
}

impl ReceivedDelivery {
    /// Verifies a request. The event kind and the age are read from the body, which is signed.
    pub(super) fn new(verifier: &Verifier, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Self {
        let at = UNIX_EPOCH + Duration::from_micros(now.as_micros().unsigned_abs());
        let verified = verifier.verify_headers_at(headers, body, at);
        let body = Document::parse(body);
        let delivered_at = body.text("delivered_at").and_then(|text| Timestamp::parse(text).ok());
        let received = Self::unread(headers, "", now);
        Self {
            event: body.text("event").map(str::to_owned).or(received.event),
            age_ms: delivered_at.map(|at| (now.as_micros() - at.as_micros()) / 1000),
            verified: verified.is_ok(),
            error: verified.err().map(|reason| reason.to_string()),
            body: Some(body),
            ..received
        }
    }

    /// Creates the record of a request whose body could not be read, for this reason.
    pub(super) fn unread(headers: &HeaderMap, reason: &str, now: Timestamp) -> Self {
        Self {
            received_at: now,
            event: text(headers, "x-svc-event").map(str::to_owned),
            delivery_id: text(headers, "x-svc-delivery").map(str::to_owned),
            attempt: text(headers, "x-svc-attempt").and_then(|attempt| attempt.parse().ok()),
            test: text(headers, "x-svc-test") == Some("true"),
            age_ms: None,
            verified: false,
            error: Some(reason.to_owned()),
            response_status: None,
            forward_error: None,
            body: None,
        }
    }

    pub(super) fn with_response_status(self, status: StatusCode) -> Self {
        Self { response_status: Some(status.as_u16()), ..self }
    }

    pub(super) fn with_forward_error(self, reason: String) -> Self {
        Self { forward_error: Some(reason), ..self }
    }

    /// Formats the delivery as one line of JSON for programs.
    pub(super) fn to_json(&self) -> String {
        let json = serde_json::to_string(self);
        json.map_or_else(|error| format!("{{\"error\":{:?}}}", error.to_string()), plain_json)
    }

    /// Formats the delivery as lines for people, followed by an empty line.
    pub(super) fn to_text(&self) -> String {
        let response = match &self.forward_error {
            None => or_dash(self.response_status),
            Some(error) => {
                format!(
                    "{}, because the request could not be forwarded: {}",
                    or_dash(self.response_status),
                    plain(error)
                )
            }
        };
        let reason = self.error.as_ref().map(|error| ("reason", plain(error)));
        let shown = [
            ("delivery", or_dash(self.delivery_id.as_deref())),
            ("attempt", or_dash(self.attempt)),
            ("age", or_dash(self.age_ms.map(age))),
        ];
        let body = match &self.body {
            None => String::new(),
            Some(Document::Text(text)) => format!("{}\n", plain(text).trim_end()),
            Some(json) => format!("{}\n", pretty(json)),
        };
        format!(
            "{}  {}{}  {}\n{}{body}\n",
            full(self.received_at),
            or_dash(self.event.as_deref().map(plain_line)),
            if self.test { " (test)" } else { "" },
            verdict(self.verified, if self.verified { "verified" } else { "not verified" }),
            fields(reason.into_iter().chain(shown).chain([("response", response)]))
        )
    }
}

/// Returns the value of a header that is text.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Formats the age of a delivery, with a remark if it is negative.
fn age(millis: i64) -> String {
    let age = span(Duration::from_millis(millis.unsigned_abs()));
    if millis < 0 { format!("{age} ahead of this clock") } else { age }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_formatted_for_people() {
        assert_eq!(age(0), "0 seconds");
        assert_eq!(age(1_250), "1 second 250 ms");
        assert_eq!(age(-2_000), "2 seconds ahead of this clock");
    }
}
