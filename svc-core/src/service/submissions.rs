//! Forms that are sent twice, as by a double click: the second one is told what the first one did.

use std::time::Duration;

use super::Account;
use super::executor::operation;
use crate::accounts::idempotency::{self, StoredResponse};
use crate::error::{Error, Issue};

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
        let submitted = runner.write(operation!("svc.submissions.get"), (id, form.clone()), async |tx, (id, form)| {
            // The lock comes first: of two forms at the same time, the second one waits for the outcome of the first.
            tx.lock_tenant(*id).await?;
            let since = tx.env().now().minus(REMEMBERED);
            match tx.stored_response(*id, &form.key, since).await? {
                Some(stored) if stored.fingerprint != form.fingerprint => Err(Error::IdempotencyKeyReused),
                stored => Ok(stored.and_then(|stored| stored.location)),
            }
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
        let remember = runner.write(operation!("svc.submissions.remember"), input, async |tx, (id, form, location)| {
            let stored = StoredResponse {
                fingerprint: form.fingerprint,
                status: 303,
                location: Some(location.clone()),
                etag: None,
                body: Vec::new(),
                created_at: tx.env().now(),
            };
            Ok(tx.store_response(*id, &form.key, &stored).await?)
        });
        remember.await
    }
}
