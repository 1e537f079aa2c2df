//! `svc contact`.

use svc_core::resources::contacts::{Contact, ContactCreate, ContactUpdate};
use svc_core::resources::crud;
use svc_core::store::{Store, Tx};
use svc_core::values::{Email, Id, TenantId, Text};

use super::lookup::Lookup;
use super::records::{self, Managed};
use crate::cli::ContactCommand;
use crate::exit::Failure;
use crate::output::{Outcome, Table, or_dash};
use crate::times::full;

pub(super) async fn run(store: &dyn Store, command: ContactCommand) -> Result<Outcome, Failure> {
    match command {
        ContactCommand::Records(command) => records::run(store, command).await,
        ContactCommand::Delete(target) => records::delete::<Contact>(store, &target).await,
    }
}

impl Managed for Contact {
    fn create(tx: &mut dyn Tx, tenant: TenantId, input: ContactCreate) -> Lookup<'_, Self> {
        Box::pin(crud::create::<Self>(tx, tenant, input))
    }

    fn update(tx: &mut dyn Tx, tenant: TenantId, id: Id<Self>, change: ContactUpdate) -> Lookup<'_, Self> {
        Box::pin(crud::update::<Self>(tx, tenant, id, change))
    }

    fn table(contacts: &[Self]) -> Table {
        Table::new(["ID", "NAME", "EMAIL", "PHONE", "COMPANY", "CITY", "CREATED"], contacts, |contact| {
            [
                contact.id.to_string(),
                name(contact),
                or_dash(contact.email.as_ref().map(Email::as_str)),
                or_dash(contact.phone.as_ref()),
                or_dash(contact.company_name.as_ref()),
                or_dash(contact.city.as_ref()),
                full(contact.created_at),
            ]
        })
    }
}

/// Returns the name of a person.
fn name(contact: &Contact) -> String {
    let names: Vec<&str> = [&contact.first_name, &contact.last_name].into_iter().flatten().map(Text::as_str).collect();
    if names.is_empty() { or_dash(None::<String>) } else { names.join(" ") }
}
