//! `svc contact`.

use clap::Subcommand;
use svc_core::find::SearchParams;
use svc_core::lookup::KindInAccount;
use svc_core::operation::Listing;
use svc_core::personal::{ContactDataParams, Erasure, ErasureCreate};
use svc_core::platform::operations::{self, Records};
use svc_core::resources::contacts::{Contact, ContactCreate, ContactFilter, ContactId, ContactUpdate};
use svc_core::values::{TenantId, Text};

use super::lookup;
use super::records::{self, RecordCommand};
use super::resource::{CreateOperation, ListOperation, ResourceCommands, UpdateOperation};
use crate::exit::{Exit, Failure};
use crate::ids::{IdArg, Target};
use crate::output::Outcome;
use crate::service::Service;
use crate::session::Session;

/// Manage contacts: people and companies.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc contact create --email ada@example.com --first-name Ada")]
pub(crate) enum ContactCommand {
    #[command(flatten)]
    Records(RecordCommand<Contact>),
    /// Delete a contact.
    ///
    /// Invoices, quotes, bookings and jobs keep their reference to it. Its email address can be used again.
    #[command(after_help = "Example:\n  svc contact delete b27d40aa91c3")]
    Delete(Target),
    /// Erase a contact: delete it, and empty all personal fields.
    ///
    /// The personal fields of its jobs, the notes of its bookings, and what events have of them are emptied as well. Ids,
    /// numbers, amounts and times stay. Webhooks get contact.deleted with the id alone. A contact that is deleted already
    /// is named by its whole id.
    #[command(after_help = "Example:\n  svc contact erase b27d40aa91c3 --reason 'asked by letter on 3 March'")]
    Erase {
        #[command(flatten)]
        target: Target,
        /// Why, for the audit log, which keeps it. Name nobody in it.
        #[arg(long, value_name = "TEXT")]
        reason: Text<500>,
    },
    /// Print all that is known of a contact, as JSON.
    ///
    /// It is the answer to a person who asks for it: the contact, its records and payments, and what happened to them for as
    /// long as events are kept.
    #[command(after_help = "Example:\n  svc contact export-all ada@example.com > ada.json")]
    ExportAll(Target),
}

impl ResourceCommands for Contact {
    type ListFilter = Listing<SearchParams, ContactFilter>;
    type Create = ContactCreate;
    type Update = ContactUpdate;
    type Creation = Self;
    const KIND: KindInAccount = KindInAccount::Contact;
    const LIST: ListOperation<Self> = Records::<Self>::SEARCH;
    const CREATE: CreateOperation<Self> = Records::<Self>::CREATE;
    const UPDATE: UpdateOperation<Self> = Records::<Self>::UPDATE;
    const CREATE_EXAMPLE: &'static str = "--email ada@example.com --first-name Ada";
    const UPDATE_EXAMPLE: &'static str = "--phone '+61 2 5550 0100' --city ''";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("NAME", "first_name last_name"),
        ("EMAIL", "email"),
        ("PHONE", "phone"),
        ("COMPANY", "company_name"),
        ("CITY", "city"),
        ("CREATED", "created_at"),
    ];
}

pub(crate) async fn run(session: &Session, command: ContactCommand) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    match command {
        ContactCommand::Records(command) => records::run(session, service, command).await,
        ContactCommand::Delete(target) => {
            let question = |contact: &Contact| {
                let contact = title(contact);
                format!("Delete contact {contact}? This cannot be undone, and webhooks are notified.")
            };
            records::delete(session, service, &target, question).await
        }
        ContactCommand::Erase { target, reason } => erase(session, service, &target, reason).await,
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

/// Names a contact by its name and its email address.
fn title(contact: &Contact) -> String {
    let name = contact.display_name();
    let email = contact.email.as_ref().map(ToString::to_string).filter(|email| *email != name);
    email.map_or_else(|| name.clone(), |email| format!("{name} ({email})"))
}

async fn erase(session: &Session, service: &Service, target: &Target, reason: Text<500>) -> Result<Outcome, Failure> {
    let (account, id, contact) = find(service, target).await?;
    let contact = contact.map_or_else(|| id.to_string(), |contact| title(&contact));
    session.confirm(&format!(
        "Erase contact {contact}, with what its jobs, bookings and events have of it? This cannot be undone."
    ))?;
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
async fn find(service: &Service, target: &Target) -> Result<(TenantId, ContactId, Option<Contact>), Failure> {
    match (lookup::find::<Contact>(service, &target.id, &target.account).await, &target.id) {
        (Ok(found), _) => Ok((found.tenant_id, found.id, Some(found.record))),
        (Err(failure), IdArg::Whole(id)) if failure.exit() == Exit::NotFound => {
            Ok((lookup::account(service, &target.account).await?.id, (*id).into(), None))
        }
        (Err(failure), _) => Err(failure),
    }
}
