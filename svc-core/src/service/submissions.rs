//! Forms that are sent twice, as by a double click: the second one is told what the first one did.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Account;
use crate::accounts::idempotency::{self, StoredResponse};
use crate::error::{Error, Issue, StoreError};
use crate::store::Tx;
use crate::values::TenantId;

/// How long it is remembered what a form did.
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

    /// Returns what was remembered of this form. The lock comes first: of two forms at the same time, the second one waits for
    /// the outcome of the first.
    async fn stored(&self, tx: &mut dyn Tx, account: TenantId) -> Result<Option<StoredResponse>, Error> {
        tx.lock_tenant(account).await?;
        let since = tx.env().now().minus(REMEMBERED);
        match tx.stored_response(account, &self.key, since).await? {
            Some(stored) if stored.fingerprint != self.fingerprint => Err(Error::IdempotencyKeyReused),
            stored => Ok(stored),
        }
    }

    async fn store(
        &self,
        tx: &mut dyn Tx,
        account: TenantId,
        location: Option<String>,
        body: Vec<u8>,
    ) -> Result<(), Error> {
        let (fingerprint, created_at) = (self.fingerprint, tx.env().now());
        let stored = StoredResponse { fingerprint, status: 303, location, etag: None, body, created_at };
        Ok(tx.store_response(account, &self.key, &stored).await?)
    }

    /// Returns what this form made when it was sent before, within 24 hours, for a page that shows secrets once: whoever sends the
    /// form twice sees the page of the second time, and must find the same secrets there.
    ///
    /// # Errors
    /// [`Error::IdempotencyKeyReused`] if another form with this key was sent before.
    pub async fn made<T: DeserializeOwned>(&self, tx: &mut dyn Tx, account: TenantId) -> Result<Option<T>, Error> {
        let Some(stored) = self.stored(tx, account).await? else { return Ok(None) };
        serde_json::from_slice(&stored.body).map(Some).map_err(internal)
    }

    /// Remembers what this form made, encrypted as all secrets are.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn remember_made<T: Serialize>(&self, tx: &mut dyn Tx, account: TenantId, made: &T) -> Result<(), Error> {
        let body = serde_json::to_vec(made).map_err(internal)?;
        self.store(tx, account, None, body).await
    }
}

fn internal(error: serde_json::Error) -> Error {
    StoreError::Internal(format!("what a form made: {error}")).into()
}

/// Forms of a person, in the [transaction](crate::Svc::transaction) of the change.
impl Account<'_> {
    /// Returns where the person went after this form was sent before, within 24 hours; `None` for the first time. Another
    /// transaction with a form of the account is waited for.
    ///
    /// # Errors
    /// [`Error::IdempotencyKeyReused`] if another form with this key was sent before.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    /// use svc_core::service::Submission;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let form = Submission::new("8d3f", "/contacts/new", b"email=ada@example.com")?;
    /// let contact = ContactCreate::new("ada@example.com".parse()?);
    /// let create = async || {
    ///     let input = (tenant, form.clone(), contact.clone());
    ///     let sent = svc.transaction("create contact", input, async |tx, (tenant, form, contact)| {
    ///         let account = tx.account(*tenant);
    ///         if let Some(location) = account.submitted(form).await? {
    ///             return Ok(location);
    ///         }
    ///         let location = format!("/contacts/{}", account.contacts().create(contact.clone()).await?.id);
    ///         account.remember_submission(form, &location).await?;
    ///         Ok::<String, Error>(location)
    ///     });
    ///     sent.await
    /// };
    /// let first = create().await?;
    /// assert_eq!(create().await?, first);
    /// # Ok(()) });
    /// ```
    pub async fn submitted(self, form: &Submission) -> Result<Option<String>, Error> {
        let Self { runner, id } = self;
        let submitted = runner.write("svc.submissions.get", (id, form.clone()), async |tx, (id, form)| {
            Ok(form.stored(tx, *id).await?.and_then(|stored| stored.location))
        });
        submitted.await
    }

    /// Remembers where the person goes after this form.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// See [`submitted`](Self::submitted).
    pub async fn remember_submission(self, form: &Submission, location: &str) -> Result<(), Error> {
        let Self { runner, id } = self;
        let input = (id, form.clone(), location.to_owned());
        let remember = runner.write("svc.submissions.remember", input, async |tx, (id, form, location)| {
            form.store(tx, *id, Some(location.clone()), Vec::new()).await
        });
        remember.await
    }
}
