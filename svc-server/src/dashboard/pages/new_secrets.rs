//! What is made with a secret, which a page shows once. A form that is sent twice makes it once: the second response shows the same
//! secret, as it is the one that the person sees.

use serde::{Deserialize, Serialize};
use svc_core::values::Secret;
use uuid::Uuid;

/// A new record with the secrets that its page shows.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct NewSecrets {
    pub(super) id: Uuid,
    /// What names it to other programs, if that is no secret.
    #[serde(default)]
    pub(super) client_id: Option<String>,
    /// The secret: of a key, of an app, or of an endpoint.
    #[serde(default)]
    pub(super) secret: Option<String>,
    /// A second secret, which signs.
    #[serde(default)]
    pub(super) signing_secret: Option<String>,
}

/// Returns the text of a secret for a page.
pub(super) fn text_of(secret: Option<&Secret>) -> Option<String> {
    secret.map(|secret| secret.reveal().to_owned())
}
