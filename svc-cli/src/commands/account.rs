//! `svc account`.

mod sandbox;

use std::num::NonZeroU32;

use clap::{Args, Subcommand, value_parser};
use serde_json::{Value, json};
use svc_core::accounts::limits::{CappedCollection, parse_limit, parse_max_webhooks, parse_write_limit};
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::error::Issue;
use svc_core::platform::{
    Account, AccountCreate, AccountUpdate, AtLeastOne, DaysUntilDue, WebhookCount, WriteLimitChanges, WriteLimits,
    Zone, operations,
};
use svc_core::values::{Currency, Note, Patch, TenantId, Text, TimeZone};

use super::input::patch;
use super::lookup;
use super::share::{self, AddressArgs};
use crate::exit::Failure;
use crate::ids::IdArg;
use crate::output::Outcome;
use crate::record::{Property, details, optional, state, table, text, time};
use crate::service::Service;
use crate::session::Session;
use crate::times;

/// Manage accounts: businesses, their settings and their access to the API.
///
/// The API and --json call the id of an account `tenant_id`. `svc tenant` and --tenant are aliases of `svc account` and
/// --account.
#[derive(Clone, Debug, Subcommand)]
#[command(alias = "tenant", after_help = "Example:\n  svc account create --name 'Harbour Plumbing'")]
pub(crate) enum AccountCommand {
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
                      svc account list --limit 10 --after 8d2f41c07b9e\n  \
                      svc account list --sandboxes"
    )]
    List {
        /// Maximum number of accounts to list.
        #[arg(long, default_value = "1000", value_parser = value_parser!(u32).range(1..), value_name = "N")]
        limit: u32,
        /// List only accounts that follow the one with this id.
        #[arg(long, value_name = "ID")]
        after: Option<IdArg>,
        /// List the sandboxes of accounts as well.
        #[arg(long)]
        sandboxes: bool,
    },
    /// Show an account.
    #[command(after_help = "Example:\n  svc account show 8d2f41c07b9e")]
    Show {
        /// Id of the account.
        id: IdArg,
    },
    /// Approve a pending or suspended account, so that its keys can use the API.
    ///
    /// Approving an approved account changes nothing.
    #[command(after_help = "Example:\n  svc account approve 8d2f41c07b9e")]
    Approve {
        /// Id of the account.
        id: IdArg,
    },
    /// Suspend an account, so that its keys are rejected from now on.
    ///
    /// The account's data is kept. `svc account approve` reverses the suspension.
    #[command(after_help = "Example:\n  svc account suspend 8d2f41c07b9e")]
    Suspend {
        /// Id of the account.
        id: IdArg,
    },
    /// Change an account's settings.
    ///
    /// Settings that are not named stay. Limits replace the server's --rate-limit and --write-rate-limit.
    #[command(after_help = "Examples:\n  svc account set 8d2f41c07b9e --currency NZD\n  \
                      svc account set 8d2f41c07b9e --rate-limit 600 --write-rate-limit quotes=default")]
    Set {
        /// Id of the account.
        id: IdArg,
        #[command(flatten)]
        changes: AccountChanges,
    },
    /// Create or show the sandbox of an account, for testing programs.
    ///
    /// The sandbox is an account of its own with sample records. It is created if the account has none; then a key that begins
    /// with svc_test_ is printed once. Its webhooks are sent with the header X-SVC-Test. The members of the account can use it
    /// in the dashboard with the same role.
    #[command(after_help = "Examples:\n  svc account sandbox 8d2f41c07b9e\n  \
                      svc account sandbox 8d2f41c07b9e --reset\n  \
                      svc account sandbox 8d2f41c07b9e --delete")]
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
    /// Print the address at which calendar programs subscribe to the bookings and planned jobs of an account.
    ///
    /// The address is made if there is none, and stays the same until it is renewed or revoked. Anyone with it can read the
    /// calendar without signing in.
    #[command(after_help = "Examples:\n  svc account calendar 8d2f41c07b9e --url https://api.example.com\n  \
                      svc account calendar 8d2f41c07b9e --renew")]
    Calendar {
        /// Id of the account.
        id: IdArg,
        #[command(flatten)]
        address: AddressArgs,
    },
}

/// The settings of an account that `svc account set` changes. At least one is required.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = true)]
pub(crate) struct AccountChanges {
    /// Name of the business: one line of at most 300 characters.
    #[arg(long, value_parser = Text::<300>::parse)]
    name: Option<Text<300>>,
    /// IANA time zone, such as Australia/Sydney. It determines the account's current date.
    #[arg(long, value_parser = TimeZone::parse, value_name = "ZONE")]
    time_zone: Option<TimeZone>,
    /// ISO 4217 code of the currency of quotes and invoices that name none.
    #[arg(long, value_parser = Currency::parse, value_name = "CODE")]
    currency: Option<Currency>,
    /// Postal address for invoices and quotes, of at most 500 characters; empty removes it.
    #[arg(long, value_parser = parse_lines, value_name = "TEXT")]
    address: Option<Lines>,
    /// Tax number for invoices and quotes, such as 'ABN 51 824 753 556'; empty removes it.
    #[arg(long, value_parser = parse_tax_number, value_name = "TEXT")]
    tax_number: Option<TaxNumber>,
    /// Days after issue on which invoices without a due date are due, 0 to 365, or `none`.
    #[arg(long, value_parser = parse_days_until_due, allow_hyphen_values = true, value_name = "DAYS|none")]
    days_until_due: Option<DueTerms>,
    /// How customers pay, for invoices, in at most 500 characters; empty removes it.
    #[arg(long, value_parser = parse_lines, value_name = "TEXT")]
    payment_details: Option<Lines>,
    /// Whether each email address belongs to only one contact.
    #[arg(long, value_name = "BOOL")]
    unique_contact_email: Option<bool>,
    /// Requests per minute for each of the account's keys, or `default` for the server's limit.
    #[arg(long, value_parser = parse_limit_or_default, allow_hyphen_values = true, value_name = "N|default")]
    rate_limit: Option<Limit>,
    /// Writes per minute, key, method and route: quotes=20, or quotes=default. Can be repeated.
    #[arg(long, value_parser = parse_write_limit_or_default, value_delimiter = ',', value_name = "RESOURCE=N|default")]
    write_rate_limit: Vec<(CappedCollection, Limit)>,
    /// Webhook subscriptions that the account can have, 1 to 1000, or `default`.
    #[arg(long, value_parser = parse_max_webhooks_or_default, allow_hyphen_values = true, value_name = "N|default")]
    max_webhooks: Option<MaxWebhooks>,
}

/// A rate limit in requests per minute. `None` stands for the server's limit.
type Limit = Option<NonZeroU32>;

/// A text of several lines for invoices. `None` removes it.
type Lines = Option<Note<500>>;

/// The tax number of a business. `None` removes it.
type TaxNumber = Option<Text<100>>;

/// The days until an invoice is due. `None` for no due date.
type DueTerms = Option<DaysUntilDue>;

/// Parses a number of days, or `none`.
fn parse_days_until_due(text: &str) -> Result<DueTerms, Issue> {
    or_word(text, "none", DaysUntilDue::parse)
}

/// Parses lines, or an empty text, which is `None`.
fn parse_lines(text: &str) -> Result<Lines, Issue> {
    Some(text).filter(|text| !text.trim().is_empty()).map(Note::parse).transpose()
}

/// Parses a tax number, or an empty text, which is `None`.
fn parse_tax_number(text: &str) -> Result<TaxNumber, Issue> {
    Some(text).filter(|text| !text.trim().is_empty()).map(Text::parse).transpose()
}

/// A limit of webhook subscriptions. `None` stands for the server's limit.
type MaxWebhooks = Option<u32>;

/// Parses a rate limit: a whole number of at least 1, or `default`.
fn parse_limit_or_default(text: &str) -> Result<Limit, Issue> {
    or_word(text, "default", parse_limit)
}

/// Parses a value, or the word that stands for `None`.
fn or_word<T>(text: &str, word: &str, parse: fn(&str) -> Result<T, Issue>) -> Result<Option<T>, Issue> {
    if text == word {
        return Ok(None);
    }
    parse(text).map(Some).map_err(|issue| Issue { message: format!("{issue}, or {word}").into(), ..issue })
}

/// Parses a number of webhook subscriptions, or `default`.
fn parse_max_webhooks_or_default(text: &str) -> Result<MaxWebhooks, Issue> {
    or_word(text, "default", parse_max_webhooks)
}

/// Parses the write limit of a resource, such as `quotes=20` or `quotes=default`.
fn parse_write_limit_or_default(text: &str) -> Result<(CappedCollection, Limit), Issue> {
    parse_write_limit(text, parse_limit_or_default)
}

pub(crate) async fn run(session: &Session, command: AccountCommand) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    match command {
        AccountCommand::Create { name, time_zone, currency, pending } => {
            let input = AccountCreate {
                name,
                time_zone: Some(Zone(time_zone)),
                currency: Some(currency),
                developer_access: pending.then_some(DeveloperAccess::Pending),
            };
            let account = service.call(&operations::CREATE_ACCOUNT, (), input).await?;
            outcome(&account, format!("Created account {}.\n\n{}", account.name, shown(&account)))
        }
        AccountCommand::List { limit, after, sandboxes } => list(service, limit, after, sandboxes).await,
        AccountCommand::Sandbox { id, reset, delete } => {
            let account = lookup::account_by_id(service, &id).await?;
            sandbox::run(session, service, &account, reset, delete).await
        }
        AccountCommand::Calendar { id, address } => {
            let account = lookup::account_by_id(service, &id).await?.id;
            let share = async |input| Ok(service.call(&operations::SHARE_CALENDAR, account, input).await?);
            let unshare = async || Ok(service.call(&operations::UNSHARE_CALENDAR, account, ()).await?);
            share::run(address, share, unshare).await
        }
        AccountCommand::Show { id } => {
            let account = lookup::account_by_id(service, &id).await?;
            outcome(&account, shown(&account))
        }
        AccountCommand::Approve { id } => {
            let account = change(service, &id, access(DeveloperAccess::Approved)).await?;
            outcome(&account, format!("Approved account {}. Its keys can use the API.", account.name))
        }
        AccountCommand::Suspend { id } => {
            let Account { id, name, .. } = lookup::account_by_id(service, &id).await?;
            session.confirm(&format!("Suspend account {name}? Its keys are rejected from the next request on."))?;
            let account = service.call(&operations::UPDATE_ACCOUNT, id, access(DeveloperAccess::Suspended)).await?;
            outcome(&account, format!("Suspended account {}. Its keys are rejected from now on.", account.name))
        }
        AccountCommand::Set { id, changes } => {
            let account = change(service, &id, update(changes)).await?;
            outcome(&account, format!("Updated account {}.\n\n{}", account.name, shown(&account)))
        }
    }
}

async fn list(service: &Service, limit: u32, after: Option<IdArg>, sandboxes: bool) -> Result<Outcome, Failure> {
    let after = match after {
        None => None,
        Some(IdArg::Whole(id)) => Some(TenantId(id)),
        Some(part) => Some(lookup::account_by_id(service, &part).await?.id),
    };
    let (accounts, has_more) = service.accounts(after, limit, sandboxes).await?;
    let last = accounts.last().filter(|_| has_more);
    let note = last.map(|last| format!("There are more accounts; list them with --after {}.", last.id));
    let table = table(&accounts, |account| {
        let of = sandboxes.then(|| optional("", account.sandbox_of).column(7, "SANDBOX OF"));
        describe(account).into_iter().chain(of).collect()
    });
    let views: Vec<Value> = accounts.iter().map(view).collect();
    let empty = "There are no accounts yet; create one with `svc account create`.";
    Ok(Outcome::list(&views, &table, empty)?.with_note(note))
}

async fn change(service: &Service, id: &IdArg, change: AccountUpdate) -> Result<Account, Failure> {
    let id = lookup::account_by_id(service, id).await?.id;
    Ok(service.call(&operations::UPDATE_ACCOUNT, id, change).await?)
}

fn access(developer_access: DeveloperAccess) -> AccountUpdate {
    AccountUpdate { developer_access: Patch::Set(developer_access), ..AccountUpdate::default() }
}

fn update(changes: AccountChanges) -> AccountUpdate {
    let AccountChanges {
        name,
        time_zone,
        currency,
        address,
        tax_number,
        days_until_due,
        payment_details,
        unique_contact_email,
        rate_limit,
        write_rate_limit,
        max_webhooks,
    } = changes;
    let write_rate_limits = Some(write_rate_limit).filter(|limits| !limits.is_empty()).map(WriteLimitChanges);
    AccountUpdate {
        name: patch(name),
        time_zone: patch(time_zone.map(Zone)),
        currency: patch(currency),
        address: patch(address),
        tax_number: patch(tax_number),
        days_until_due: patch(days_until_due),
        payment_details: patch(payment_details),
        developer_access: Patch::Keep,
        unique_contact_email: patch(unique_contact_email),
        rate_limit: patch(rate_limit.map(|limit| limit.map(AtLeastOne))),
        write_rate_limits: patch(write_rate_limits),
        max_webhooks: patch(max_webhooks.map(|limit| limit.map(WebhookCount))),
    }
}

/// Formats an account for people, with times in its time zone.
fn shown(account: &Account) -> String {
    times::use_zone_of(account);
    details(describe(account))
}

fn outcome(account: &Account, text: String) -> Result<Outcome, Failure> {
    Outcome::new(&view(account), text)
}

fn view(account: &Account) -> Value {
    json!({
        "id": account.id,
        "name": account.name,
        "developer_access": account.developer_access,
        "time_zone": account.time_zone,
        "currency": account.currency,
        "address": account.address,
        "tax_number": account.tax_number,
        "days_until_due": account.days_until_due,
        "payment_details": account.payment_details,
        "created_at": account.created_at,
        "unique_contact_email": account.unique_contact_email,
        "limits": { "rate_limit": account.rate_limit, "write_rate_limits": account.write_rate_limits },
        "max_webhooks": account.max_webhooks,
        "sandbox_of": account.sandbox_of,
        "sandbox_id": account.sandbox_id,
    })
}

fn describe(account: &Account) -> Vec<Property> {
    let mut fields = vec![
        text("id", account.id).column(1, "ID"),
        text("name", &account.name).column(2, "NAME"),
        state("developer access", account.developer_access).column(3, "ACCESS"),
        text("time zone", &account.time_zone).column(5, "TIME ZONE"),
        text("currency", account.currency).column(4, "CURRENCY"),
        optional("address", one_line(account.address.as_ref())),
        optional("tax number", account.tax_number.as_ref()),
        optional("days until due", account.days_until_due),
        optional("payment details", one_line(account.payment_details.as_ref())),
        text("unique contact email", account.unique_contact_email),
        text("rate limit", limit(account.rate_limit)),
        text("write rate limits", write_limits(&account.write_rate_limits)),
        text("max webhooks", account.max_webhooks.map_or_else(|| "default".to_owned(), |limit| limit.to_string())),
        time("created at", account.created_at).column(6, "CREATED"),
    ];
    fields.extend(account.sandbox_of.map(|of| text("sandbox of", of)));
    fields.extend(account.sandbox_id.map(|sandbox| text("sandbox", sandbox)));
    fields
}

fn one_line(lines: Option<&Note<500>>) -> Option<String> {
    lines.map(|lines| lines.as_str().lines().collect::<Vec<_>>().join(", "))
}

fn limit(limit: Option<u32>) -> String {
    limit.map_or_else(|| "default".to_owned(), |limit| format!("{limit} per minute"))
}

/// Formats the limits that differ from the server's, in the form of the option.
fn write_limits(limits: &WriteLimits) -> String {
    let WriteLimits { contacts, bookings, quotes, jobs, webhooks } = limits;
    let all =
        [("contacts", contacts), ("bookings", bookings), ("quotes", quotes), ("jobs", jobs), ("webhooks", webhooks)];
    let own: Vec<String> =
        all.iter().filter_map(|(name, limit)| limit.map(|limit| format!("{name}={limit}"))).collect();
    if own.is_empty() { limit(None) } else { format!("{} per minute", own.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_that_of_the_server() {
        assert_eq!(parse_limit_or_default("600").unwrap().map(u32::from), Some(600));
        assert_eq!(parse_limit_or_default("default"), Ok(None));
        assert!(parse_limit_or_default("0").is_err());
    }
}
