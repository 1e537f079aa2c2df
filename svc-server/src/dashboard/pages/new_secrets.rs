//! Pages that show new secrets, once. A form that is sent twice creates one secret, and both responses show it: the person sees the
//! second.

use serde::{Deserialize, Serialize};
use svc_core::values::Secret;
use uuid::Uuid;

use crate::dashboard::prelude::*;

/// A new record with the secrets that its page shows.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct NewSecrets {
    pub(super) id: Uuid,
    /// The identifier that other programs use, if it is no secret.
    #[serde(default)]
    pub(super) client_id: Option<String>,
    /// The secret: of a key, of an app, or of an endpoint.
    #[serde(default)]
    pub(super) secret: Option<String>,
    /// A second secret, which signs.
    #[serde(default)]
    pub(super) signing_secret: Option<String>,
}

/// The page that shows secrets. Their texts are part of this response alone.
pub(super) struct SecretsPage<'a> {
    pub(super) title: &'a str,
    pub(super) about: &'a str,
    /// The ids of the fields, their labels, and the texts of those that there are.
    pub(super) texts: &'a [(&'a str, &'a str, Option<&'a str>)],
    /// The key with which a request is shown as an example.
    pub(super) example: Option<&'a str>,
    /// The path of the page that follows.
    pub(super) next: &'a str,
}

impl SecretsPage<'_> {
    pub(super) fn respond(self, cx: &Context<'_>, tenant: &Tenant, done: &str) -> PageResponse {
        let content = html! {
            (heading(self.title, self.about, html! {}))
            div.card.fields {
                @for (id, label, text) in self.texts { @if let Some(text) = text { (copyable(id, label, text)) } }
                @if let Some(key) = self.example {
                    p.hint { "Try it:" }
                    pre { code { "curl '" (cx.address()) "/api/v1/contacts' -H 'Authorization: Bearer " (key) "'" } }
                }
                div.actions { a.button.primary href=(cx.url(self.next)) { (done) } }
            }
        };
        layout::page(cx, Some(tenant), self.title, &content)
    }
}

/// The text of the button that leaves the page.
pub(super) const STORED: &str = "I have stored it";

/// Returns the text of a secret for a page.
pub(super) fn text_of(secret: Option<&Secret>) -> Option<String> {
    secret.map(|secret| secret.reveal().to_owned())
}
