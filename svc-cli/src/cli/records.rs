//! The commands that every resource has: `list`, `show`, `create` and `update`. Their options follow from the inputs of the
//! API.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand, value_parser};
use serde::Serialize;
use serde::de::DeserializeOwned;
use svc_core::find::SearchParams;
use svc_core::input::{Input, ToBody};
use svc_core::lookup::KindInAccount;
use svc_core::operation::{Listing, Operation};
use svc_core::pages::{ListParams, Page};
use svc_core::platform::operations::{self, Records};
use svc_core::resources::bookings::{Booking, BookingCreate, BookingFilter, BookingUpdate};
use svc_core::resources::contacts::{Contact, ContactCreate, ContactFilter, ContactId, ContactUpdate};
use svc_core::resources::invoices::{Invoice, InvoiceCreate, InvoiceFilter, InvoiceUpdate};
use svc_core::resources::jobs::{Job, JobCreate, JobFilter, JobUpdate};
use svc_core::resources::quotes::{Quote, QuoteCreate, QuoteFilter, QuoteUpdate};
use svc_core::resources::{NoFilter, Resource};
use svc_core::values::{Id, JOB_SCALE, TenantId};
use svc_core::webhooks::subscriptions::{
    StreamCreate, WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret, WebhookUpdate,
};

use super::InAccount;
use super::fields::{Body, Filters, clear, stream, with_stream};
use crate::ids::IdArg;
use crate::output::{amount, money};
use crate::values::{self, TimeArg};

/// What the command line knows of a resource.
pub trait ResourceCommands: Resource<Filter: ToBody> + DeserializeOwned {
    /// The filters of its list.
    type ListFilter: Input + ToBody + Clone;
    /// The body that creates a record.
    type Create: Input + ToBody + Clone;
    /// The body that changes a record.
    type Update: Input + ToBody + Clone;
    /// What a creation returns: the record, or more.
    type Created: Serialize + DeserializeOwned + Send + 'static;
    /// The kind of record, whose name is that of the command.
    const KIND: KindInAccount;
    /// Lists records.
    const LIST: Operation<TenantId, Listing<ListParams, Self::ListFilter>, Page<Self>>;
    /// Creates a record.
    const CREATE: Operation<TenantId, Self::Create, Self::Created>;
    /// Changes a record.
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self>;
    /// Options that create a record, as an example.
    const CREATE_EXAMPLE: &'static str;
    /// Options that change a record, as an example.
    const UPDATE_EXAMPLE: &'static str;
    /// The number of records that `list` lists unless told otherwise.
    const DEFAULT_LIMIT: &'static str = "50";
    /// The columns of a list: their headings, and the fields in them, with spaces between several.
    const COLUMNS: &'static [(&'static str, &'static str)];
    /// The fields that `show` shows, in this order. None stand for all.
    const DETAILS: &'static [&'static str] = &[];
    /// The field by which people call the record, after the name of its type.
    const TITLE: &'static str = "id";

    /// Returns the command that creates a record with what only this resource has.
    fn with_own_options(create: Command) -> Command {
        create
    }

    /// Returns the fields that people see otherwise than the API has them, and those that it does not have.
    fn shown(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the contact that lists show by its name, in place of its id.
    fn contact(&self) -> Option<ContactId> {
        None
    }
}

impl ResourceCommands for Contact {
    type ListFilter = Listing<SearchParams, ContactFilter>;
    type Create = ContactCreate;
    type Update = ContactUpdate;
    type Created = Self;
    const KIND: KindInAccount = KindInAccount::Contact;
    const LIST: Operation<TenantId, Listing<ListParams, Self::ListFilter>, Page<Self>> = Records::<Self>::SEARCH;
    const CREATE: Operation<TenantId, Self::Create, Self::Created> = Records::<Self>::CREATE;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = Records::<Self>::UPDATE;
    const CREATE_EXAMPLE: &'static str = "--email ada@example.com --first-name Ada";
    const UPDATE_EXAMPLE: &'static str = "--phone '+61 2 5550 0100' --city ''";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("NAME", "first_name last_name"),
        ("EMAIL", "email"),
        ("PHONE", "phone"),
        ("COMPANY", "company_name"),
        ("CITY", "city"),
        ("CREATED", "created_at"),
    ];
}

impl ResourceCommands for Booking {
    type ListFilter = Listing<SearchParams, BookingFilter>;
    type Create = BookingCreate;
    type Update = BookingUpdate;
    type Created = Self;
    const KIND: KindInAccount = KindInAccount::Booking;
    const LIST: Operation<TenantId, Listing<ListParams, Self::ListFilter>, Page<Self>> = Records::<Self>::SEARCH;
    const CREATE: Operation<TenantId, Self::Create, Self::Created> = Records::<Self>::CREATE;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = Records::<Self>::UPDATE;
    const CREATE_EXAMPLE: &'static str =
        "--contact 0195a3c4 --service-name 'Boiler service' \\\n    --start 2026-03-14T09:00:00+11:00";
    const UPDATE_EXAMPLE: &'static str = "--status completed";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("STATUS", "status"),
        ("START", "start_time"),
        ("CONTACT", "contact_id"),
        ("SERVICE", "service_name"),
        ("END", "end_time"),
    ];

    fn contact(&self) -> Option<ContactId> {
        self.contact_id
    }
}

impl ResourceCommands for Quote {
    type ListFilter = Listing<SearchParams, QuoteFilter>;
    type Create = QuoteCreate;
    type Update = QuoteUpdate;
    type Created = Self;
    const KIND: KindInAccount = KindInAccount::Quote;
    const LIST: Operation<TenantId, Listing<ListParams, Self::ListFilter>, Page<Self>> = Records::<Self>::SEARCH;
    const CREATE: Operation<TenantId, Self::Create, Self::Created> = Records::<Self>::CREATE;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = Records::<Self>::UPDATE;
    const CREATE_EXAMPLE: &'static str = "--contact 0195a3c4 --total 1500 --valid-until 2026-04-13";
    const UPDATE_EXAMPLE: &'static str = "--status sent";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("NUMBER", "quote_number"),
        ("STATUS", "status"),
        ("TOTAL", "total"),
        ("CONTACT", "contact_id"),
        ("VALID UNTIL", "valid_until"),
        ("ISSUED", "issue_date"),
        ("CREATED", "created_at"),
    ];
    const TITLE: &'static str = "quote_number";

    fn shown(&self) -> Vec<(&'static str, String)> {
        vec![("total", money(self.total, self.currency))]
    }

    fn contact(&self) -> Option<ContactId> {
        self.contact_id
    }
}

impl ResourceCommands for Job {
    type ListFilter = Listing<SearchParams, JobFilter>;
    type Create = JobCreate;
    type Update = JobUpdate;
    type Created = Self;
    const KIND: KindInAccount = KindInAccount::Job;
    const LIST: Operation<TenantId, Listing<ListParams, Self::ListFilter>, Page<Self>> = Records::<Self>::SEARCH;
    const CREATE: Operation<TenantId, Self::Create, Self::Created> = Records::<Self>::CREATE;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = Records::<Self>::UPDATE;
    const CREATE_EXAMPLE: &'static str = "--title 'Replace the boiler' --contact 0195a3c4 --status scheduled";
    const UPDATE_EXAMPLE: &'static str = "--status in_progress";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("NUMBER", "job_number"),
        ("STATUS", "status"),
        ("TITLE", "title"),
        ("START", "scheduled_start"),
        ("CUSTOMER", "customer_name"),
        ("ESTIMATE", "estimated_total"),
        ("CREATED", "created_at"),
    ];
    const TITLE: &'static str = "job_number";

    fn shown(&self) -> Vec<(&'static str, String)> {
        let totals = [("estimated_total", self.estimated_total), ("actual_total", self.actual_total)];
        totals.into_iter().filter_map(|(name, total)| Some((name, amount(total?, JOB_SCALE)))).collect()
    }
}

impl ResourceCommands for Invoice {
    type ListFilter = Listing<SearchParams, InvoiceFilter>;
    type Create = InvoiceCreate;
    type Update = InvoiceUpdate;
    type Created = Self;
    const KIND: KindInAccount = KindInAccount::Invoice;
    const LIST: Operation<TenantId, Listing<ListParams, Self::ListFilter>, Page<Self>> = Records::<Self>::SEARCH;
    const CREATE: Operation<TenantId, Self::Create, Self::Created> = operations::CREATE_INVOICE;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = operations::UPDATE_INVOICE;
    const CREATE_EXAMPLE: &'static str = "--contact 0195a3c4 --total 99.95 --due 2026-04-13";
    const UPDATE_EXAMPLE: &'static str = "--total 120 --due 2026-05-01";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("NUMBER", "invoice_number"),
        ("STATUS", "status"),
        ("TOTAL", "total"),
        ("CONTACT", "contact_id"),
        ("DUE", "due_date"),
        ("PAID", "amount_paid"),
        ("ISSUED", "issue_date"),
        ("CREATED", "created_at"),
    ];
    const TITLE: &'static str = "invoice_number";

    fn shown(&self) -> Vec<(&'static str, String)> {
        vec![("total", money(self.total, self.currency)), ("amount_paid", money(self.amount_paid, self.currency))]
    }

    fn contact(&self) -> Option<ContactId> {
        self.contact_id
    }
}

impl ResourceCommands for WebhookSubscription {
    type ListFilter = NoFilter;
    type Create = WebhookCreate;
    type Update = WebhookUpdate;
    type Created = WebhookSubscriptionWithSecret;
    const KIND: KindInAccount = KindInAccount::Webhook;
    const LIST: Operation<TenantId, Listing<ListParams, Self::ListFilter>, Page<Self>> = Records::<Self>::LIST;
    const CREATE: Operation<TenantId, Self::Create, Self::Created> = operations::CREATE_WEBHOOK;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = Records::<Self>::UPDATE;
    const CREATE_EXAMPLE: &'static str = "--url https://example.com/hooks --events invoice.paid,invoice.sent";
    const UPDATE_EXAMPLE: &'static str = "--events '*'";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("STATUS", "status"),
        ("URL", "url"),
        ("EVENTS", "events"),
        ("LAST STATUS", "last_delivery_status"),
    ];
    const DETAILS: &'static [&'static str] = &[
        "id",
        "url",
        "events",
        "description",
        "status",
        "paused_at",
        "consecutive_failures",
        "last_delivery_at",
        "last_delivery_status",
        "headers",
        "authentication",
        "filter",
        "payload",
        "max_per_second",
        "max_in_flight",
        "timeout",
        "retry_schedule",
        "ordering",
        "signature",
        "signing_keys",
        "client_certificate",
        "certificate_authority",
        "created_at",
    ];
    /// As many as an account can have.
    const DEFAULT_LIMIT: &'static str = "1000";

    fn with_own_options(create: Command) -> Command {
        with_stream::<WebhookCreate>(create)
    }

    fn shown(&self) -> Vec<(&'static str, String)> {
        vec![("status", status(self).to_owned())]
    }
}

/// Returns `enabled`, `disabled` or the reason why the service disabled it.
pub(crate) fn status(subscription: &WebhookSubscription) -> &'static str {
    match (subscription.enabled, subscription.disabled_reason) {
        (true, _) => "enabled",
        (false, Some(reason)) => reason.as_str(),
        (false, None) => "disabled",
    }
}

/// The commands that every resource has.
#[derive(Clone, Debug)]
pub enum RecordCommand<R: ResourceCommands> {
    /// `list`
    List(ListRecords<R::ListFilter>),
    /// `show`
    Show(Target),
    /// `create`
    Create(CreateRecord<R::Create>),
    /// `update`
    Update(UpdateRecord<R::Update>),
}

/// A record that is named.
#[derive(Args, Clone, Debug)]
pub struct Target {
    /// Record, by its id, a part of it that no other one has, or its number, email address or name.
    pub id: IdArg,
    /// The account that owns the record.
    #[command(flatten)]
    pub account: InAccount,
}

/// `list`
#[derive(Args, Clone, Debug)]
pub struct ListRecords<F: Input> {
    /// The filters.
    #[command(flatten)]
    pub filters: Filters<F>,
    /// List what changed at or after this time, such as 2026-03-14T15:09:26Z, or this long ago, such as 2h or 7d; oldest
    /// change first. A date, such as 2026-03-14, is its start in the account's time zone.
    #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME", help_heading = "Filters")]
    pub updated_since: Option<TimeArg>,
    /// Maximum number of records to list.
    #[arg(long, default_value = "50", value_parser = value_parser!(u32).range(1..), value_name = "N")]
    pub limit: u32,
    /// The account.
    #[command(flatten)]
    pub account: InAccount,
}

/// `create`
#[derive(Args, Clone, Debug)]
pub struct CreateRecord<I: Input> {
    /// The fields of the new record.
    #[command(flatten)]
    pub body: Body<I>,
    /// Those of a webhook whose events go to an engine.
    #[arg(skip)]
    pub stream: Option<Body<StreamCreate>>,
    /// The account.
    #[command(flatten)]
    pub account: InAccount,
}

/// `update`
#[derive(Args, Clone, Debug)]
pub struct UpdateRecord<I: Input> {
    /// The record.
    #[command(flatten)]
    pub target: Target,
    /// The fields to change.
    #[command(flatten)]
    pub body: Body<I>,
}

/// Returns the commands with their help, which clap's derive cannot word for each resource.
fn commands<R: ResourceCommands>() -> [Command; 4] {
    let (name, plural) = (R::KIND.as_str(), R::COLLECTION);
    let a_record = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { format!("an {name}") } else { format!("a {name}") };
    // The texts follow the arguments, whose own docs clap would take for those of the command.
    let list = ListRecords::<R::ListFilter>::augment_args(Command::new("list"))
        .visible_alias("ls")
        .about(format!("List {plural}, newest first"))
        .long_about(None)
        .after_help(format!("Examples:\n  svc {name} list\n  svc {name} list --updated-since 7d --json"))
        .mut_arg("limit", |limit| limit.default_value(R::DEFAULT_LIMIT));
    let show = Target::augment_args(Command::new("show"))
        .about(format!("Show {a_record}"))
        .long_about(None)
        .after_help(format!("Example:\n  svc {name} show 0195a3c8"));
    let create = R::with_own_options(CreateRecord::<R::Create>::augment_args(Command::new("create")))
        .about(format!("Create {a_record}"))
        .long_about(format!(
            "Create {a_record}.\n\nThe rules of the API apply, and its events are delivered to the account's webhooks."
        ))
        .after_help(format!(
            "Examples:\n  svc {name} create {}\n  svc {name} create --data {name}.json",
            R::CREATE_EXAMPLE
        ));
    let update = UpdateRecord::<R::Update>::augment_args(Command::new("update"))
        .about(format!("Change {a_record}"))
        .long_about(format!(
            "Change {a_record}.\n\nFields that are not named stay as they are. The events of the change are delivered to \
             webhooks."
        ))
        .after_help(format!("Example:\n  svc {name} update 0195a3c8 {}", R::UPDATE_EXAMPLE))
        .args(clear::<R::Update>());
    [list, show, create, update]
}

impl<R: ResourceCommands> Subcommand for RecordCommand<R> {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(commands::<R>())
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        ["list", "show", "create", "update"].contains(&name)
    }
}

impl<R: ResourceCommands> FromArgMatches for RecordCommand<R> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        match matches.subcommand() {
            Some(("list", matches)) => ListRecords::from_arg_matches(matches).map(Self::List),
            Some(("show", matches)) => Target::from_arg_matches(matches).map(Self::Show),
            Some(("create", matches)) => {
                let create = CreateRecord::from_arg_matches(matches)?;
                Ok(Self::Create(CreateRecord { stream: stream(matches)?, ..create }))
            }
            Some(("update", matches)) => UpdateRecord::from_arg_matches(matches).map(Self::Update),
            _ => Err(Error::new(clap::error::ErrorKind::MissingSubcommand)),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;

    use super::*;

    /// Fields that people see and the API does not have.
    const MORE: [&str; 2] = ["amount_paid", "status"];

    fn check<R: ResourceCommands>() {
        let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<R>().to_value();
        let columns = R::COLUMNS.iter().flat_map(|(_, fields)| fields.split(' '));
        for field in columns.chain(R::DETAILS.iter().copied()).chain([R::TITLE]) {
            let is_known = schema["properties"].get(field).is_some() || MORE.contains(&field);
            assert!(is_known, "{} has no {field}", R::KIND);
        }
    }

    #[test]
    fn columns_and_details_name_fields() {
        check::<Contact>();
        check::<Booking>();
        check::<Quote>();
        check::<Job>();
        check::<Invoice>();
        check::<WebhookSubscription>();
    }
}
