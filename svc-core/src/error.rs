//! The errors of the rules and of the store.
//!
//! Every [`Error`] has a stable code (`docs/contract.md`, "Errors") and a sentence that says what is wrong and how to
//! correct it. The rules know no HTTP: a server maps errors to statuses and headers, and may word a sentence for its
//! clients. Details of the store are for the log and do not belong in a response.

use std::borrow::Cow;
use std::fmt;

use uuid::Uuid;

use crate::values::{TenantId, TextEnum};

/// The mistake in one field (`docs/contract.md`, "Errors").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
#[non_exhaustive]
pub enum FieldCode {
    /// The field is missing.
    Required,
    /// The value has another JSON type. Nothing is converted: `"100"` is not a number.
    InvalidType,
    /// The text has the wrong form, such as a timestamp without an offset.
    InvalidFormat,
    /// The value is not one of those that are allowed, such as an unknown status or event kind.
    InvalidEnum,
    /// The text or array is longer than allowed.
    TooLong,
    /// The text or array is shorter than allowed.
    TooShort,
    /// The number or time is outside its range, or an amount has too many decimals.
    OutOfRange,
    /// The field cannot be null.
    NotNullable,
    /// The request has no such field or query parameter.
    UnknownField,
    /// The field is one of the record that this request cannot set.
    ReadOnlyField,
    /// The field or query parameter was sent more than once.
    DuplicateKey,
}

/// The mistake in a value, without the name of the field that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The stable code.
    pub code: FieldCode,
    /// The text after the name of the field, such as "must be a string".
    pub message: Cow<'static, str>,
    /// The dotted path from the field to a nested value, such as `0.kind`; `None` for the field itself.
    pub path: Option<String>,
}

impl Issue {
    /// Creates an issue with the value itself.
    pub fn new(code: FieldCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), path: None }
    }

    /// Moves the issue to `path` inside the value.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Moves the issue into a member of the value.
    pub(crate) fn within(self, member: &str) -> Self {
        let path = match &self.path {
            Some(path) => format!("{member}.{path}"),
            None => member.to_owned(),
        };
        self.at(path)
    }

    /// Converts the issue into a validation error of one field.
    pub fn on(self, field: &str) -> Error {
        let mut violations = Violations::default();
        violations.push(field, self);
        Error::Validation(violations)
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Issue {}

/// One failing field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The name of the field, or the dotted path of a nested one.
    pub field: String,
    /// The stable code.
    pub code: FieldCode,
    /// The name of the field and what is wrong with it, without a full stop.
    pub message: String,
}

impl Violation {
    /// Returns a failing field as a service reported it.
    pub fn reported(field: String, code: FieldCode, message: String) -> Self {
        Self { field, code, message }
    }
}

/// The failing fields of one input, at most 100, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

/// The number of failing fields that are listed. A body can have many more.
const MAX_VIOLATIONS: usize = 100;
/// The number of characters after which the name of a field is shortened.
const MAX_NAME: usize = 200;

/// Collects failing fields, such as those that a service reported.
impl FromIterator<Violation> for Violations {
    fn from_iter<I: IntoIterator<Item = Violation>>(violations: I) -> Self {
        Self(violations.into_iter().take(MAX_VIOLATIONS).collect())
    }
}

impl Violations {
    /// Adds a failing field, unless the list is full.
    pub fn push(&mut self, field: &str, issue: Issue) {
        if self.is_full() {
            return;
        }
        let mut field = match issue.path {
            Some(path) => format!("{field}.{path}"),
            None => field.to_owned(),
        };
        if let Some((end, _)) = field.char_indices().nth(MAX_NAME) {
            field.truncate(end);
            field.push('…');
        }
        let message = format!("{field} {}", issue.message);
        self.0.push(Violation { field, code: issue.code, message });
    }

    /// Returns the failing fields.
    pub fn as_slice(&self) -> &[Violation] {
        &self.0
    }

    /// Returns whether the list is full, so that [`push`](Self::push) adds no more.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_VIOLATIONS
    }

    /// Returns whether no field fails.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A field that an error is about, as a response reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailingField<'e> {
    /// The path of the field, such as `line_items.0`.
    pub field: &'e str,
    /// The code of a [`FieldCode`], or that of the error.
    pub code: &'static str,
    /// The mistake in the field, as a sentence.
    pub message: Cow<'e, str>,
}

/// The reason why an operation was refused or failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is not a JSON object; holds the reason as a sentence.
    #[error("{0}")]
    InvalidJson(Cow<'static, str>),
    /// One or more fields of the input are not valid.
    #[error("{}", first_message(.0))]
    Validation(Violations),
    /// The cursor was not returned by the same list with the same filters and tenant.
    #[error("cursor was not returned by this list with these filters; start again without a cursor.")]
    InvalidCursor,
    /// An update has no field.
    #[error("Send at least one field to change.")]
    EmptyPatch,
    /// The field with this name refers to a record that does not exist in the tenant or is deleted.
    #[error("{0} must be the id of one of your contacts that is not deleted.")]
    ReferenceNotFound(&'static str),
    /// The idempotency key was used with another request, and the response to that one is still stored.
    #[error(
        "The idempotency key was used with another request; use a new key for each new request, and repeat a request byte for \
         byte."
    )]
    IdempotencyKeyReused,
    /// The API key is malformed or unknown.
    #[error("The API key is not valid; copy all of it, or create another one in the dashboard.")]
    InvalidKey,
    /// The API key was revoked.
    #[error("The API key was revoked; create a new one.")]
    KeyRevoked,
    /// The API key has expired.
    #[error("The API key has expired; create a new one or rotate it.")]
    KeyExpired,
    /// The access token is malformed, unknown, expired, revoked or for another resource, or its app is disabled.
    #[error("The access token is not valid, has expired or was revoked; refresh it, or ask the account's owner again.")]
    InvalidToken,
    /// The API key may only read.
    #[error("The API key has no write scope; use a key with read and write.")]
    InsufficientScope,
    /// The account has granted the app `read` alone.
    #[error("The account has not granted write to this app; ask its owner for it with scope=read+write.")]
    InsufficientGrant,
    /// The platform key lacks a scope; holds its name, such as `records:write`.
    #[error("The platform key has no scope {0}; use a key with this scope.")]
    MissingPlatformScope(String),
    /// Developer access of the account is pending or suspended.
    #[error("Developer access of this account is not approved; ask the operator of this service for it.")]
    AccessNotApproved,
    /// The tenant has no record with this id.
    #[error("There is no record with this id; check the id.")]
    NotFound,
    /// The database has no tenant with this id.
    #[error(
        "There is no account {0} in this database; check the id, and that the account was created in the database of this \
         store."
    )]
    UnknownTenant(TenantId),
    /// Another contact that is not deleted has the email address.
    #[error("A contact with this email exists; update it, or use another email.")]
    EmailTaken {
        /// The id of the contact that has the address.
        existing_id: Uuid,
    },
    /// The tenant has as many live webhook subscriptions as it may have.
    #[error("This account can have at most {limit} webhook subscriptions; delete one that you no longer need.")]
    LimitReached {
        /// The number of subscriptions that the tenant may have.
        limit: u32,
    },
    /// The first request with this idempotency key is still running.
    #[error("A request with this idempotency key is still running; try again in a moment.")]
    IdempotencyInProgress,
    /// The record is not in the version that the change is conditional on.
    #[error("The record has changed; read it again and repeat the change on its new version.")]
    PreconditionFailed,
    /// The state of the record does not allow this step; holds the reason as a sentence.
    #[error("{0}")]
    NotAllowed(String),
    /// The record was converted before, as a quote to a job.
    #[error("{reason}")]
    AlreadyConverted {
        /// The reason as a sentence.
        reason: String,
        /// The id of the record that it became.
        existing_id: Uuid,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Summarizes the violations in one sentence. It starts with the name of a field, so it is not capitalized.
fn first_message(violations: &Violations) -> String {
    match violations.as_slice() {
        [] => "The request is not valid.".to_owned(),
        [only] => format!("{}.", only.message),
        [first, rest @ ..] => format!("{}; {} more in errors.", first.message, rest.len()),
    }
}

impl Error {
    /// Returns the fields that the error is about.
    ///
    /// # Examples
    ///
    /// ```
    /// let error = svc_core::error::Error::ReferenceNotFound("contact_id");
    /// assert_eq!(error.failing_fields()[0].field, "contact_id");
    /// ```
    pub fn failing_fields(&self) -> Vec<FailingField<'_>> {
        let whole = |field| vec![FailingField { field, code: self.code(), message: self.to_string().into() }];
        match self {
            Self::Validation(violations) => violations
                .as_slice()
                .iter()
                .map(|Violation { field, code, message }| FailingField {
                    field,
                    code: code.as_str(),
                    message: message.into(),
                })
                .collect(),
            Self::ReferenceNotFound(field) => whole(field),
            Self::InvalidCursor => whole("cursor"),
            _ => Vec::new(),
        }
    }

    /// Returns the id of the record that is in the way, for [`Error::EmailTaken`] and [`Error::AlreadyConverted`].
    pub fn existing_id(&self) -> Option<Uuid> {
        match self {
            Self::EmailTaken { existing_id } | Self::AlreadyConverted { existing_id, .. } => Some(*existing_id),
            _ => None,
        }
    }

    /// Returns the stable code.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(svc_core::error::Error::NotFound.code(), "not_found");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidJson(_) => "invalid_json",
            Self::Validation(_) => "validation_failed",
            Self::InvalidCursor => "invalid_cursor",
            Self::EmptyPatch => "empty_patch",
            Self::ReferenceNotFound(_) => "reference_not_found",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::InvalidKey => "invalid_key",
            Self::KeyRevoked => "key_revoked",
            Self::KeyExpired => "key_expired",
            Self::InvalidToken => "invalid_token",
            Self::InsufficientScope | Self::InsufficientGrant | Self::MissingPlatformScope(_) => "insufficient_scope",
            Self::AccessNotApproved => "access_not_approved",
            Self::NotFound | Self::UnknownTenant(_) => "not_found",
            Self::EmailTaken { .. } => "email_taken",
            Self::LimitReached { .. } => "limit_reached",
            Self::IdempotencyInProgress => "idempotency_in_progress",
            Self::PreconditionFailed => "precondition_failed",
            Self::NotAllowed(_) | Self::AlreadyConverted { .. } => "not_allowed",
            Self::Store(StoreError::Closed) => "unavailable",
            Self::Store(error) if error.is_transient() => "unavailable",
            Self::Store(_) => "internal_error",
        }
    }
}

/// The reason why a store failed. The texts are for the log of the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database cannot be reached, is locked or is full. Trying again later may help.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// A unit of work took longer than it may, and was ended. Nothing was changed. It asks for too much, or the database has
    /// too much to do.
    #[error("it took too long: {0}")]
    TooSlow(String),
    /// The database or its disk failed during the commit, so the change may or may not have been made.
    #[error("the outcome of the commit is unknown: {0}")]
    OutcomeUnknown(String),
    /// The store was closed, or the program that has it is ending. Nothing was changed.
    #[error("the store is closed; open it again, and close it after everything that uses it")]
    Closed,
    /// The clock of this process is wrong, so it takes no writes until it is set. Other processes may take them.
    #[error("no writes are taken: {0}")]
    ClockSkew(String),
    /// The change violates a constraint of the schema.
    #[error("the change violates {constraint}")]
    Conflict {
        /// The name of the constraint in the database.
        constraint: String,
    },
    /// The key that encrypts secrets is missing or malformed, or is not that of the database.
    #[error("{0}")]
    SecretKey(String),
    /// A stored value does not have the type or form that its column promises.
    #[error("{table}.{column} holds an invalid value: {reason}")]
    Corrupt {
        /// The name of the table.
        table: &'static str,
        /// The name of the column.
        column: &'static str,
        /// The mistake in the value, without the value itself.
        reason: String,
    },
    /// The schema of the database does not fit this version of the program. Nothing was changed.
    #[error("the schema of the database does not fit this program: {0}")]
    SchemaMismatch(String),
    /// The database is not complete: a backup, a restore or a copy did not finish. Nothing was changed.
    #[error("{0}")]
    Incomplete(String),
    /// A fault in this program, such as a statement that the database refuses or a unit of work that panicked.
    #[error("internal fault: {0}")]
    Internal(String),
}

impl StoreError {
    /// Returns whether trying again later, on the same store, may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::TooSlow(_) | Self::OutcomeUnknown(_) | Self::ClockSkew(_))
    }
}
