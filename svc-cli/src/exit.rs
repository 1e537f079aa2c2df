//! The exit codes of the program, and the mapping of errors to them.

use std::process::ExitCode;

use svc_core::error::{Error, StoreError, Violation};
use svc_store::{MaintenanceError, OpenError};

use crate::options::option_name;

/// The exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The command succeeded.
    Success = 0,
    /// The command failed for a reason that no other code names.
    Failed = 1,
    /// The command line or one of its values is not valid.
    Usage = 2,
    /// Nothing has the given id, or there is no database at the given path.
    NotFound = 3,
    /// The operation conflicts with existing data, the current status does not allow it, or several accounts or records
    /// have the given id or part of an id.
    Refused = 4,
    /// The database or the server cannot be reached.
    Unreachable = 5,
}

/// The environment variables and exit codes, which end the output of `svc help options`.
pub(crate) const LONG_HELP: &str = "\
Environment variables:
  SVC_DATABASE_URL    Database to use when --database-url is not given
  SVC_SERVER          Server to work on when --server is not given
  SVC_PLATFORM_KEY    Platform key for --server
  SVC_PROFILE         Profile to work on when --profile is not given
  SVC_CA_FILE         Certificates to trust when --ca-file is not given
  SVC_SECRET_KEY      Key that encrypts secrets in the database; SQLite has it in PATH.key
  SVC_TENANT          Account to work on when --account is not given and there are several
  SVC_ALLOW_PRIVATE_WEBHOOKS
                      Whether webhook URLs can have http:// and private addresses
  SVC_RETENTION       How long `svc db prune` keeps events when --retention is not given
  SVC_WEBHOOK_SECRET  Signing secret for `svc listen` when --secret is not given
  NO_COLOR            Disables colour when set

Exit codes:
  0  The command succeeded
  1  The command failed for a reason that no other code names
  2  Usage error: the command line or one of its values is not valid
  3  Not found: nothing has the given id, or there is no database at the path
  4  Refused: existing data or the current status does not allow it, or several things have the id
  5  The database or the server cannot be reached";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The failure of a command: a message for people and an exit code for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// Creates a failure from its exit code and message.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Returns the message: whole sentences that say what was wrong and what to do.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::Validation(violations) => {
                // Options have the names of the API's fields.
                let messages: Vec<String> = violations.as_slice().iter().map(option_message).collect();
                return Self::new(Exit::Usage, format!("{}.", messages.join("; ")));
            }
            Error::EmailTaken { existing_id } => {
                let reason =
                    format!("The contact {existing_id} has this email; update that one, or use another email.");
                return Self::new(Exit::Refused, reason);
            }
            Error::InvalidJson(_) | Error::InvalidCursor | Error::EmptyPatch | Error::IdempotencyKeyReused => {
                Exit::Usage
            }
            Error::NotFound | Error::UnknownTenant(_) | Error::ReferenceNotFound(_) => Exit::NotFound,
            Error::InvalidKey
            | Error::KeyRevoked
            | Error::KeyExpired
            | Error::InsufficientScope
            | Error::InsufficientGrant
            | Error::AccessNotApproved
            | Error::LimitReached { .. }
            | Error::IdempotencyInProgress
            | Error::PreconditionFailed
            | Error::NotAllowed(_)
            | Error::AlreadyConverted { .. }
            | Error::Store(StoreError::Conflict { .. }) => Exit::Refused,
            Error::Store(StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_)) => Exit::Unreachable,
            // A fault that none of the others describes, also one that came after this was written.
            _ => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}

/// Words what is wrong with a field as what is wrong with its option.
fn option_message(violation: &Violation) -> String {
    let rest = violation.message.strip_prefix(&violation.field).unwrap_or(&violation.message);
    match violation.field.split_once('.') {
        Some((field, inside)) => match inside.parse::<usize>() {
            Ok(index) => format!("--{}: value {}{rest}", option_name(field), index + 1),
            Err(_) => format!("--{}: {inside}{rest}", option_name(field)),
        },
        // It is an argument without a name.
        None if violation.field == "text" => format!("TEXT{rest}"),
        None => format!("--{}{rest}", option_name(&violation.field)),
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let (exit, hint) = match &error {
            OpenError::InvalidUrl(_) | OpenError::MissingFeature(_) => {
                return Self::new(Exit::Usage, error.to_string());
            }
            OpenError::NotFound(_) => {
                (Exit::NotFound, " Check the path, or make a database there with `svc init` or `svc db migrate`.")
            }
            OpenError::NoFolder(_) => (Exit::NotFound, ""),
            OpenError::Unavailable { source: StoreError::Unavailable(_), .. } => {
                (Exit::Unreachable, " Check the URL, that the database exists, and that you have permission to use it.")
            }
            OpenError::Unavailable { source: StoreError::SecretKey(_), .. } => (Exit::Failed, ""),
            _ => (Exit::Unreachable, ""),
        };
        Self::new(exit, format!("{error}.{hint}"))
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
    fn errors_map_to_exit_codes() {
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
    fn an_invalid_field_is_named_as_its_option() {
        let failure = Failure::from(Issue::new(FieldCode::OutOfRange, "must have at most 0 decimals").on("total"));
        assert_eq!(failure, Failure::new(Exit::Usage, "--total must have at most 0 decimals."));
    }

    #[test]
    fn the_help_lists_every_exit_code() {
        let (_, listed) = LONG_HELP.split_once("Exit codes:\n").unwrap();
        let listed: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
        let codes = [Exit::Success, Exit::Failed, Exit::Usage, Exit::NotFound, Exit::Refused, Exit::Unreachable];
        assert_eq!(listed, codes.map(|exit| (exit as u8).to_string()));
    }
}
