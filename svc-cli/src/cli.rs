//! The command line: the options of all commands, and the commands themselves, whose options and help are in their files.

mod overview;

use clap::builder::{BoolishValueParser, PathBufValueParser, TypedValueParser as _};
use clap::{Command as ClapCommand, CommandFactory as _, Parser, Subcommand, ValueHint};
use svc_core::env::Env;
use svc_core::resources::bookings::Booking;
use svc_core::values::{EventKinds, HostPolicy};

use self::overview::{FIRST_STEPS, MORE};
use crate::backend::BackendArgs;
use crate::commands::{
    account, api, app, audit, completions, contact, dashboard, db, delivery, event, export, find, grant, import, init,
    invoice, job, key, listen, login, man, mcp, member, open, payment, platform_key, quote, records, request, webhook,
};
use crate::confirm;
use crate::exit::{self, Failure};
use crate::output::{Outcome, Output};
use crate::session::Session;
use crate::times;

/// Manage an svc database: accounts, API keys, invoices and webhooks.
///
/// `svc` opens the database directly and can run while servers use it. A running server sees a change from its next
/// request on. With --server or --profile, it works on a server elsewhere through its platform API. Results are written to
/// stdout; errors, notes, prompts and progress bars are written to stderr.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "svc",
    version,
    max_term_width = 100,
    next_help_heading = "Global options",
    subcommand_required = true,
    arg_required_else_help = true,
    help_template = overview::template(&Command::augment_subcommands(ClapCommand::new("svc"))),
    after_help = format!("{FIRST_STEPS}\n\n{MORE}"),
    after_long_help = format!("{FIRST_STEPS}\n\n{}", exit::LONG_HELP)
)]
pub struct Cli {
    #[command(flatten)]
    pub(crate) backend: BackendArgs,

    /// Print the result as one JSON document; a list is printed as an array.
    #[arg(long, global = true, overrides_with = "json")]
    pub json: bool,

    /// How to print the result: text for people, json as with --json, or csv with a header row.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "text",
        overrides_with = "output",
        conflicts_with = "json",
        value_name = "FORMAT"
    )]
    pub output: Output,

    /// Read and show times in UTC. Without it, they are those of the account's time zone. JSON has UTC always.
    #[arg(long, global = true, overrides_with = "utc")]
    pub utc: bool,

    /// Skip the confirmation prompt of commands that cannot be undone. Without a terminal there is no prompt.
    #[arg(long, short, global = true, overrides_with = "yes")]
    pub yes: bool,

    /// Write to a SQLite database although the clock is more than 60 s ahead of that of its file system. The accounts that
    /// are written to stay at that time.
    #[arg(long, global = true, overrides_with = "allow_clock_jump")]
    pub allow_clock_jump: bool,

    /// Accept webhook URLs with http:// and private addresses. Only a server with this option sends to them.
    #[arg(
        long,
        global = true,
        env = "SVC_ALLOW_PRIVATE_WEBHOOKS",
        value_parser = BoolishValueParser::new(),
        overrides_with = "allow_private_webhooks",
        hide_short_help = true
    )]
    pub allow_private_webhooks: bool,

    /// JSON file with event kinds of your own: an object that has the JSON Schema of the data of each kind under its name,
    /// such as order.shipped. Servers on the database need the same file.
    #[arg(
        long,
        global = true,
        env = "SVC_EVENT_KINDS",
        value_parser = PathBufValueParser::new().try_map(|path| EventKinds::from_file(&path)),
        value_hint = ValueHint::FilePath,
        hide_short_help = true,
        value_name = "FILE"
    )]
    pub event_kinds: Option<EventKinds>,

    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Returns how the result is printed.
    pub fn output(&self) -> Output {
        if self.json { Output::Json } else { self.output }
    }

    /// Runs the command.
    pub(crate) async fn run(self) -> Result<Outcome, Failure> {
        let mut env = Env::system();
        if self.allow_private_webhooks {
            env.webhook_hosts = HostPolicy::AllowPrivate;
        }
        let output = self.output();
        if self.utc {
            times::use_utc();
        }
        env.event_kinds = self.event_kinds.unwrap_or_default();
        let session = &Session {
            backend: self.backend,
            env,
            output,
            asks_first: !self.yes && confirm::is_interactive(),
            allow_clock_jump: self.allow_clock_jump,
        };
        match self.command {
            Command::Init(options) => init::run(session, options).await,
            Command::Account(command) => account::run(session, command).await,
            Command::Key(command) => key::run(session, command).await,
            Command::PlatformKey(command) => platform_key::run(session, command).await,
            Command::App(command) => app::run(session, command).await,
            Command::Grant(command) => grant::run(session, command).await,
            Command::Dashboard(command) => dashboard::run(session, command).await,
            Command::Member(command) => member::run(session, command).await,
            Command::Contact(command) => contact::run(session, command).await,
            Command::Booking(command) => records::run(session, &session.service().await?, command).await,
            Command::Job(command) => job::run(session, command).await,
            Command::Invoice(command) => invoice::run(session, command).await,
            Command::Payment(command) => payment::run(session, command).await,
            Command::Quote(command) => quote::run(session, command).await,
            Command::Webhook(command) => webhook::run(session, command).await,
            Command::Delivery(command) => delivery::run(session, command).await,
            Command::Event(command) => event::run(session, command).await,
            Command::Trigger(options) => event::trigger(session, options).await,
            Command::Import(options) => import::run(session, options).await,
            Command::Export(options) => export::run(session, options).await,
            Command::Find(options) => find::run(session, options).await,
            Command::Audit(command) => audit::run(session, command).await,
            Command::Request(command) => request::run(session, command).await,
            Command::Api(options) => api::run(session, options).await,
            Command::Open(options) => open::run(session, options).await,
            Command::Db(command) => db::run(session, command).await,
            Command::Listen(options) => listen::run(session, options).await,
            Command::Mcp(options) => mcp::run(session, options).await,
            Command::Login(_) => login::run(session).await,
            Command::Logout(_) => login::logout(session),
            Command::Profiles(_) => login::list(),
            Command::Completions(options) => completions::run(Self::command(), &options),
            Command::Man(options) => man::run(Self::command(), &options),
        }
    }
}

/// The top-level commands, each of which names one kind of object or one task.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Init),
    #[command(subcommand)]
    Account(account::AccountCommand),
    #[command(subcommand)]
    Key(key::KeyCommand),
    #[command(subcommand)]
    PlatformKey(platform_key::PlatformKeyCommand),
    #[command(subcommand)]
    App(app::AppCommand),
    #[command(subcommand)]
    Grant(grant::GrantCommand),
    #[command(subcommand)]
    Dashboard(dashboard::DashboardCommand),
    #[command(subcommand)]
    Member(member::MemberCommand),
    #[command(subcommand)]
    Contact(contact::ContactCommand),
    /// Manage bookings: appointments with contacts.
    #[command(subcommand, after_help = "Example:\n  svc booking update 3ca7519be04d --status completed")]
    Booking(records::RecordCommand<Booking>),
    #[command(subcommand)]
    Job(job::JobCommand),
    #[command(subcommand)]
    Invoice(invoice::InvoiceCommand),
    #[command(subcommand)]
    Payment(payment::PaymentCommand),
    #[command(subcommand)]
    Quote(quote::QuoteCommand),
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    #[command(subcommand)]
    Delivery(delivery::DeliveryCommand),
    #[command(subcommand)]
    Event(event::EventCommand),
    Trigger(event::Trigger),
    Import(import::Import),
    Export(export::Export),
    Find(find::Find),
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    #[command(subcommand)]
    Request(request::RequestCommand),
    Api(api::Api),
    Open(open::Open),
    #[command(subcommand)]
    Db(db::DbCommand),
    Listen(listen::Listen),
    Mcp(mcp::Mcp),
    Login(login::Login),
    Logout(login::Logout),
    Profiles(login::Profiles),
    Completions(completions::Completions),
    Man(man::Man),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_command_that_takes_an_id_takes_its_account() {
        let cli = Cli::command();
        let groups = cli.get_subcommands().filter(|group| !["account", "platform-key"].contains(&group.get_name()));
        let takes = |command: &clap::Command, id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
        let with_id: Vec<_> = groups.flat_map(clap::Command::get_subcommands).filter(|it| takes(it, "id")).collect();
        assert_eq!(with_id.len(), 38);
        for command in with_id {
            assert!(takes(command, "account"), "{}", command.get_name());
        }
    }

    #[test]
    fn every_option_that_names_an_account_has_the_alias_tenant() {
        fn named<'c>(command: &'c clap::Command, options: &mut Vec<&'c clap::Arg>) {
            options.extend(command.get_arguments().filter(|argument| argument.get_id() == "account"));
            command.get_subcommands().for_each(|command| named(command, options));
        }
        let (cli, mut options) = (Cli::command(), Vec::new());
        named(&cli, &mut options);
        assert!(options.len() > 31, "{}", options.len());
        for option in options {
            assert_eq!(option.get_all_aliases(), Some(vec!["tenant"]), "{option:?}");
        }
    }
}
