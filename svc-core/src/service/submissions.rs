//! Forms that are sent twice, as by a double click: the second one gets the outcome of the first.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::accounts::idempotency::{self, StoredResponse};
use crate::error::{Error, Issue, StoreError};
use crate::store::Tx;
use crate::values::TenantId;

/// How long the outcome of a form is kept.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

/// A form as it was sent: the key that it got when it was made, and what tells it from another form with this key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    key: String,
    fingerprint: [u8; 32],
}

impl Submission {
    /// Returns the form with this key, which was sent to `path` with these fields. The path must not contain a line feed.
    ///
    /// # Errors
    /// `too_short`, `too_long` or `invalid_format` unless the key has 1 to 250 printable ASCII characters.
    pub fn new(key: &str, path: &str, fields: &[u8]) -> Result<Self, Issue> {
        // Keys of the API have no such beginning, unless a client of the account wants it so.
        let key = if key.is_empty() { String::new() } else { format!("form:{key}") };
        idempotency::check_key(&key)?;
        Ok(Self { key, fingerprint: idempotency::fingerprint(path, fields) })
    }

    /// Returns the outcome of this form if it was sent before, within 24 hours. A person who sends it twice sees the page of the
    /// second time, which must show the same: also secrets, which are shown once.
    ///
    /// It locks the account first: of two forms at the same time, the second one waits for the outcome of the first.
    ///
    /// # Errors
    /// [`Error::IdempotencyKeyReused`] if another form with this key was sent before.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::platform::operations::Records;
    /// use svc_core::prelude::*;
    /// use svc_core::service::Submission;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let form = Submission::new("8d3f", "/contacts/new", b"email=ada@example.com")?;
    /// let contact = ContactCreate::new("ada@example.com".parse()?);
    /// let create = async || {
    ///     let input = (tenant, form.clone(), contact.clone());
    ///     let sent = svc.store().write("create contact", input, async |tx, (tenant, form, contact)| {
    ///         if let Some(id) = form.outcome(tx, *tenant).await? {
    ///             return Ok(id);
    ///         }
    ///         let id = Records::<Contact>::CREATE.run(tx, *tenant, contact).await?.id;
    ///         form.remember(tx, *tenant, &id).await?;
    ///         Ok::<ContactId, Error>(id)
    ///     });
    ///     sent.await
    /// };
    /// let first = create().await?;
    /// assert_eq!(create().await?, first);
    /// # Ok(()) });
    /// ```
    pub async fn outcome<T: DeserializeOwned>(&self, tx: &mut dyn Tx, account: TenantId) -> Result<Option<T>, Error> {
        tx.lock_tenant(account).await?;
        let since = tx.env().now().minus(REMEMBERED);
        let Some(stored) = tx.stored_response(account, &self.key, since).await? else { return Ok(None) };
        if stored.fingerprint != self.fingerprint {
            return Err(Error::IdempotencyKeyReused);
        }
        serde_json::from_slice(&stored.body).map(Some).map_err(internal)
    }

    /// Stores the outcome of this form, encrypted as all secrets are, in the transaction of its change.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// See [`outcome`](Self::outcome).
    pub async fn remember<T: Serialize>(&self, tx: &mut dyn Tx, account: TenantId, outcome: &T) -> Result<(), Error> {
        let body = serde_json::to_vec(outcome).map_err(internal)?;
        let (fingerprint, created_at) = (self.fingerprint, tx.env().now());
        let stored = StoredResponse { fingerprint, status: 303, location: None, etag: None, body, created_at };
        Ok(tx.store_response(account, &self.key, &stored).await?)
    }
}

fn internal(error: serde_json::Error) -> Error {
    StoreError::Internal(format!("the outcome of a form: {error}")).into()
}
