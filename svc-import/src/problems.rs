//! The problems of refused rows, worded for rows of a file.

use svc_core::error::{Error, FieldCode, Issue};
use svc_core::platform::{ImportKind, RowProblem};
use uuid::Uuid;

/// Returns the problem of a row that matches an existing record with different fields, or one that an earlier line of a dry run
/// would add.
pub(crate) fn differs(
    kind: ImportKind,
    id: Uuid,
    added_by: Option<u64>,
    fields: &[String],
    update: &str,
) -> RowProblem {
    let (name, hint) = match kind {
        ImportKind::Contacts => (["contact", "Contact"], update),
        ImportKind::Invoices | ImportKind::All => (["invoice", "Invoice"], ""),
    };
    let fields_named = fields.join(", ");
    let error = match added_by {
        Some(line) => format!("Line {line} adds the same {} with a different {fields_named}{hint}.", name[0]),
        None => format!("{} {id} already exists with a different {fields_named}{hint}.", name[1]),
    };
    let (field, existing_id) = (fields.first().cloned(), Some(id).filter(|_| added_by.is_none()));
    RowProblem { error, code: "differs".to_owned(), field, errors: Vec::new(), existing_id }
}

/// Words a problem by the line of a dry run that would add the record that is in the way, whose id is that of no record.
pub(crate) fn by_line(problem: RowProblem, line: u64) -> RowProblem {
    let error = match (problem.existing_id, problem.error.split_once(" is the number of another invoice, ")) {
        (Some(id), _) => problem.error.replace(&format!("The contact {id}"), &format!("The contact of line {line}")),
        (None, Some((number, _))) => format!("{number} is the number of the invoice of line {line}."),
        (None, None) => problem.error,
    };
    RowProblem { error, existing_id: None, ..problem }
}

/// Returns the problem of a row that is too long.
pub(crate) fn too_long(hint: &str) -> RowProblem {
    of_rules(Issue::new(FieldCode::TooLong, format!("must have at most 1 MiB; {hint}")).on("row"))
}

/// Returns the problem of a row that the rules refused, worded for a row of a file.
pub fn of_rules(error: Error) -> RowProblem {
    let problem = RowProblem::from(error.clone());
    match error {
        Error::Validation(_) => {
            let messages: Vec<&str> = problem.errors.iter().map(|error| error.message.as_str()).collect();
            RowProblem { error: format!("{}.", messages.join("; ")), ..problem }
        }
        Error::InvalidJson(reason) => RowProblem { error: reason.replace("The body", "The line"), ..problem },
        Error::ReferenceNotFound(field) => {
            let error = format!(
                "{field} must be the id of a contact of this account that is not deleted; import the contacts first, with the \
                 ids that they have in their export."
            );
            // The field is named, and there is no more to say of it.
            RowProblem { error, errors: Vec::new(), ..problem }
        }
        Error::EmailTaken { existing_id } => {
            let error = format!("The contact {existing_id} has this email already.");
            RowProblem { error, field: Some("email".to_owned()), ..problem }
        }
        _ => problem,
    }
}

/// Words a problem that the service reported for a row of a file.
pub(crate) fn reported(problem: RowProblem) -> RowProblem {
    problem.to_error().map_or(problem, of_rules)
}
