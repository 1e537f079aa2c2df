//! The probable meaning of a command line that is refused: a command by another word, and an option by the name that help
//! shows.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _};

use crate::cli::Cli;
use crate::help;

/// Words that people type for commands, with those that they may mean. Of these, a group suggests what it has.
const SYNONYMS: &[(&[&str], &[&str])] = &[
    // What is done to a thing.
    (&["new", "add", "make", "insert"], &["create", "add"]),
    (&["invite"], &["add"]),
    (&["index", "all"], &["list"]),
    (&["get", "view", "info", "describe", "read", "inspect", "cat"], &["show"]),
    (&["edit", "change", "modify", "patch", "set", "rename"], &["update", "set"]),
    (&["remove", "rm", "del", "destroy", "drop"], &["delete", "remove", "revoke", "void"]),
    (&["delete", "disable", "expire"], &["revoke", "void", "remove", "suspend"]),
    (&["cancel"], &["void"]),
    (&["purge", "forget", "anonymize", "anonymise"], &["erase", "prune"]),
    (&["pause", "stop", "off", "deactivate", "mute"], &["disable", "suspend"]),
    (&["block", "ban", "lock"], &["suspend", "disable"]),
    (&["resume", "unpause", "continue", "on", "activate", "start"], &["enable", "approve"]),
    (&["unsuspend", "unblock", "allow", "enable"], &["approve"]),
    (&["roll", "renew", "regenerate", "refresh", "rotate"], &["rotate", "rotate-secret"]),
    (&["ping", "try"], &["test"]),
    (&["statistics", "status"], &["stats"]),
    (&["retry", "resend", "redeliver", "again"], &["replay", "resend"]),
    (&["fire", "publish", "send", "trigger"], &["emit", "test"]),
    (&["email", "mail", "issue"], &["send"]),
    (&["payment", "paid", "settle"], &["pay"]),
    (&["chargeback", "return"], &["refund"]),
    (&["approve", "confirm"], &["accept"]),
    (&["reject", "refuse"], &["decline"]),
    (&["vacuum", "clean", "cleanup"], &["prune"]),
    (&["dump", "snapshot"], &["backup"]),
    (&["verify"], &["check"]),
    (&["upgrade"], &["migrate"]),
    (&["url", "open", "sign-in", "signin"], &["link"]),
    // Things, and tasks of their own.
    (&["customer", "customers", "client", "clients", "person", "people"], &["contact"]),
    (&["appointment", "appointments"], &["booking"]),
    (&["estimate", "estimates", "offer", "offers"], &["quote"]),
    (&["bill", "bills"], &["invoice"]),
    (&["payments", "refund", "refunds"], &["payment"]),
    (&["work", "task", "tasks", "order", "orders"], &["job"]),
    (&["hook", "hooks", "endpoint", "endpoints", "subscription", "subscriptions"], &["webhook"]),
    (&["attempt", "attempts"], &["delivery"]),
    (&["business", "customer-account", "org", "organization"], &["account"]),
    (&["user", "users", "team"], &["member"]),
    (&["token", "tokens", "api-key", "apikey", "secret"], &["key"]),
    (&["log", "logs", "tail"], &["request", "delivery", "audit"]),
    (&["history", "changes"], &["audit"]),
    (&["search", "lookup"], &["find"]),
    (&["setup", "install", "bootstrap"], &["init"]),
    (&["ui", "web", "browse", "browser"], &["open"]),
    (&["auth", "signin", "sign-in"], &["login"]),
    (&["signout", "sign-out"], &["logout"]),
    (&["fire", "emit", "send"], &["trigger"]),
    (&["receive", "forward", "serve"], &["listen"]),
    (&["backup", "migrate", "prune", "restore", "database"], &["db"]),
    (&["sandbox"], &["account"]),
    (&["curl", "request-api"], &["api"]),
    (&["profile"], &["profiles"]),
    (&["completion"], &["completions"]),
];

/// Returns an error with the suggestions that help: commands by another word, and options as help names them.
pub(crate) fn corrected(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    let mut root = Cli::command();
    root.build();
    let command = help::command_of(&root, args);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
            let meant = commands_meant(command, typed);
            if !meant.is_empty() {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(meant));
            }
        }
        ErrorKind::UnknownArgument => {
            let Some(ContextValue::String(similar)) = error.get(ContextKind::SuggestedArg) else { return error };
            if let Some(shown) = shown_name(command, similar) {
                error.insert(ContextKind::SuggestedArg, ContextValue::String(shown));
            }
        }
        _ => {}
    }
    error
}

/// Returns the commands of a group that another word stands for.
fn commands_meant(group: &Command, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let meant = SYNONYMS.iter().filter(|(words, _)| words.contains(&typed.as_str())).flat_map(|(_, meant)| *meant);
    let mut found: Vec<String> =
        meant.filter(|name| group.find_subcommand(name).is_some()).map(|name| (*name).to_owned()).collect();
    found.sort_unstable();
    found.dedup();
    // A status is set by an update, as a booking is cancelled.
    found.extend(status_meant(group, &typed).map(|status| format!("update ID --status {status}")));
    found
}

/// Returns the status that an update can set and that a word is the beginning of, as `cancel` is of `cancelled`.
fn status_meant(group: &Command, typed: &str) -> Option<String> {
    let update = group.find_subcommand("update")?;
    let status = update.get_arguments().find(|arg| arg.get_id() == "status")?;
    let stem = typed.trim_end_matches('e');
    let is_meant = |name: &str| stem.len() >= 4 && name.starts_with(stem);
    status.get_possible_values().iter().map(|value| value.get_name().to_owned()).find(|name| is_meant(name))
}

/// Returns an option as help shows it, if the text is another spelling of it.
fn shown_name(command: &Command, spelling: &str) -> Option<String> {
    let spelling = spelling.strip_prefix("--")?;
    let is_meant = |arg: &&Arg| arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&spelling));
    let long = command.get_arguments().find(is_meant)?.get_long()?;
    Some(format!("--{long}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested(line: &str, kind: ContextKind) -> Vec<String> {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::command().try_get_matches_from(&args).unwrap_err();
        match corrected(error, &args).get(kind) {
            Some(ContextValue::Strings(all)) => all.clone(),
            Some(ContextValue::String(one)) => vec![one.clone()],
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_command_is_suggested_for_another_word() {
        for (line, want) in [
            ("svc webhook pause", &["disable"][..]),
            ("svc webhook remove", &["delete"]),
            ("svc contact new", &["create"]),
            ("svc contact edit", &["update"]),
            ("svc contact get", &["show"]),
            ("svc invoice delete", &["void"]),
            ("svc member delete", &["remove"]),
            ("svc key rm", &["revoke"]),
            ("svc key roll", &["rotate"]),
            ("svc app roll", &["rotate-secret"]),
            ("svc account pause", &["suspend"]),
            ("svc account edit", &["set"]),
            ("svc delivery retry", &["replay"]),
            ("svc booking cancel", &["update ID --status cancelled"]),
            ("svc job complete", &["update ID --status completed"]),
            ("svc customers", &["contact"]),
            ("svc logs", &["audit", "delivery", "request"]),
        ] {
            assert_eq!(suggested(line, ContextKind::SuggestedSubcommand), want, "{line}");
        }
    }

    #[test]
    fn every_synonym_leads_to_a_command() {
        fn names(command: &Command, all: &mut Vec<String>) {
            all.push(command.get_name().to_owned());
            command.get_subcommands().for_each(|inner| names(inner, all));
        }
        let mut all = Vec::new();
        names(&Cli::command(), &mut all);
        for (words, meant) in SYNONYMS {
            assert!(meant.iter().all(|name| all.contains(&(*name).to_owned())), "{words:?}");
        }
    }

    #[test]
    fn an_option_is_suggested_by_the_name_that_help_shows() {
        for (line, want) in [
            ("svc booking create --service_nam x", "--service-name"),
            ("svc booking create --servicename x", "--service-name"),
            ("svc booking create --contact-ids x", "--contact"),
            ("svc contact list --tenent x", "--account"),
        ] {
            assert_eq!(suggested(line, ContextKind::SuggestedArg), [want], "{line}");
        }
    }

    /// Every option has one name in every suggestion, whatever it is also called.
    #[test]
    fn no_option_is_suggested_by_a_name_that_help_does_not_show() {
        fn check(command: &Command) {
            for arg in command.get_arguments() {
                for alias in arg.get_all_aliases().unwrap_or_default() {
                    let shown = shown_name(command, &format!("--{alias}"));
                    let want = arg.get_long().map(|long| format!("--{long}"));
                    assert_eq!(shown, want, "{}: --{alias}", command.get_name());
                    assert!(!want.unwrap_or_default().contains('_'), "{alias}");
                }
            }
            command.get_subcommands().for_each(check);
        }
        let mut root = Cli::command();
        root.build();
        check(&root);
    }
}
