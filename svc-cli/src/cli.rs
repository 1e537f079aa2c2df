//! The command line as types. Their doc comments are the text of `--help`, REFERENCE.md and the manual pages.

mod apps;
mod audit;
mod dashboard;
mod db;
mod events;
pub mod fields;
mod find;
mod invoices;
mod keys;
mod members;
mod overview;
mod platform;
pub mod records;
mod requests;
mod transfer;
mod webhooks;

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use svc_core::accounts::limits::CappedCollection;
use svc_core::resources::bookings::Booking;
use svc_core::resources::jobs::Job;
use svc_core::values::{Currency, EventKinds, Text, TimeZone};

pub use self::apps::{AppArg, AppCommand, GrantCommand, Owner};
pub use self::audit::AuditCommand;
pub use self::dashboard::DashboardCommand;
pub use self::db::DbCommand;
pub use self::events::{DeliveryCommand, EventCommand, Listen, Trigger};
pub use self::find::Find;
pub use self::invoices::{ContactCommand, InvoiceCommand, QuoteCommand};
pub use self::keys::KeyCommand;
pub use self::members::MemberCommand;
use self::overview::{FIRST_STEPS, MORE};
pub use self::platform::PlatformKeyCommand;
use self::records::RecordCommand;
pub use self::requests::{Api, ListRequests, Mcp, Open, RequestCommand};
pub use self::transfer::{Export, ExportKind, Format, Import};
pub use self::webhooks::WebhookCommand;
pub use crate::backend::Given;
use crate::ids::IdArg;
use crate::values::{self, Limit};
use crate::{exit, profiles};

/// Manage an SVC database: accounts, API keys, invoices and webhooks.
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
    help_template = overview::template(),
    after_help = format!("{FIRST_STEPS}\n\n{MORE}"),
    after_long_help = format!("{FIRST_STEPS}\n\n{}", exit::LONG_HELP)
)]
pub struct Cli {
    /// Database URL: sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE. `svc init` and `svc db migrate`
    /// create a SQLite file that does not exist.
    #[arg(
        long,
        global = true,
        env = "SVC_DATABASE_URL",
        hide_env_values = true,
        default_value = "sqlite://svc.db",
        value_name = "URL"
    )]
    pub database_url: String,

    /// URL of the platform listener of a server (`svc-server --platform-listen`) to work on in place of a database, with the
    /// platform key in SVC_PLATFORM_KEY.
    #[arg(long, global = true, env = "SVC_SERVER", hide_env_values = true, value_name = "URL")]
    pub server: Option<String>,

    /// Work on the server of this profile, which `svc login` stored.
    #[arg(
        long,
        global = true,
        env = "SVC_PROFILE",
        hide_env_values = true,
        value_parser = profiles::name,
        value_name = "NAME"
    )]
    pub profile: Option<String>,

    /// File with certificates (PEM) of authorities to trust for the server, beside those of this system.
    #[arg(
        long,
        global = true,
        env = "SVC_CA_FILE",
        hide_env_values = true,
        hide_short_help = true,
        value_hint = ValueHint::FilePath,
        value_name = "FILE"
    )]
    pub ca_file: Option<PathBuf>,

    /// Which of the options that name a database or a server were given.
    #[arg(skip)]
    pub given: Given,

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
        value_parser = values::event_kinds_file(),
        value_hint = ValueHint::FilePath,
        hide_short_help = true,
        value_name = "FILE"
    )]
    pub event_kinds: Option<EventKinds>,

    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Sentences and tables for people.
    Text,
    /// One JSON document.
    Json,
    /// Comma-separated values: a header row, and a row for each record.
    Csv,
}

impl Cli {
    /// Returns how the result is printed.
    pub fn output(&self) -> Output {
        if self.json { Output::Json } else { self.output }
    }
}

/// The top-level commands, each of which names one kind of object or one task.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Set up a new database with an account and an API key.
    ///
    /// Creates the database if it does not exist, an account with access to the API, and a key with the scopes read and
    /// write. Prints lines for your shell that set SVC_DATABASE_URL, SVC_URL, SVC_TENANT and SVC_KEY. The key is printed
    /// once and cannot be shown again. A database that already has an account is refused.
    #[command(after_help = "Examples:\n  svc init\n  svc init --name 'Harbour Plumbing'\n  \
                      eval \"$(svc init --database-url sqlite:///var/lib/svc/svc.db)\"")]
    Init {
        /// Name of the account.
        #[arg(long, value_parser = Text::<300>::parse, default_value = "My business", value_name = "NAME")]
        name: Text<300>,
        /// URL at which the server will be reached.
        #[arg(long, env = "SVC_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
        url: String,
    },
    /// Manage accounts: businesses, their settings and their access to the API.
    ///
    /// The API and --json call the id of an account `tenant_id`. `svc tenant` and --tenant are aliases of `svc account` and
    /// --account.
    #[command(subcommand, alias = "tenant", after_help = "Example:\n  svc account create --name 'Harbour Plumbing'")]
    Account(AccountCommand),
    /// Manage API keys, with which an account's programs authenticate.
    #[command(subcommand, after_help = "Example:\n  svc key create --scopes read,write")]
    Key(KeyCommand),
    /// Manage the keys of the platform API, with which programs of the operator work on all accounts
    #[command(subcommand, after_help = "Example:\n  svc platform-key create --scopes accounts:read,records:write")]
    PlatformKey(PlatformKeyCommand),
    /// Manage apps of somebody else, which owners of accounts can let work on them (OAuth 2.0).
    #[command(
        subcommand,
        after_help = "Example:\n  svc app create --name Desk --redirect-uri https://example.com/callback"
    )]
    App(AppCommand),
    /// See and end the access of apps to an account.
    #[command(subcommand, after_help = "Example:\n  svc grant list")]
    Grant(GrantCommand),
    /// Sign people in to the dashboard, the pages of the server in the browser.
    #[command(subcommand, after_help = "Example:\n  svc dashboard link --role viewer")]
    Dashboard(DashboardCommand),
    /// Manage members, the people who may sign in to the dashboard of an account with their email address.
    #[command(subcommand, after_help = "Example:\n  svc member add --email ada@example.com --role owner")]
    Member(MemberCommand),
    /// Manage contacts: people and companies.
    #[command(subcommand, after_help = "Example:\n  svc contact create --email ada@example.com --first-name Ada")]
    Contact(ContactCommand),
    /// Manage bookings: appointments with contacts.
    #[command(subcommand, after_help = "Example:\n  svc booking update 0195a3c8 --status completed")]
    Booking(RecordCommand<Booking>),
    /// Manage jobs: work that is planned and done.
    #[command(subcommand, after_help = "Example:\n  svc job list --status scheduled")]
    Job(RecordCommand<Job>),
    /// Create and process invoices: send, pay, refund, void and more.
    ///
    /// These operations are not available through the API. Each of them emits its events, which are delivered to the
    /// account's webhooks.
    #[command(subcommand, after_help = "Example:\n  svc invoice pay 0195a3c3 --amount 40")]
    Invoice(InvoiceCommand),
    /// Manage quotes, and record that the customer accepted or declined them.
    #[command(subcommand, after_help = "Example:\n  svc quote accept 0195a3c7")]
    Quote(QuoteCommand),
    /// Manage webhook subscriptions, the endpoints that events are delivered to.
    #[command(subcommand, after_help = "Example:\n  svc webhook list")]
    Webhook(WebhookCommand),
    /// Inspect and replay deliveries, each of which sends one event to one webhook.
    #[command(subcommand, after_help = "Example:\n  svc delivery list --status failed")]
    Delivery(DeliveryCommand),
    /// List and show events, and emit those that originate outside this service.
    #[command(subcommand, after_help = "Example:\n  svc event list --kind invoice.paid")]
    Event(EventCommand),
    /// Fire an event of any kind with a sample record, to try a receiver.
    ///
    /// The event is delivered like any other, to every webhook of the account that subscribes to its kind. Its record is made
    /// up, and nothing is stored but the event and its deliveries. `svc webhook test` sends such an event to one webhook.
    #[command(after_help = "Examples:\n  svc trigger invoice.paid\n  svc trigger stay.created --json")]
    Trigger(Trigger),
    /// Import contacts or invoices from a CSV or NDJSON file, or all records of an account from an export.
    ///
    /// The CSV columns or JSON members are the fields of the API and are validated like them. `id` and `created_at` are
    /// preserved, so an export of one database can be imported into another. Valid rows are committed in groups of 500.
    /// Refused rows are reported at the end and make the exit code 1.
    ///
    /// It is safe to run the same import again after correcting the file or after an interruption: a row that already
    /// exists is not added twice. A row matches an existing record by its id; without an id, by the contact's email or
    /// the invoice's number; without either, by all of its fields.
    ///
    /// Fields of contacts: id, email, first_name, last_name, phone, company_name, city, state, postcode, created_at.
    /// Fields of invoices: id, invoice_number, contact_id, status, issue_date, due_date, total, currency, paid_at,
    /// amount_paid, created_at. `updated_at` is accepted and ignored. In CSV, an apostrophe before =, +, -, @, a tab or a
    /// line break at the beginning of a text is removed, as `svc export --escape-formulas` writes it, and one before a
    /// number. Of a formula such as ="0800", the text is read; other formulas are refused. Rows whose cells are all empty are
    /// skipped.
    ///
    /// A file is checked to its end before its first row is imported. If it is not UTF-8, or if it is CSV whose quotes are not
    /// closed, nothing is imported. What comes through a pipe is read to its end first.
    ///
    /// For files of other programs, --from knows the columns of some of them, and --map names the field of any column.
    /// --skip-lines, --decimal, --date-format and --map-value say how a file differs. An option that has no effect on the
    /// file is an error.
    ///
    /// `svc import all` puts back what `svc export all` wrote: contacts, deleted ones included, invoices, quotes, bookings
    /// and jobs, with their numbers and all their times. It fires no events. A row is refused if another record of its
    /// type has changed later, as clients that keep a copy by `updated_since` would miss it: import into an account without
    /// records.
    #[command(
        override_usage = "svc import [OPTIONS] <contacts|invoices|all> <FILE|->\n       svc import --presets",
        after_help = "Examples:\n  svc import contacts contacts.csv\n  \
                      svc import contacts contacts.csv --dry-run --report refused.ndjson\n  \
                      svc import invoices invoices.csv --from xero --date-format DD/MM/YYYY\n  \
                      zcat invoices.ndjson.gz | svc import invoices --no-events -\n  \
                      svc import all all.ndjson"
    )]
    Import(Import),
    /// Export all records of one type, or of an account, to stdout, one JSON object per line.
    ///
    /// Each record appears once, as GET returns it. Records are ordered newest first, or oldest change first with
    /// --since. The export reads page by page in constant memory and can run while servers use the database.
    ///
    /// `svc export all` writes all records of an account for `svc import all`, deleted contacts included, each with its type
    /// in `kind`. A record comes after the contact that it refers to, and once more if it changes during the export. With
    /// --since, it writes what has changed since an earlier export.
    #[command(after_help = "Examples:\n  svc export contacts > contacts.ndjson\n  \
                      svc export jobs --since 7d --format csv\n  \
                      svc export all > all.ndjson")]
    Export(Export),
    /// Find contacts, invoices, quotes, bookings and jobs by a text.
    ///
    /// It looks for the text, in any case, in names, email addresses, phone numbers, companies, suburbs, titles and numbers, and
    /// for records whose ids begin with it. It lists at most 20 records: those that are named exactly, then those that changed
    /// last.
    #[command(after_help = "Examples:\n  svc find INV-0001\n  svc find 'ada lovelace'\n  svc find example.com --json")]
    Find(Find),
    /// Show the audit log: who changed what, and when.
    #[command(subcommand, after_help = "Example:\n  svc audit list")]
    Audit(AuditCommand),
    /// Inspect the requests that programs make with API keys.
    #[command(subcommand, after_help = "Example:\n  svc request list --follow")]
    Request(RequestCommand),
    /// Send a request to the platform API of a server, and print the response as it is.
    ///
    /// The request has the platform key of --profile, or that of SVC_PLATFORM_KEY with --server. It is sent once. A path such
    /// as /contacts is that of the account, /accounts/ID/contacts; one that begins with /accounts is sent as it is.
    ///
    /// The exit code is 0 for a status of success. It is 2 for 400 and others that a different request mends, 3 for 404, 4 for
    /// 401, 403, 409 and 412, 5 for 503, and otherwise 1.
    #[command(after_help = "Examples:\n  svc api GET '/contacts?limit=10' --profile production\n  \
                      svc api POST /contacts --data contact.json\n  \
                      svc api -i GET /accounts")]
    Api(Api),
    /// Print the address of the page of the dashboard that shows something, or open it in the browser.
    ///
    /// The browser needs a session of the account, which `svc dashboard link` begins.
    #[command(after_help = "Examples:\n  svc open\n  svc open 6f1c02d93b5e --browser\n  \
                      svc open 6f1c02d93b5e --url https://api.example.com")]
    Open(Open),
    /// Maintain the database: migrate, check, copy, back up, measure and prune it.
    #[command(subcommand, after_help = "Example:\n  svc db migrate")]
    Db(DbCommand),
    /// Receive webhook deliveries on this machine, verify them and print them.
    ///
    /// Listens on 127.0.0.1 until Ctrl-C. The first line on stdout is the address. Each POST request is then printed
    /// with the result of its verification and its body. The response is 204 when the signature is valid and the
    /// delivery was sent at most five minutes ago, and otherwise 401. `webhook-signature` is verified if it is there,
    /// and X-SVC-Signature if it is not. A server delivers to this machine only with --allow-private-webhooks.
    ///
    /// The command creates a webhook for as long as it runs, and deletes it at its end, also when it is killed. With --secret,
    /// it opens no database, and receives the deliveries of a webhook that exists, whose URL must be this address.
    #[command(after_help = "Examples:\n  svc listen\n  \
                      svc listen --events invoice.paid,invoice.sent --forward-to localhost:3000/webhooks\n  \
                      svc listen --fail 500\n  \
                      SVC_WEBHOOK_SECRET=whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o= svc listen --port 9000")]
    Listen(Listen),
    /// Serve the tools of a server to an assistant on this machine, on stdin and stdout (Model Context Protocol).
    ///
    /// The server needs `svc-server --mcp on`. The tools work on the account of the API key in SVC_KEY, at the server of SVC_URL,
    /// or on that of the profile. With a platform key, they work on --account.
    ///
    /// An assistant starts the command itself: name it in the settings of the program. Give it a key with the scope `read`, or
    /// --read-only, unless it is to change records.
    #[command(after_help = "Examples:\n  svc mcp --profile ironbark\n  \
                      SVC_URL=https://api.example.com SVC_KEY=svc_live_… svc mcp --read-only")]
    Mcp(Mcp),
    /// Store a server and its platform key as a profile, for --profile.
    ///
    /// The server is that of --server, and the profile that of --profile, or `default`. The key is read from a prompt that
    /// does not show it, or from stdin, and is stored once the server takes it, in a file that only you can read. It may also
    /// be the API key of an account, with the URL of the public listener, for `svc mcp`.
    #[command(after_help = "Examples:\n  svc login --server https://svc.example.com:8443 --profile production\n  \
                      svc account list --profile production\n  \
                      svc login --server https://svc.example.com:8443 < key.txt")]
    Login,
    /// Delete a profile and its key from this machine.
    ///
    /// The profile is that of --profile, or `default`. The key itself works until `svc platform-key revoke`.
    #[command(after_help = "Example:\n  svc logout --profile production")]
    Logout,
    /// List the profiles of this machine.
    #[command(after_help = "Example:\n  svc profiles")]
    Profiles,
    /// Generate the completion script of a shell.
    ///
    /// Save the script where the shell looks for completions, then start a new shell.
    #[command(after_help = "Examples:\n  svc completions bash > ~/.local/share/bash-completion/completions/svc\n  \
                      svc completions zsh > ~/.zfunc/_svc\n  \
                      svc completions fish > ~/.config/fish/completions/svc.fish")]
    Completions {
        /// Shell to generate the script for.
        shell: Shell,
    },
    /// Print the manual page of `svc`, or write one page per command.
    ///
    /// The pages contain the text of --help.
    #[command(after_help = "Examples:\n  svc man | man -l -\n  \
                      svc man --directory ~/.local/share/man/man1 && man svc-account-create")]
    Man {
        /// Write svc.1 and one page per command to this directory, which is created when it does not exist.
        #[arg(long, value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

/// The account that a command works on.
#[derive(Args, Clone, Debug)]
pub struct InAccount {
    /// Account, by its id or its name. The default is the only one.
    #[arg(long, alias = "tenant", env = "SVC_TENANT", hide_env = true, value_name = "ID")]
    pub account: Option<IdArg>,
}

/// `svc account …`
#[derive(Clone, Debug, Subcommand)]
pub enum AccountCommand {
    /// Create an account.
    ///
    /// The account's keys can use the API immediately, unless the account is created with --pending.
    #[command(after_help = "Example:\n  svc account create --name 'Harbour Plumbing' --time-zone Australia/Sydney")]
    Create {
        /// Name of the business: one line of at most 300 characters.
        #[arg(long, value_parser = Text::<300>::parse)]
        name: Text<300>,
        /// IANA time zone, such as Australia/Sydney. It determines the account's current date.
        #[arg(long, value_parser = TimeZone::parse, default_value = "UTC", value_name = "ZONE")]
        time_zone: TimeZone,
        /// ISO 4217 code of the currency of quotes and invoices that name none.
        #[arg(long, value_parser = Currency::parse, default_value = "AUD", value_name = "CODE")]
        currency: Currency,
        /// Reject requests with the account's keys until `svc account approve`.
        #[arg(long)]
        pending: bool,
    },
    /// List accounts, oldest first.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  svc account list --json\n  \
                      svc account list --limit 10 --after 0195a3c1\n  \
                      svc account list --sandboxes"
    )]
    List {
        /// Maximum number of accounts to list.
        #[arg(long, default_value = "1000", value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
        limit: u32,
        /// List only accounts that follow the one with this id.
        #[arg(long, value_name = "ID")]
        after: Option<IdArg>,
        /// List the sandboxes of accounts as well.
        #[arg(long)]
        sandboxes: bool,
    },
    /// Show an account.
    #[command(after_help = "Example:\n  svc account show 0195a3c1")]
    Show {
        /// Id of the account.
        id: IdArg,
    },
    /// Approve a pending or suspended account, so that its keys can use the API.
    ///
    /// Approving an approved account changes nothing.
    #[command(after_help = "Example:\n  svc account approve 0195a3c1")]
    Approve {
        /// Id of the account.
        id: IdArg,
    },
    /// Suspend an account, so that its keys are rejected from now on.
    ///
    /// The account's data is kept. `svc account approve` reverses the suspension.
    #[command(after_help = "Example:\n  svc account suspend 0195a3c1")]
    Suspend {
        /// Id of the account.
        id: IdArg,
    },
    /// Change an account's settings.
    ///
    /// Settings that are not named stay as they are. The limits of an account replace those of the server's --rate-limit
    /// and --write-rate-limit.
    #[command(after_help = "Examples:\n  svc account set 0195a3c1 --currency NZD\n  \
                      svc account set 0195a3c1 --rate-limit 600 \\\n    \
                      --write-rate-limit contacts=300 --write-rate-limit quotes=default")]
    Set {
        /// Id of the account.
        id: IdArg,
        /// The settings to change.
        #[command(flatten)]
        changes: AccountChanges,
    },
    /// Create or show the sandbox of an account, in which programs are tried.
    ///
    /// The sandbox is an account of its own with sample records. It is created if the account has none; then a key that begins
    /// with svc_test_ is printed once. Its webhooks are sent with the header X-SVC-Test. The members of the account can use it
    /// in the dashboard with the same role.
    #[command(after_help = "Examples:\n  svc account sandbox 0195a3c1\n  \
                      svc account sandbox 0195a3c1 --reset\n  \
                      svc account sandbox 0195a3c1 --delete")]
    Sandbox {
        /// Id of the account.
        id: IdArg,
        /// Delete the records, events, deliveries and logged requests of the sandbox, and create the sample records again. Keys
        /// and webhooks stay.
        #[arg(long, conflicts_with = "delete")]
        reset: bool,
        /// Delete the sandbox with all that it has.
        #[arg(long)]
        delete: bool,
    },
}

/// The settings of an account that `svc account set` changes. At least one is required.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = true)]
pub struct AccountChanges {
    /// Name of the business: one line of at most 300 characters.
    #[arg(long, value_parser = Text::<300>::parse)]
    pub name: Option<Text<300>>,
    /// IANA time zone, such as Australia/Sydney. It determines the account's current date.
    #[arg(long, value_parser = TimeZone::parse, value_name = "ZONE")]
    pub time_zone: Option<TimeZone>,
    /// ISO 4217 code of the currency of quotes and invoices that name none.
    #[arg(long, value_parser = Currency::parse, value_name = "CODE")]
    pub currency: Option<Currency>,
    /// Whether each email address may belong to only one contact: true or false.
    #[arg(long, value_name = "BOOL")]
    pub unique_contact_email: Option<bool>,
    /// Requests per minute for each of the account's keys, or `default` for the server's limit.
    #[arg(long, value_parser = values::limit, allow_hyphen_values = true, value_name = "N|default")]
    pub rate_limit: Option<Limit>,
    /// Writes per minute for each of the account's keys, counted per method and route of a resource: quotes=20, or
    /// quotes=default for the server's limit. The option can be repeated.
    #[arg(long, value_parser = values::write_limit, value_delimiter = ',', value_name = "RESOURCE=N|default")]
    pub write_rate_limit: Vec<(CappedCollection, Limit)>,
    /// The number of webhook subscriptions that the account can have, from 1 to 1000, or `default` for the server's limit.
    /// Those that it has stay, even if they are more.
    #[arg(long, value_parser = values::max_webhooks, allow_hyphen_values = true, value_name = "N|default")]
    pub max_webhooks: Option<values::MaxWebhooks>,
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
        assert_eq!(with_id.len(), 34);
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
