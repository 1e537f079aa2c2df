//! Exit codes, and which failure leads to which.

use std::fmt::Display;
use std::process::ExitCode;

use svc_core::error::{Error, StoreError};
use svc_store::{MaintenanceError, OpenError};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Failed for a reason that is none of the others.
    Failed = 1,
    /// The command line, or a value on it, is not valid.
    Usage = 2,
    /// Nothing has the id.
    NotFound = 3,
    /// Refused: in conflict with what exists, or not allowed in its state.
    Refused = 4,
    /// The database cannot be reached.
    Unreachable = 5,
}

/// The end of `svc --help`.
pub const LONG_HELP: &str = "\
Environment:
  SVC_DATABASE_URL    the database, where --database-url is not given
  SVC_SECRET_KEY      what secrets in the database are sealed with; of SQLite it may lie in PATH.key
  SVC_WEBHOOK_SECRET  the secret of `svc listen`, where --secret is not given
  NO_COLOR            when set, nothing is coloured

Exit codes:
  0  done
  1  failed
  2  usage: the command line, or a value on it, is not valid
  3  not found: nothing has the id
  4  refused: in conflict with what exists, or not allowed in its state
  5  the database cannot be reached";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed: a sentence for people and a code for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// A failure with its sentence.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// How the program ends.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Puts the name of the thing into "not found".
pub trait OrNotFound<T> {
    /// `what` and `id` name what was looked for; `hint` tells where ids come from.
    ///
    /// # Errors
    /// The same, as a [`Failure`].
    fn or_not_found(self, what: &str, id: impl Display, hint: &str) -> Result<T, Failure>;
}

impl<T> OrNotFound<T> for Result<T, Error> {
    fn or_not_found(self, what: &str, id: impl Display, hint: &str) -> Result<T, Failure> {
        self.map_err(|error| match error {
            Error::NotFound => Failure::new(Exit::NotFound, format!("There is no {what} {id}; {hint}.")),
            other => other.into(),
        })
    }
}

/// Every error has its arm, so that a new one is given its code.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::Validation(violations) => {
                // A field of the API is the option of the same name here.
                let messages: Vec<String> =
                    violations.as_slice().iter().map(|violation| format!("--{}", violation.message)).collect();
                return Self::new(Exit::Usage, format!("{}.", messages.join("; ")));
            }
            Error::InvalidJson(_)
            | Error::UnknownParameter(_)
            | Error::InvalidCursor
            | Error::EmptyPatch
            | Error::IdempotencyKeyReused => Exit::Usage,
            Error::NotFound | Error::ReferenceNotFound(_) => Exit::NotFound,
            Error::MissingCredentials
            | Error::InvalidKey
            | Error::KeyRevoked
            | Error::KeyExpired
            | Error::SignatureRequired
            | Error::SignatureInvalid(_)
            | Error::InsufficientScope
            | Error::AccessNotApproved
            | Error::EmailTaken { .. }
            | Error::IdempotencyInProgress
            | Error::PreconditionFailed
            | Error::NotAllowed(_)
            | Error::Store(StoreError::Conflict { .. }) => Exit::Refused,
            Error::Store(StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_)) => Exit::Unreachable,
            Error::Store(StoreError::SchemaMismatch(_) | StoreError::Corrupt { .. } | StoreError::Internal(_)) => {
                Exit::Failed
            }
        };
        Self::new(exit, error.to_string())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match &error {
            OpenError::InvalidUrl(_) => Self::new(Exit::Usage, error.to_string()),
            OpenError::Unavailable { .. } => {
                let hint = "Check the URL, and that what it names is there and may be used.";
                Self::new(Exit::Unreachable, format!("{error}. {hint}"))
            }
        }
    }
}

impl From<MaintenanceError> for Failure {
    fn from(error: MaintenanceError) -> Self {
        match error {
            MaintenanceError::Open(error) => error.into(),
            MaintenanceError::Store(error) => Error::Store(error).into(),
            MaintenanceError::Refused(reason) => Self::new(Exit::Refused, reason),
            MaintenanceError::Unsupported(reason) => Self::new(Exit::Usage, reason),
            MaintenanceError::File(reason) => Self::new(Exit::Failed, reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_core::error::{FieldCode, Issue};

    use super::*;

    #[test]
    fn errors_lead_to_their_codes() {
        let exit = |error: Error| Failure::from(error).exit();
        assert_eq!(exit(Error::NotFound), Exit::NotFound);
        assert_eq!(exit(Error::AccessNotApproved), Exit::Refused);
        assert_eq!(exit(Error::NotAllowed(String::new())), Exit::Refused);
        assert_eq!(exit(StoreError::Conflict { constraint: "id".to_owned() }.into()), Exit::Refused);
        assert_eq!(exit(StoreError::Unavailable(String::new()).into()), Exit::Unreachable);
        assert_eq!(exit(StoreError::OutcomeUnknown(String::new()).into()), Exit::Unreachable);
        assert_eq!(exit(StoreError::Internal(String::new()).into()), Exit::Failed);
    }

    #[test]
    fn a_failing_field_is_named_as_its_option() {
        let failure = Failure::from(Issue::new(FieldCode::OutOfRange, "must have at most 0 decimals").on("total"));
        assert_eq!(failure, Failure::new(Exit::Usage, "--total must have at most 0 decimals."));
    }

    #[test]
    fn the_help_lists_every_code() {
        let (_, listed) = LONG_HELP.split_once("Exit codes:\n").unwrap();
        let listed: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
        let codes = [Exit::Done, Exit::Failed, Exit::Usage, Exit::NotFound, Exit::Refused, Exit::Unreachable];
        assert_eq!(listed, codes.map(|exit| (exit as u8).to_string()));
    }
}
