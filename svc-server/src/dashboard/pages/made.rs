//! Forms that make something with a secret, which a page shows once. One that is sent twice, as by a double click, makes it once:
//! the second response shows the same secret, as it is the one that the person sees.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use svc_core::error::Error;
use svc_core::service::Submission;
use svc_core::store::Tx;
use svc_core::values::{Secret, TenantId};
use uuid::Uuid;

use super::record_forms::{KEY, VERSION, new_key};
use crate::dashboard::context::Context;

/// What was made, with what its page shows.
#[derive(Serialize, Deserialize)]
pub(super) struct Made {
    /// The record.
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

impl Made {
    /// Returns something without a secret.
    pub(super) fn of(id: Uuid) -> Self {
        Self { id, client_id: None, secret: None, signing_secret: None }
    }
}

/// Returns the text of a secret for a page.
pub(super) fn shown(secret: Option<&Secret>) -> Option<String> {
    secret.map(|secret| secret.reveal().to_owned())
}

/// Returns the field with the key of a form: a new one, or that of the form which was sent and is shown again.
pub(super) fn key_field(cx: &Context<'_>) -> Markup {
    let key = cx.form.given(KEY).map_or_else(|| new_key(cx), str::to_owned);
    html! { input type="hidden" name=(KEY) value=(key); }
}

/// Returns the field with the version that a form shows: this one, or that of the form which was sent and is shown again.
pub(super) fn version_field(cx: &Context<'_>, version: &str) -> Markup {
    html! { input type="hidden" name=(VERSION) value=(cx.form.given(VERSION).unwrap_or(version)); }
}

/// Returns the form that was sent, with all its fields. A form without a key makes something as often as it is sent.
///
/// # Errors
///
/// [`Error::Validation`] if the key is none that a page made.
pub(super) fn sent(cx: &Context<'_>) -> Result<Option<Submission>, Error> {
    let fields = cx.form.encoded_without(&["csrf", KEY]);
    let form = cx.form.given(KEY).map(|key| Submission::new(key, cx.path, fields.as_bytes()));
    form.transpose().map_err(|issue| issue.on(KEY))
}

/// Returns the version that the form which was sent shows. `None` if it has none.
pub(super) fn shown_version(cx: &Context<'_>) -> Option<String> {
    cx.form.given(VERSION).map(str::to_owned)
}

/// Returns what the form made when it was sent before.
pub(super) async fn before(
    tx: &mut dyn Tx,
    account: TenantId,
    form: Option<&Submission>,
) -> Result<Option<Made>, Error> {
    match form {
        Some(form) => form.made(tx, account).await,
        None => Ok(None),
    }
}

/// Remembers what the form has made, and returns it.
pub(super) async fn remember(
    tx: &mut dyn Tx,
    account: TenantId,
    form: Option<&Submission>,
    made: Made,
) -> Result<Made, Error> {
    if let Some(form) = form {
        form.remember_made(tx, account, &made).await?;
    }
    Ok(made)
}
