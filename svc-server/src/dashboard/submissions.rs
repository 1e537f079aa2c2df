//! Changes that forms ask for, each in one transaction: a form that is sent twice, as by a double click, changes once, and what it
//! changes must be as the page showed it.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use svc_core::error::{Error, StoreError, Violations};
use svc_core::operation::{AnyOperation, Call, InputError, Request};
use svc_core::service::Submission;
use svc_core::store::{Tx, UnitOfWorkFn};
use svc_core::values::TenantId;
use uuid::Uuid;

use super::components::capitalized;
use super::context::Context;
use super::forms::{KEY, VERSION};
use super::page_response::{PageError, PageResponse};

/// The input of a change, as its form has it.
pub(super) struct ChangeForm<I> {
    pub(super) tenant: TenantId,
    /// The version that the page showed. `None` if the form has none.
    version: Option<String>,
    pub(super) input: I,
}

impl<I> ChangeForm<I> {
    /// Checks that what is changed has the version that the page showed.
    ///
    /// # Errors
    ///
    /// [`Error::PreconditionFailed`].
    pub(super) fn check_version(&self, current: &str) -> Result<(), Error> {
        match &self.version {
            Some(shown) if shown != current => Err(Error::PreconditionFailed),
            _ => Ok(()),
        }
    }
}

/// Makes the change of the form that was sent, and returns its outcome, also when the form was sent before. A form without a key
/// changes as often as it is sent.
///
/// # Errors
///
/// [`Error::IdempotencyKeyReused`] if the form was sent before with other values, [`Error::Validation`] if its key is none that a
/// page made, and those of the change.
pub(super) async fn submit<I, T>(
    cx: &Context<'_>,
    tenant: TenantId,
    name: &'static str,
    input: I,
    change: impl UnitOfWorkFn<ChangeForm<I>, T>,
) -> Result<T, Error>
where
    I: Send + Sync + 'static,
    T: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    let fields = cx.form.encoded_without(&["csrf", KEY]);
    let submission = cx.form.given(KEY).map(|key| Submission::new(key, cx.path, fields.as_bytes())).transpose();
    let submission = submission.map_err(|issue| issue.on(KEY))?;
    let form = ChangeForm { tenant, version: cx.form.given(VERSION).map(str::to_owned), input };
    let submitted = cx.svc.store().write(name, (submission, form, change), async |tx, (submission, form, change)| {
        tx.lock_tenant(form.tenant).await?;
        let Some(submission) = submission else { return change.call_boxed(tx, form).await };
        if let Some(outcome) = submission.outcome(tx, form.tenant).await? {
            return Ok(outcome);
        }
        let outcome = change.call_boxed(&mut *tx, form).await?;
        submission.remember(tx, form.tenant, &outcome).await?;
        Ok(outcome)
    });
    submitted.await
}

/// Reads the body of an operation.
///
/// # Errors
///
/// The errors of the body: [`Error::InvalidJson`] and [`Error::Validation`].
pub(super) fn parse(
    cx: &Context<'_>,
    operation: &'static dyn AnyOperation,
    body: &str,
) -> Result<Arc<dyn Call>, Error> {
    let event_kinds = &cx.svc.store().env().event_kinds;
    match operation.parse(Request { query: "", body: body.as_bytes(), event_kinds }) {
        Ok(parsed) => Ok(parsed.call),
        Err(InputError::Refused(error)) => Err(error),
        Err(InputError::UnknownParameter { name, .. }) => {
            Err(StoreError::Internal(format!("{name} is no parameter")).into())
        }
    }
}

/// The part of a response that has the version of a record.
#[derive(Deserialize)]
struct VersionedRecord {
    data: UpdatedAt,
}

#[derive(Deserialize)]
struct UpdatedAt {
    /// Webhook subscriptions do not show it, so that none of their versions is that of a form.
    #[serde(default)]
    updated_at: String,
}

/// Returns the version of a record, which an operation retrieves.
///
/// # Errors
///
/// Those of the operation.
pub(super) async fn version(tx: &mut dyn Tx, get: &dyn Call, tenant: TenantId, id: Uuid) -> Result<String, Error> {
    let record = get.run(tx, tenant, id).await?.into_json()?;
    let record: VersionedRecord =
        serde_json::from_slice(&record).map_err(|error| StoreError::Internal(error.to_string()))?;
    Ok(record.data.updated_at)
}

/// Runs an operation on the record in the path, if there is one, with this body. Returns the id of what it created or changed.
///
/// # Errors
///
/// Those of [`submit`], and of the operation.
pub(super) async fn call(
    cx: &Context<'_>,
    tenant: TenantId,
    operation: &'static dyn AnyOperation,
    body: &str,
) -> Result<Uuid, Error> {
    let id = if operation.has_id { cx.id().map_err(|_| Error::NotFound)? } else { Uuid::nil() };
    let get = operation.current.filter(|_| operation.has_id && cx.form.given(VERSION).is_some());
    let input = (parse(cx, operation, body)?, get.map(|get| parse(cx, get, "")).transpose()?, id);
    submit(cx, tenant, operation.id, input, async |tx, form| {
        let (call, get, id) = &form.input;
        if let Some(get) = get {
            form.check_version(&version(tx, &**get, form.tenant, *id).await?)?;
        }
        Ok(call.run(tx, form.tenant, *id).await?.created.unwrap_or(*id))
    })
    .await
}

/// Runs an operation as [`call`] does, and goes on to a page: its path, in which `{id}` stands for the returned id.
pub(super) async fn change(
    cx: &Context<'_>,
    tenant: TenantId,
    operation: &'static dyn AnyOperation,
    body: &str,
    next: &str,
) -> Result<PageResponse, PageError> {
    let id = call(cx, tenant, operation, body).await.map_err(refusal)?;
    Ok(cx.see_other(&next.replace("{id}", &id.to_string())))
}

/// Returns what a form says whose record has another version than it shows.
pub(super) fn changed_meanwhile(record: &str) -> String {
    format!(
        "Somebody changed this {record} after the form was loaded, so nothing was saved. Load the form again, and repeat \
         your change there."
    )
}

/// Returns what a person reads about a refused change.
pub(super) fn refusal(error: Error) -> PageError {
    match error {
        Error::PreconditionFailed => PageError::Refused(
            "It was changed after this page was loaded, so nothing was done. The page shows it as it is now: check it, \
             then do it again."
                .to_owned(),
        ),
        Error::IdempotencyKeyReused => {
            PageError::Refused("This form was sent before. The page shows what came of it.".to_owned())
        }
        Error::Validation(violations) => PageError::Invalid(sentences(&violations)),
        other => other.into(),
    }
}

fn sentences(violations: &Violations) -> String {
    let sentences: Vec<String> =
        violations.as_slice().iter().map(|violation| capitalized(&format!("{}.", violation.message))).collect();
    sentences.join(" ")
}
