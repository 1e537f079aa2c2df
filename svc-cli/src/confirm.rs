//! Prompts for confirmation before commands that cannot be undone.
//!
//! The prompt appears only when stdin and stderr are terminals. A script is never asked.

use std::io::{self, BufRead, IsTerminal as _, Write};

use crate::cli::records::Target;
use crate::cli::{
    AccountCommand, Command, ContactCommand, DbCommand, DeliveryCommand, InvoiceCommand, KeyCommand, WebhookCommand,
};
use crate::exit::{Exit, Failure};
use crate::times;

/// Returns the question to ask before this command, if it needs confirmation.
fn question(command: &Command) -> Option<String> {
    Some(match command {
        Command::Account(AccountCommand::Suspend { id }) => {
            format!("Suspend account {id}? Its keys are rejected from the next request on.")
        }
        Command::Key(KeyCommand::Revoke { id, .. }) => {
            format!("Revoke key {id}? It is rejected from the next request on, and this cannot be undone.")
        }
        Command::Invoice(InvoiceCommand::Void(Target { id, .. })) => {
            format!("Void invoice {id}? It is cancelled for good, and webhooks are notified.")
        }
        Command::Invoice(InvoiceCommand::Refund { target: Target { id, .. }, .. }) => {
            format!("Record a refund of invoice {id}? Webhooks are notified.")
        }
        Command::Contact(ContactCommand::Delete(Target { id, .. })) => {
            format!("Delete contact {id}? This cannot be undone, and webhooks are notified.")
        }
        Command::Webhook(WebhookCommand::Delete(Target { id, .. })) => {
            format!("Delete webhook {id}? Its pending and held deliveries fail, and this cannot be undone.")
        }
        Command::Delivery(DeliveryCommand::Replay { subscription: Some(id), .. }) => {
            format!("Replay deliveries of webhook {id}? Its receiver may get events a second time.")
        }
        Command::Db(DbCommand::Prune { retention, dry_run: false }) => {
            let age = times::span(*retention);
            format!("Delete finished deliveries older than {age}, with their logs and events?")
        }
        _ => return None,
    })
}

/// Asks for confirmation if the command needs it, unless `yes` is set or there is no terminal.
///
/// # Errors
/// The person declined, or the response could not be read.
pub(crate) fn ask(command: &Command, yes: bool) -> Result<(), Failure> {
    let Some(question) = question(command).filter(|_| !yes) else { return Ok(()) };
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(());
    }
    match prompt(&question, &mut io::stdin().lock(), &mut io::stderr().lock()) {
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
