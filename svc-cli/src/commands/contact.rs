//! `svc contact`.

use svc_core::personal::{ContactDataParams, Erasure, ErasureCreate};
use svc_core::platform::operations;
use svc_core::resources::contacts::{Contact, ContactId};
use svc_core::values::{TenantId, Text};

use super::{lookup, records};
use crate::cli::ContactCommand;
use crate::cli::records::Target;
use crate::exit::{Exit, Failure};
use crate::ids::IdArg;
use crate::output::Outcome;
use crate::service::Service;

pub(super) async fn run(service: &Service, command: ContactCommand) -> Result<Outcome, Failure> {
    match command {
        ContactCommand::Records(command) => records::run(service, command).await,
        ContactCommand::Delete(target) => records::delete::<Contact>(service, &target).await,
        ContactCommand::Erase { target, reason } => erase(service, &target, reason).await,
        ContactCommand::ExportAll(target) => {
            let (account, id, _) = find(service, &target).await?;
            let page = async |cursor| {
                service.call(&operations::GET_CONTACT_DATA, (account, id), ContactDataParams { cursor }).await
            };
            let mut data = page(None).await?;
            while let Some(cursor) = data.next_cursor.take() {
                data = data.and(page(Some(cursor)).await?);
            }
            let json = serde_json::to_string_pretty(&data).map_err(|error| {
                Failure::new(Exit::Failed, format!("What is known of the contact cannot be written: {error}"))
            })?;
            let note = "There is more: at most the newest 1,000 payments of an invoice are written.";
            Ok(Outcome::new(&data, json)?.with_note((!data.is_complete).then(|| note.to_owned())))
        }
    }
}

async fn erase(service: &Service, target: &Target, reason: Text<500>) -> Result<Outcome, Failure> {
    let (account, id, _) = find(service, target).await?;
    let mut all = Erasure::default();
    while !all.is_complete {
        let input = ErasureCreate { reason: reason.clone() };
        all = all.and(service.call(&operations::ERASE_CONTACT, (account, id), input).await?);
    }
    let Erasure { contacts, jobs, bookings, events, .. } = all;
    let text = if contacts + jobs + bookings + events == 0 {
        format!("Contact {id} was erased before, and nothing was left.")
    } else {
        format!(
            "Erased contact {id}, with what {jobs} of its jobs, {bookings} of its bookings and {events} events had of it."
        )
    };
    Outcome::new(&all, text)
}

/// Returns the account and the id of the contact that was named, and the contact itself unless it is deleted. One that is
/// deleted is named by its whole id.
pub(super) async fn find(
    service: &Service,
    target: &Target,
) -> Result<(TenantId, ContactId, Option<Contact>), Failure> {
    match (lookup::find::<Contact>(service, &target.id, &target.account).await, &target.id) {
        (Ok(found), _) => Ok((found.tenant_id, found.id, Some(found.record))),
        (Err(failure), IdArg::Whole(id)) if failure.exit() == Exit::NotFound => {
            Ok((lookup::account(service, &target.account).await?.id, (*id).into(), None))
        }
        (Err(failure), _) => Err(failure),
    }
}
