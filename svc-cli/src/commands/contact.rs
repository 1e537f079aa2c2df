//! `svc contact`.

use svc_core::platform::Operation;
use svc_core::platform::operations::Records;
use svc_core::resources::contacts::Contact;
use svc_core::values::{Email, Id, TenantId, Text};

use super::records::{self, Managed};
use crate::cli::ContactCommand;
use crate::exit::Failure;
use crate::output::{Outcome, Table, or_dash};
use crate::service::Service;
use crate::times::full;

pub(super) async fn run(service: &Service, command: ContactCommand) -> Result<Outcome, Failure> {
    match command {
        ContactCommand::Records(command) => records::run(service, command).await,
        ContactCommand::Delete(target) => records::delete::<Contact>(service, &target).await,
    }
}

impl Managed for Contact {
    type Created = Self;
    const CREATE: Operation<TenantId, Self::Create, Self> = Records::<Self>::CREATE;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = Records::<Self>::UPDATE;

    fn created(created: Self) -> Result<Outcome, Failure> {
        records::created(&created)
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
