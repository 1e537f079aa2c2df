//! Asks before what cannot be taken back, where there is a person to answer. A script is not asked: it knows what it
//! does.

use std::io::{self, BufRead, IsTerminal as _, Write};

use crate::cli::{Command, DbCommand, DeliveryCommand, InvoiceCommand, KeyCommand, TenantCommand};
use crate::exit::{Exit, Failure};
use crate::times;

/// What is asked before this command, if anything.
fn question(command: &Command) -> Option<String> {
    Some(match command {
        Command::Tenant { command: TenantCommand::Suspend { id } } => {
            format!("Suspend the tenant {id}? Its keys are refused from the next request on.")
        }
        Command::Key { command: KeyCommand::Revoke { id } } => {
            format!("Revoke the key {id}? It is refused from the next request on, for good.")
        }
        Command::Invoice { command: InvoiceCommand::Void { id } } => {
            format!("Void the invoice {id}? It stays cancelled, and webhooks are told.")
        }
        Command::Invoice { command: InvoiceCommand::Refund { id, .. } } => {
            format!("Note a refund of the invoice {id}? Webhooks are told.")
        }
        Command::Delivery { command: DeliveryCommand::Replay { subscription: Some(id), .. } } => {
            format!("Send the deliveries of the webhook {id} again? Its receiver may get events a second time.")
        }
        Command::Db { command: DbCommand::Prune { retention, dry_run: false } } => {
            let age = times::span(*retention);
            format!("Delete finished deliveries, with their logs and events, that are older than {age}?")
        }
        _ => return None,
    })
}

/// Asks, unless `yes` was said already or nobody can be asked.
///
/// # Errors
/// The answer is no, or none.
pub(crate) fn ask(command: &Command, yes: bool) -> Result<(), Failure> {
    let Some(question) = question(command).filter(|_| !yes) else { return Ok(()) };
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(());
    }
    match answer(&question, &mut io::stdin().lock(), &mut io::stderr().lock()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::new(Exit::Failed, "Nothing was done.".to_owned())),
        Err(error) => Err(Failure::new(Exit::Failed, format!("The answer cannot be read: {error}; say --yes."))),
    }
}

fn answer(question: &str, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<bool> {
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
    fn only_yes_is_yes() {
        for (typed, want) in
            [("y\n", true), ("YES\n", true), ("n\n", false), ("\n", false), ("", false), ("yep\n", false)]
        {
            let mut asked = Vec::new();
            assert_eq!(answer("Sure?", &mut typed.as_bytes(), &mut asked).unwrap(), want, "{typed:?}");
            assert_eq!(asked, b"Sure? [y/N] ");
        }
    }
}
