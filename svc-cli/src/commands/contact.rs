//! `svc contact`.

use svc_core::resources::contacts::Contact;

use super::records;
use crate::cli::ContactCommand;
use crate::exit::Failure;
use crate::output::Outcome;
use crate::service::Service;

pub(super) async fn run(service: &Service, command: ContactCommand) -> Result<Outcome, Failure> {
    match command {
        ContactCommand::Records(command) => records::run(service, command).await,
        ContactCommand::Delete(target) => records::delete::<Contact>(service, &target).await,
    }
}
