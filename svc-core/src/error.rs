//! What can go wrong, as values: each knows its stable code (decisions §2) and a sentence that says how
//! to mend it. Status codes are the server's business; internals never reach these texts.

use std::borrow::Cow;
use std::fmt;

use uuid::Uuid;

use crate::values::text_enum;

text_enum! {
    /// What is wrong with one field.
    pub enum FieldCode {
        Required = "required",
        InvalidType = "invalid_type",
        InvalidFormat = "invalid_format",
        InvalidEnum = "invalid_enum",
        TooLong = "too_long",
        TooShort = "too_short",
        OutOfRange = "out_of_range",
        NotNullable = "not_nullable",
        UnknownField = "unknown_field",
        ReadOnlyField = "read_only_field",
        DuplicateKey = "duplicate_key",
    }
}

/// What is wrong with a value, before it is known which field the value belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Stable code.
    pub code: FieldCode,
    /// Reads on from the field's name: "must be …".
    pub message: Cow<'static, str>,
    /// Dotted path below the field, for nested values.
    pub path: Option<String>,
}

impl Issue {
    /// An issue with the value itself.
    pub fn new(code: FieldCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), path: None }
    }

    /// The same issue, found at `path` inside the value.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// The issue as a whole error about `field`.
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
pub struct Violation {
    /// Name of the field; nested ones as a dotted path.
    pub field: String,
    /// Stable code.
    pub code: FieldCode,
    /// A sentence: the field's name and what it must be.
    pub message: String,
}

/// All failing fields of one input, in the order they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

/// Failing fields that are named; a body can have many more.
const MAX_VIOLATIONS: usize = 100;
/// Characters of a field's name that are repeated.
const MAX_NAME: usize = 200;

impl Violations {
    /// Notes that `field` fails, unless very many do already.
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

    /// The failing fields.
    pub fn as_slice(&self) -> &[Violation] {
        &self.0
    }

    /// Whether no more are noted.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_VIOLATIONS
    }

    /// Whether everything is well.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Why an operation was refused or failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The body is no JSON object.
    #[error("{0}")]
    InvalidJson(Cow<'static, str>),
    /// Fields of the body, the query or the path fail.
    #[error("{}", first_message(.0))]
    Validation(Violations),
    /// A query parameter that the operation does not have; its name.
    #[error("{0} is no parameter of this operation; see the API description.")]
    UnknownParameter(String),
    /// A cursor that was not made for this list, these filters and this account.
    #[error("cursor is not one that this list with these filters has given out; start again without it.")]
    InvalidCursor,
    /// A PATCH without a field.
    #[error("Send at least one field to change.")]
    EmptyPatch,
    /// A field that refers to nothing that exists; its name.
    #[error("{0} must be the id of one of your contacts that is not deleted.")]
    ReferenceNotFound(&'static str),
    /// The Idempotency-Key was used for another request in the last day.
    #[error("This Idempotency-Key was used with another request; use a new key for each new request.")]
    IdempotencyKeyReused,
    /// No key was sent.
    #[error("Send your API key as: Authorization: Bearer svc_live_…")]
    MissingCredentials,
    /// The key is malformed or unknown.
    #[error("The API key is not valid; copy it again from Settings, API keys.")]
    InvalidKey,
    /// The key was revoked.
    #[error("The API key was revoked; create a new one.")]
    KeyRevoked,
    /// The key has expired.
    #[error("The API key has expired; create a new one or rotate it.")]
    KeyExpired,
    /// The key demands signed writes.
    #[error("This key signs its writes; send X-SVC-Timestamp and X-SVC-Signature.")]
    SignatureRequired,
    /// The request signature is wrong, stale or was used before; why.
    #[error("{0}")]
    SignatureInvalid(&'static str),
    /// The key may only read.
    #[error("The API key has no write scope; use a key with read and write.")]
    InsufficientScope,
    /// The account's developer access is not approved.
    #[error("Developer access of this account is not approved; ask for it under Settings.")]
    AccessNotApproved,
    /// No such row, of this account.
    #[error("Nothing was found at this address; check the id.")]
    NotFound,
    /// Another live contact has the email.
    #[error("A contact with this email exists; update it, or use another email.")]
    EmailTaken {
        /// The contact that has it.
        existing_id: Uuid,
    },
    /// The first request with this Idempotency-Key is still running.
    #[error("A request with this Idempotency-Key is still running; try again in a moment.")]
    IdempotencyInProgress,
    /// `If-Match` names another version.
    #[error("The resource has changed; get it again and repeat the change on its new ETag.")]
    PreconditionFailed,
    /// A step that the record's state does not allow.
    #[error("{0}")]
    NotAllowed(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Texts begin with the field's name, which is a word of the API and keeps its case.
fn first_message(violations: &Violations) -> String {
    match violations.as_slice() {
        [] => "The request is not valid.".to_owned(),
        [only] => format!("{}.", only.message),
        [first, rest @ ..] => format!("{}; {} more in errors.", first.message, rest.len()),
    }
}

impl Error {
    /// The stable code.
    ///
    /// ```
    /// assert_eq!(svc_core::error::Error::NotFound.code(), "not_found");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidJson(_) => "invalid_json",
            Self::Validation(_) => "validation_failed",
            Self::UnknownParameter(_) => "unknown_parameter",
            Self::InvalidCursor => "invalid_cursor",
            Self::EmptyPatch => "empty_patch",
            Self::ReferenceNotFound(_) => "reference_not_found",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::MissingCredentials => "missing_credentials",
            Self::InvalidKey => "invalid_key",
            Self::KeyRevoked => "key_revoked",
            Self::KeyExpired => "key_expired",
            Self::SignatureRequired => "signature_required",
            Self::SignatureInvalid(_) => "signature_invalid",
            Self::InsufficientScope => "insufficient_scope",
            Self::AccessNotApproved => "access_not_approved",
            Self::NotFound => "not_found",
            Self::EmailTaken { .. } => "email_taken",
            Self::IdempotencyInProgress => "idempotency_in_progress",
            Self::PreconditionFailed => "precondition_failed",
            Self::NotAllowed(_) => "not_allowed",
            Self::Store(error) if error.is_transient() => "unavailable",
            Self::Store(_) => "internal_error",
        }
    }
}

/// Why a store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database is away, locked or full; the text is for the log. Trying again later may help.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The database went away, or its disk failed, while the change was being committed: it may have been made or not.
    #[error("the outcome of the commit is unknown: {0}")]
    OutcomeUnknown(String),
    /// A constraint of the schema refused the change.
    #[error("the change violates {constraint}")]
    Conflict {
        /// What the database calls the constraint.
        constraint: String,
    },
    /// A stored value is not what its column promises.
    #[error("{table}.{column} holds what it must not: {reason}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// What was found, without the data itself.
        reason: String,
    },
    /// The schema of the database does not fit this version of the program. Nothing was changed.
    #[error("the schema of the database does not fit this program: {0}")]
    SchemaMismatch(String),
    /// A fault in this program: a statement that the database refuses, a job that panicked.
    #[error("internal fault: {0}")]
    Internal(String),
}

impl StoreError {
    /// Whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::OutcomeUnknown(_))
    }
}
