//! The help of `svc` without a command: all commands in groups, and the first steps.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::Styles;

/// The commands, grouped by purpose.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Accounts",
        &["init", "account", "key", "member", "dashboard", "app", "grant", "audit", "request", "platform-key"],
    ),
    ("Business", &["contact", "quote", "booking", "job", "invoice", "payment", "import", "export", "find"]),
    ("Webhooks", &["webhook", "delivery", "event", "trigger", "listen"]),
    ("Database", &["db"]),
    ("Servers", &["login", "logout", "profiles", "api", "open", "mcp"]),
    ("Other", &["completions", "man", "help"]),
];

/// The first commands that a new user runs.
pub(super) const FIRST_STEPS: &str = "\
First steps:
  svc init --name 'Harbour Plumbing'
  svc import contacts contacts.csv
  svc invoice create --contact CONTACT_ID --total 99.95
  svc delivery list --status failed";

/// Points to the rest of the help.
pub(super) const MORE: &str = "\
Run `svc COMMAND --help` for details and examples of a command, and `svc help options` for the options that all commands \
have, the environment variables and the exit codes.";

/// Returns the help template of `svc` itself with these commands, since clap lists commands without groups.
pub(super) fn template(commands: &Command) -> String {
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or_default();
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        let _ = write!(template, "\n{header}{group}:{header:#}\n");
        for name in names {
            let about = commands.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or_else(|| "Print the help of a command".to_owned(), ToString::to_string);
            let _ = writeln!(template, "  {literal}{name:width$}{literal:#}  {about}");
        }
    }
    let _ = write!(template, "\n{header}Options:{header:#}\n{{options}}{{after-help}}\n");
    template
}

#[cfg(test)]
mod tests {
    use clap::Subcommand as _;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let commands = super::super::Command::augment_subcommands(Command::new("svc"));
        let mut names: Vec<&str> = commands.get_subcommands().map(Command::get_name).chain(["help"]).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, names);
    }
}
