//! The request of an attempt, made anew from what is stored by the code that sent it: as text, as a command of curl, and how
//! its signatures come about.

use svc_core::crypto::sha256;
use svc_core::values::{Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery};
use svc_core::webhooks::engine::Attempt;
use svc_core::webhooks::events::Event;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use crate::dashboard::json::{self, MAX_SHOWN, beginning};
use crate::dashboard::prelude::*;

/// The request of an attempt.
pub(super) struct AttemptRequest {
    url: WebhookUrl,
    pub(super) headers: Vec<(&'static str, String)>,
    /// The names of the headers whose values are secret.
    secret_headers: Vec<String>,
    pub(super) body: String,
}

impl AttemptRequest {
    pub(super) fn new(
        delivery: &Delivery,
        event: &Event,
        endpoint: &WebhookSubscription,
        attempt: &AttemptLog,
        is_sandbox: bool,
    ) -> Self {
        let at: Timestamp = attempt.started_at;
        let sent = Attempt {
            delivery: Delivery { attempts: attempt.attempt, ..delivery.clone() },
            event: event.clone(),
            url: endpoint.url.clone(),
            secrets: endpoint.signing_secrets(at),
            is_sandbox,
            options: endpoint.attempt_options(at),
        };
        let bytes = sent.body(at);
        let headers = sent.headers(at, &bytes);
        let secret_headers = sent.options.headers.into_iter().map(|(name, _)| name).collect();
        Self { url: sent.url, headers, secret_headers, body: String::from_utf8_lossy(&bytes).into_owned() }
    }

    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// Returns the command of curl that sends the request. A long body is read from a file.
    fn curl(&self) -> String {
        let mut command = format!("curl -X POST {}", quoted(self.url.as_str()));
        let content_type = ("content-type", "application/json".to_owned());
        for (name, value) in std::iter::once(&content_type).chain(&self.headers) {
            command += &format!(" \\\n  -H {}", quoted(&format!("{name}: {value}")));
        }
        let body = if self.body.len() > MAX_SHOWN { "@body.json".to_owned() } else { quoted(&self.body) };
        command + &format!(" \\\n  --data-binary {body}")
    }

    /// Returns the cards of the request.
    pub(super) fn cards(&self) -> Markup {
        html! {
            (section("Request", html! {
                pre tabindex="0" { code {
                    "POST " (self.url) "\ncontent-type: application/json\n"
                    @for (name, value) in &self.headers { (name) ": " (value) "\n" }
                    @for name in &self.secret_headers { (name) ": …\n" }
                } }
                (json::body("request-body", &self.body))
                p.hint { "Made with the address and the secret that the endpoint has now. If they were changed since, this is not \
                    quite what was sent." }
            }))
            (section("As curl", html! {
                div.code {
                    button.js type="button" data-copy="curl" { "Copy" }
                    pre id="curl" tabindex="0" { code { (self.curl()) } }
                }
                p.hint {
                    "The signatures are those of this attempt, and the secret is not part of the command. A program that checks \
                     the time takes them for five minutes; after that, send the delivery again, or sign anew with the secret."
                    @if self.body.len() > MAX_SHOWN { " Save the body as " code { "body.json" } " first, byte for byte." }
                }
            }))
            (section("Verify this signature", self.verification()))
        }
    }

    fn verification(&self) -> Markup {
        let signed = format!("{}.{}.", self.header("webhook-id"), self.header("webhook-timestamp"));
        html! {
            ol.steps {
                li { div {
                    h3 { "Take the body as it arrived" }
                    p { (number(self.body.len() as u64)) " bytes, before any program has parsed it. Its SHA-256 is:" }
                    pre tabindex="0" { code { (hex::encode(sha256(self.body.as_bytes()))) } }
                } }
                li { div {
                    h3 { "Put the id and the time in front of it" }
                    p { "The headers " code { "webhook-id" } " and " code { "webhook-timestamp" } ", each followed by a full stop. \
                        The signed text begins with:" }
                    pre tabindex="0" { code { (signed) (beginning(&self.body, 60).0) "…" } }
                } }
                li { div {
                    h3 { "Compute the HMAC-SHA256" }
                    p { "The key is what the secret of the endpoint encodes in base64 after " code { "whsec_" } ". In base64, \
                        with " code { "v1," } " in front, it is the header " code { "webhook-signature" } ". During a rotation \
                        there is one for each secret:" }
                    pre tabindex="0" { code { (self.header("webhook-signature")) } }
                } }
                li { div {
                    h3 { "Or check the older header" }
                    p { "The HMAC-SHA256 of the body alone, keyed with the whole text of the secret, in hex after " code { "sha256=" } ", \
                        is " code { "X-SVC-Signature" } ":" }
                    pre tabindex="0" { code { (self.header("x-svc-signature")) } }
                } }
            }
        }
    }
}

/// Returns a text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_passes_every_text_on_as_it_is() {
        for text in ["plain", "it's", "'; rm -rf ~ '", "$(id) `id` \"\\ \n", ""] {
            let printed =
                std::process::Command::new("sh").args(["-c", &format!("printf %s {}", quoted(text))]).output();
            assert_eq!(String::from_utf8(printed.unwrap().stdout).unwrap(), text);
        }
    }
}
