//! What can be typed, as types. Their comments are the help.

mod audit;
mod db;
mod events;
mod invoices;
mod keys;
mod overview;
mod transfer;
mod webhooks;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use svc_core::accounts::limits::CappedCollection;
use svc_core::values::{Currency, TenantId, TimeZone};

pub use self::audit::AuditCommand;
pub use self::db::DbCommand;
pub use self::events::{DeliveryCommand, EventCommand, Listen};
pub use self::invoices::{InvoiceChanges, InvoiceCommand, QuoteCommand};
pub use self::keys::KeyCommand;
use self::overview::{FIRST_STEPS, MORE};
pub use self::transfer::{Export, ExportKind, Format, Import, ImportKind};
pub use self::webhooks::WebhookCommand;
use crate::exit;
use crate::values::{self, Limit};

/// Work on the database of the service: tenants, keys, invoices, webhooks.
///
/// It can run beside a server on the same database; what it changes counts from the server's next request
/// on. Results go to stdout, everything else to stderr.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "svc",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    help_template = overview::template(),
    after_help = format!("{FIRST_STEPS}\n\n{MORE}"),
    after_long_help = format!("{FIRST_STEPS}\n\n{}", exit::LONG_HELP)
)]
pub struct Cli {
    /// Database: sqlite://PATH, made when missing, or postgres://USER:PASSWORD@HOST:PORT/DATABASE.
    #[arg(
        long,
        global = true,
        env = "SVC_DATABASE_URL",
        hide_env_values = true,
        default_value = "sqlite://svc.db",
        value_name = "URL",
        help_heading = "Global options"
    )]
    pub database_url: String,

    /// Print the result as one JSON document; a list is an array.
    #[arg(long, global = true, overrides_with = "json", help_heading = "Global options")]
    pub json: bool,

    /// Do not ask before what cannot be taken back; where no person can answer, it is not asked anyway.
    #[arg(long, short, global = true, overrides_with = "yes", help_heading = "Global options")]
    pub yes: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The nouns.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Business accounts: their settings and whether their keys may use the API.
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Example:\n  svc tenant create --name 'Harbour Plumbing'"
    )]
    Tenant {
        /// What to do with tenants.
        #[command(subcommand)]
        command: TenantCommand,
    },
    /// API keys, with which the programs of a tenant sign in.
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Example:\n  svc key create --tenant 0195a3c8-0000-7000-8000-000000000001 --scopes read,write"
    )]
    Key {
        /// What to do with keys.
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Invoices: the steps that the API does not have.
    ///
    /// Each step fires its events, which go out to the tenant's webhooks.
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Example:\n  svc invoice pay 0195a3c8-0000-7000-8000-000000000003 --amount 40"
    )]
    Invoice {
        /// What to do with invoices.
        #[command(subcommand)]
        command: InvoiceCommand,
    },
    /// Quotes: what the client answers.
    ///
    /// Quotes are made and changed through the API.
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Example:\n  svc quote accept 0195a3c8-0000-7000-8000-000000000007"
    )]
    Quote {
        /// What to do with quotes.
        #[command(subcommand)]
        command: QuoteCommand,
    },
    /// Webhook subscriptions: where events are delivered.
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Example:\n  svc webhook list --tenant 0195a3c8-0000-7000-8000-000000000001"
    )]
    Webhook {
        /// What to do with webhooks.
        #[command(subcommand)]
        command: WebhookCommand,
    },
    /// Deliveries: one event on its way to one webhook.
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Example:\n  svc delivery list --tenant 0195a3c8-0000-7000-8000-000000000001 --status failed"
    )]
    Delivery {
        /// What to do with deliveries.
        #[command(subcommand)]
        command: DeliveryCommand,
    },
    /// Events that happen outside this service.
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Example:\n  svc event emit --tenant 0195a3c8-0000-7000-8000-000000000001 \\\n    \
                      --kind stay.created --data stay.json"
    )]
    Event {
        /// What to do with events.
        #[command(subcommand)]
        command: EventCommand,
    },
    /// Bring contacts or invoices from elsewhere, out of a CSV or NDJSON file.
    ///
    /// The columns or members are the fields of the API, and checked like them; `id` and `created_at` are kept, so what
    /// was exported can be imported elsewhere. Good rows go in, 500 at a time; refused rows are told at the end, and
    /// make the exit code 1. Run it again after a mistake is mended or the import was broken off: what is there
    /// already is not added twice. It is recognised by its id; else by the contact's email or the invoice's number;
    /// else by everything that the row says.
    ///
    /// Contacts: id, email, first_name, last_name, phone, company_name, city, state, postcode, created_at. Invoices: id,
    /// invoice_number, contact_id, status, issue_date, due_date, total, currency, paid_at, amount_paid, created_at.
    /// `updated_at` is read and not kept.
    #[command(
        after_help = "Examples:\n  svc import contacts --tenant 0195a3c8-0000-7000-8000-000000000001 contacts.csv\n  \
                      svc import contacts --tenant 0195a3c8-0000-7000-8000-000000000001 contacts.csv \\\n    \
                      --dry-run --report refused.ndjson\n  \
                      zcat invoices.ndjson.gz | svc import invoices \\\n    \
                      --tenant 0195a3c8-0000-7000-8000-000000000001 --no-events -"
    )]
    Import(Import),
    /// Write all records of a kind to stdout, one JSON object per line.
    ///
    /// Each record once, as GET returns it, newest first; with --since, oldest change first. It reads page by page
    /// beside a running server, so its size does not matter.
    #[command(
        after_help = "Examples:\n  svc export contacts --tenant 0195a3c8-0000-7000-8000-000000000001 > contacts.ndjson\n  \
                      svc export jobs --tenant 0195a3c8-0000-7000-8000-000000000001 --since 7d --format csv"
    )]
    Export(Export),
    /// The log of changes: who did what, and when.
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Example:\n  svc audit list --tenant 0195a3c8-0000-7000-8000-000000000001"
    )]
    Audit {
        /// What to do with the log.
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// The database itself.
    #[command(subcommand_required = true, arg_required_else_help = true, after_help = "Example:\n  svc db migrate")]
    Db {
        /// What to do with the database.
        #[command(subcommand)]
        command: DbCommand,
    },
    /// Receive deliveries on this machine: verify and print them.
    ///
    /// Listens on 127.0.0.1 until Ctrl-C. The first line on stdout says where; then each POST is printed: whether
    /// its signature is right, and its body. What verifies is answered with 204, what does not with 401. The
    /// webhook's URL must lead here, which a server takes with --allow-private-webhooks. No database is opened.
    #[command(after_help = "Examples:\n  svc listen --secret whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=\n  \
                      svc listen --secret whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o= --fail 500\n  \
                      SVC_WEBHOOK_SECRET=whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o= \\\n    \
                      svc listen --port 9000 --forward-to localhost:3000/webhooks")]
    Listen(Listen),
    /// Print the completions of a shell.
    ///
    /// Put them where the shell looks for them, then start a new shell.
    #[command(after_help = "Examples:\n  svc completions bash > ~/.local/share/bash-completion/completions/svc\n  \
                      svc completions zsh > ~/.zfunc/_svc\n  \
                      svc completions fish > ~/.config/fish/completions/svc.fish")]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page, or write one for each command.
    ///
    /// They say what --help says.
    #[command(after_help = "Examples:\n  svc man | man -l -\n  \
                      svc man --directory ~/.local/share/man/man1 && man svc-tenant-create")]
    Man {
        /// Write svc.1 and a page per command into this directory, which is made when missing.
        #[arg(long, value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

/// `svc tenant …`
#[derive(Clone, Debug, Subcommand)]
pub enum TenantCommand {
    /// Create a tenant.
    ///
    /// Its keys may use the API at once, unless it is created as pending.
    #[command(after_help = "Example:\n  svc tenant create --name 'Harbour Plumbing' --time-zone Australia/Sydney")]
    Create {
        /// Name of the business.
        #[arg(long, value_parser = values::name)]
        name: String,
        /// Time zone of the IANA database; it decides what "today" is.
        #[arg(long, value_parser = TimeZone::parse, default_value = "UTC", value_name = "ZONE")]
        time_zone: TimeZone,
        /// Currency of quotes and invoices that name none, a code of ISO 4217.
        #[arg(long, value_parser = Currency::parse, default_value = "AUD", value_name = "CODE")]
        currency: Currency,
        /// Refuse the tenant's keys until it is approved.
        #[arg(long)]
        pending: bool,
    },
    /// List all tenants, oldest first.
    #[command(after_help = "Example:\n  svc tenant list --json")]
    List,
    /// Show a tenant.
    #[command(after_help = "Example:\n  svc tenant show 0195a3c8-0000-7000-8000-000000000001")]
    Show {
        /// Id of the tenant.
        #[arg(value_parser = values::tenant_id)]
        id: TenantId,
    },
    /// Let a tenant's keys use the API.
    ///
    /// For a pending or suspended tenant. Approving it again changes nothing.
    #[command(after_help = "Example:\n  svc tenant approve 0195a3c8-0000-7000-8000-000000000001")]
    Approve {
        /// Id of the tenant.
        #[arg(value_parser = values::tenant_id)]
        id: TenantId,
    },
    /// Refuse a tenant's keys from now on.
    ///
    /// Nothing else is lost: `svc tenant approve` takes it back.
    #[command(after_help = "Example:\n  svc tenant suspend 0195a3c8-0000-7000-8000-000000000001")]
    Suspend {
        /// Id of the tenant.
        #[arg(value_parser = values::tenant_id)]
        id: TenantId,
    },
    /// Change a tenant's settings.
    ///
    /// What is not named stays as it is. Limits hold in place of those of the server's --rate-limit and
    /// --write-rate-limit.
    #[command(after_help = "Examples:\n  svc tenant set 0195a3c8-0000-7000-8000-000000000001 --currency NZD\n  \
                      svc tenant set 0195a3c8-0000-7000-8000-000000000001 --rate-limit 600 \\\n    \
                      --write-rate-limit contacts=300 --write-rate-limit quotes=default")]
    Set {
        /// Id of the tenant.
        #[arg(value_parser = values::tenant_id)]
        id: TenantId,
        /// The changes.
        #[command(flatten)]
        changes: TenantChanges,
    },
}

/// Changes to a tenant: at least one.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = true)]
pub struct TenantChanges {
    /// Name of the business.
    #[arg(long, value_parser = values::name)]
    pub name: Option<String>,
    /// Time zone of the IANA database; it decides what "today" is.
    #[arg(long, value_parser = TimeZone::parse, value_name = "ZONE")]
    pub time_zone: Option<TimeZone>,
    /// Currency of quotes and invoices that name none, a code of ISO 4217.
    #[arg(long, value_parser = Currency::parse, value_name = "CODE")]
    pub currency: Option<Currency>,
    /// Whether two contacts may not have the same email.
    #[arg(long, value_name = "BOOL")]
    pub unique_contact_email: Option<bool>,
    /// Requests a minute of each of its keys, or default for the server's limit.
    #[arg(long, value_parser = values::limit, allow_hyphen_values = true, value_name = "N|default")]
    pub rate_limit: Option<Limit>,
    /// Writes a minute of each of its keys per method and route of a resource, such as quotes=20, or quotes=default for
    /// the server's limit; repeatable.
    #[arg(long, value_parser = values::write_limit, value_delimiter = ',', value_name = "RESOURCE=N|default")]
    pub write_rate_limit: Vec<(CappedCollection, Limit)>,
}
