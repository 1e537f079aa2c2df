//! Prompts for confirmation before commands that cannot be undone.
//!
//! A question names what the command is about to change, so it is looked up first: an id that nothing has is an error, not a
//! question. The command then works on exactly that record, even if its id was given in part.
//!
//! The prompt appears only when stdin and stderr are terminals. A script is never asked.

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal as _, Write};

use svc_core::platform::ApiKey;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::values::Decimal;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::lookup::{self, Found, Owned};
use super::{app, contact, grant, member, platform_key};
use crate::cli::records::Target;
use crate::cli::{
    AccountCommand, AppCommand, Command, ContactCommand, DbCommand, DeliveryCommand, GrantCommand, InAccount,
    InvoiceCommand, KeyCommand, MemberCommand, PlatformKeyCommand, WebhookCommand,
};
use crate::exit::{Exit, Failure};
use crate::ids::IdArg;
use crate::output::{money, plain_line};
use crate::service::Service;
use crate::times::{self, moment};

/// Asks for confirmation if the command needs it, unless there is no terminal. Parts of ids in the command are completed.
///
/// # Errors
/// What the command names is not there, the person declined, or the response could not be read.
pub(super) async fn ask(service: &Service, command: &mut Command) -> Result<(), Failure> {
    if !is_interactive() {
        return Ok(());
    }
    match question(service, command).await? {
        Some(question) => confirm(&question),
        None => Ok(()),
    }
}

/// Asks for confirmation of a command on the whole database, as [`ask`] does.
///
/// # Errors
/// The person declined, or the response could not be read.
pub(super) fn ask_for_database(command: &DbCommand) -> Result<(), Failure> {
    match command {
        DbCommand::Prune { retention, dry_run: false } if is_interactive() => {
            let age = times::span(*retention);
            confirm(&format!("Delete finished deliveries older than {age}, with their logs and events?"))
        }
        _ => Ok(()),
    }
}

/// Returns the question to ask before this command, if it needs confirmation.
async fn question(service: &Service, command: &mut Command) -> Result<Option<String>, Failure> {
    Ok(Some(match command {
        Command::Account(AccountCommand::Suspend { id }) => {
            let account = lookup::account_by_id(service, id).await?;
            *id = IdArg::Whole(account.id.0);
            format!("Suspend account {}? Its keys are rejected from the next request on.", account.name)
        }
        Command::Account(AccountCommand::Sandbox { id, reset, delete }) if *reset || *delete => {
            let account = lookup::account_by_id(service, id).await?;
            *id = IdArg::Whole(account.id.0);
            if *delete {
                format!("Delete the sandbox of {}, with its keys and webhooks? This cannot be undone.", account.name)
            } else {
                format!("Reset the sandbox of {}? What it has is deleted, but for its keys and webhooks.", account.name)
            }
        }
        Command::Key(KeyCommand::Revoke { id, account }) => {
            let key: ApiKey = found(service, id, account).await?.record;
            format!("Revoke {}? It is rejected from the next request on, and this cannot be undone.", key_title(&key))
        }
        Command::PlatformKey(PlatformKeyCommand::Revoke { id }) => {
            let key = platform_key::find(service.database("svc platform-key")?, id).await?;
            *id = IdArg::Whole(key.id.uuid());
            let name = key.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            let prefix = key.prefix;
            format!(
                "Revoke platform key{name} ({prefix}…)? It is rejected from the next request on, and this cannot be undone."
            )
        }
        Command::App(AppCommand::Delete(named)) => {
            let app = app::find(service, named).await?;
            named.app = IdArg::Whole(app.id.uuid());
            format!("Delete the app {}? Its access to all accounts ends, and this cannot be undone.", app.name)
        }
        Command::Grant(GrantCommand::Revoke { grant, account }) => {
            let in_account = lookup::account(service, account).await?;
            account.account = Some(IdArg::Whole(in_account.id.0));
            let known = grant::find(service, &in_account, grant).await?;
            *grant = IdArg::Whole(known.id.uuid());
            let used =
                known.last_used_at.map_or_else(|| "never used".to_owned(), |at| format!("last used {}", moment(at)));
            let (app, name) = (known.app_name, in_account.name);
            format!("End the access of {app}, {used}, to {name}? Its tokens are refused from the next request on.")
        }
        Command::Member(MemberCommand::Remove { account, email }) => {
            let in_account = lookup::account(service, account).await?;
            account.account = Some(IdArg::Whole(in_account.id.0));
            let known = member::member(service, &in_account, email).await?;
            let (email, role, name) = (known.email, known.role, in_account.name);
            format!("Remove {email}, {role} of {name}? They see nothing of it from the next request on.")
        }
        Command::Invoice(InvoiceCommand::Void(target)) => {
            let invoice = invoice_title(service, &of_target::<Invoice>(service, target).await?).await?;
            format!("Void {invoice}? It is cancelled for good, and webhooks are notified.")
        }
        Command::Invoice(InvoiceCommand::Refund { target, amount }) => {
            let found = of_target::<Invoice>(service, target).await?;
            let (refund, title) = (refund(&found.record, *amount), invoice_title(service, &found).await?);
            format!("Record a refund of {refund} for {title}? Webhooks are notified.")
        }
        Command::Contact(ContactCommand::Delete(target)) => {
            let contact = contact_title(&of_target::<Contact>(service, target).await?.record);
            format!("Delete contact {contact}? This cannot be undone, and webhooks are notified.")
        }
        Command::Contact(ContactCommand::Erase { target, .. }) => {
            let (account, id, contact) = contact::find(service, target).await?;
            (target.id, target.account.account) = (IdArg::Whole(id.uuid()), Some(IdArg::Whole(account.0)));
            let contact = contact.map_or_else(|| id.to_string(), |contact| contact_title(&contact));
            format!(
                "Erase contact {contact}, with what its jobs, bookings and events have of it? This cannot be undone."
            )
        }
        Command::Webhook(WebhookCommand::Delete(target)) => {
            let webhook = of_target::<WebhookSubscription>(service, target).await?.record;
            let url = webhook.url.as_str();
            format!("Delete the webhook to {url}? Its pending and held deliveries fail, and this cannot be undone.")
        }
        Command::Delivery(DeliveryCommand::Replay { subscription: Some(id), account, .. }) => {
            let webhook: WebhookSubscription = found(service, id, account).await?.record;
            let url = webhook.url.as_str();
            format!("Replay deliveries of the webhook to {url}? Its receiver may get events a second time.")
        }
        _ => return Ok(None),
    }))
}

/// Returns the record that a command names, and completes its id and its account.
async fn found<R: Found>(service: &Service, id: &mut IdArg, account: &mut InAccount) -> Result<Owned<R>, Failure> {
    let found = lookup::find::<R>(service, id, account).await?;
    *id = IdArg::Whole(found.id.uuid());
    account.account = Some(IdArg::Whole(found.tenant_id.0));
    Ok(found)
}

async fn of_target<R: Found>(service: &Service, target: &mut Target) -> Result<Owned<R>, Failure> {
    found(service, &mut target.id, &mut target.account).await
}

/// Names a contact by its name and its email address.
fn contact_title(contact: &Contact) -> String {
    let name = contact.display_name();
    let email = contact.email.as_ref().map(ToString::to_string).filter(|email| *email != name);
    email.map_or_else(|| name.clone(), |email| format!("{name} ({email})"))
}

/// Names a key by its name, its beginning and its last use.
fn key_title(key: &ApiKey) -> String {
    let name = key.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let used = key.last_used_at.map_or_else(|| "never used".to_owned(), |at| format!("last used {}", moment(at)));
    format!("key{name} ({}…), {used}", key.prefix)
}

/// Names an invoice by its number, its total and its contact.
async fn invoice_title(service: &Service, invoice: &Owned<Invoice>) -> Result<String, Failure> {
    let Owned { tenant_id, record: Invoice { invoice_number, total, currency, contact_id, .. }, .. } = invoice;
    let contacts: BTreeSet<_> = contact_id.iter().copied().collect();
    let names = service.contact_names(*tenant_id, contacts).await?;
    let contact = names.values().next().map(|name| format!(", of {name}")).unwrap_or_default();
    Ok(format!("{invoice_number}, {}{contact}", money(*total, *currency)))
}

/// Returns what a refund pays back. The rules refuse an amount that the currency does not have.
fn refund(invoice: &Invoice, amount: Option<Decimal>) -> String {
    let currency = invoice.currency;
    match amount.map(|amount| (amount, amount.to_amount(currency.scale()))) {
        None => money(invoice.amount_paid, currency),
        Some((_, Ok(amount))) => money(amount, currency),
        Some((amount, Err(_))) => format!("{currency} {amount}"),
    }
}

fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question on the terminal.
fn confirm(question: &str) -> Result<(), Failure> {
    match prompt(&plain_line(question), &mut io::stdin().lock(), &mut io::stderr().lock()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::new(Exit::Failed, "Cancelled: nothing was changed.".to_owned())),
        Err(error) => {
            Err(Failure::new(Exit::Failed, format!("The confirmation cannot be read: {error}. Use --yes to skip it.")))
        }
    }
}

/// Asks the question and returns whether the person confirmed it.
fn prompt(question: &str, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<bool> {
    write!(output, "{question} [y/N] ")?;
    output.flush()?;
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_y_and_yes_confirm() {
        for (typed, want) in
            [("y\n", true), ("YES\n", true), ("n\n", false), ("\n", false), ("", false), ("yep\n", false)]
        {
            let mut shown = Vec::new();
            assert_eq!(prompt("Sure?", &mut typed.as_bytes(), &mut shown).unwrap(), want, "{typed:?}");
            assert_eq!(shown, b"Sure? [y/N] ");
        }
    }
}
