//! Quotes: offers with a price (`docs/contract.md`, "Quotes").

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::accounts::clocks::{WriteTime, advance_clock};
use crate::accounts::platform_keys::Area;
use crate::accounts::tenants::{self, NumberKind};
use crate::error::{Error, FieldCode, Issue};
use crate::input::json::Json;
use crate::input::{Apply, FromJson, Input, Record};
use crate::operation::{OperationText, Profile};
use crate::resources::contacts::{self, ContactId, OfContact};
use crate::resources::{BusinessRecord, Create, Filter, NewRecord, Resource, Update, crud, set_scale};
use crate::store::{RecordsOfContact, Tx};
use crate::values::EventKind;
use crate::values::{
    Amount, Currency, Date, DateOrTime, Decimal, Id, Patch, RecordKind, TenantId, TextEnum, TimeZone, Timestamp,
};

/// The id of a quote.
pub type QuoteId = Id<Quote>;

/// How many days a quote is valid if no end is sent, from today in the tenant's time zone.
pub const DEFAULT_VALIDITY_DAYS: i64 = 30;

/// The greatest number of line items in a body.
const MAX_LINE_ITEMS: usize = 500;

/// The status of a quote. A PATCH may change it from any value to any other. [`accept`] and [`decline`], which record
/// what the customer does, have rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum QuoteStatus {
    /// The quote has not been sent yet. Every quote starts with this status.
    Draft,
    /// The quote was sent to the customer.
    Sent,
    /// The customer has seen the quote.
    Viewed,
    /// The customer has accepted the offer.
    Accepted,
    /// The customer has declined the offer.
    Declined,
    /// The offer is no longer valid. The service never sets this status by itself.
    Expired,
    /// The offer has become a job or an invoice. The service never sets this status by itself.
    Converted,
}

/// The texts that the operations have in common.
const PROFILE: Profile = Profile {
    area: Area::Records,
    memory: 1,
    with_article: "a quote",
    singular: "quote",
    plural: "quotes",
    list: OperationText::new("listQuotes", "Use `status` to select quotes of one status."),
    get: "getQuote",
    create: OperationText::new(
        "createQuote",
        "Creates a quote for a contact, with the status `draft`, the next `quote_number` of the account and today's \
         date as `issue_date`. Without `valid_until` it is valid for 30 days.",
    ),
    update: OperationText::new("updateQuote", "The status can be set to any value."),
    delete: OperationText::NONE,
};

/// A quote: an offer with a price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record, Resource)]
#[resource(collection = "quotes", filter = QuoteFilter, profile = PROFILE)]
#[record(input)]
pub struct Quote {
    /// The unique identifier of the quote, a UUID of version 7 that the service assigns.
    pub id: QuoteId,
    /// The number of the quote, such as `QUO-0001`. Assigned by the service at creation: the numbers of an account
    /// count up without gaps and are never reused.
    pub quote_number: String,
    /// The contact the offer is for. Set at creation, and kept when the contact is deleted. It can be null only if the
    /// quote was not created through the API.
    pub contact_id: Option<ContactId>,
    /// The status of the offer. It changes with an update, and when the customer accepts or declines the quote.
    pub status: QuoteStatus,
    /// The day on which the quote was created, in the account's time zone.
    pub issue_date: Option<Date>,
    /// The last day on which the offer is valid, in the account's time zone.
    pub valid_until: Option<Date>,
    /// The price in `currency`, an exact decimal number with no more decimals than the currency has.
    pub total: Amount,
    /// The currency of `total`: a three-letter code of ISO 4217 in upper case. Set at creation.
    pub currency: Currency,
    /// When the quote was created. Unique among the account's quotes.
    pub created_at: Timestamp,
    /// When the quote last changed. Equal to `created_at` until then, and unique among the account's quotes.
    pub updated_at: Timestamp,
}

impl BusinessRecord for Quote {
    const KIND: RecordKind = RecordKind::Quote;

    fn contact(&self) -> Option<Uuid> {
        self.contact_id.map(Into::into)
    }

    fn number(&self) -> Option<(NumberKind, &'static str, &str)> {
        Some((NumberKind::Quote, "quote_number", &self.quote_number))
    }

    fn title(&self) -> String {
        self.quote_number.clone()
    }

    fn details(&self, _: &TimeZone) -> Vec<String> {
        vec![self.status.to_string(), self.total.in_currency(self.currency)]
    }

    fn searched(&self) -> Vec<Option<&str>> {
        vec![Some(&self.quote_number)]
    }

    fn check(&mut self) -> Result<(), Error> {
        set_scale("total", &mut self.total, self.currency.scale())
    }
}

impl OfContact for Quote {
    fn of_contact(tx: &mut dyn Tx) -> &mut dyn RecordsOfContact<Self> {
        tx
    }
}

/// A new quote. Its status is `draft`, and its issue date is today in the account's time zone.
#[derive(Clone, Debug, PartialEq, Input)]
#[input(record = Quote)]
pub struct QuoteCreate {
    /// The contact the offer is for: the `id` of a contact of the account that is not deleted.
    pub contact_id: ContactId,
    /// The price in `currency`, with no more decimals than the currency has: 2 for AUD, 0 for JPY.
    pub total: Decimal,
    /// The currency of `total`: the upper-case code of an active currency of ISO 4217. If it is left out or null, the
    /// account's own currency is used: AUD, unless the operator has set another.
    pub currency: Option<Currency>,
    /// The last day on which the offer is valid, as a date or a date-time. Of a date-time only the calendar date is
    /// used, as it is written, without conversion to another time zone. If the field is left out or null, the offer is
    /// valid until 30 days from today in the account's time zone.
    pub valid_until: Option<DateOrTime>,
    /// The lines of the offer. The service checks that each is an object and then drops them: they are not stored, and
    /// responses do not contain them.
    pub line_items: Patch<LineItems>,
}

impl QuoteCreate {
    /// Returns a quote for a contact, of this total in the currency of the account.
    pub fn new(contact_id: ContactId, total: Decimal) -> Self {
        Self { contact_id, total, currency: None, valid_until: None, line_items: Patch::Keep }
    }
}

/// Changes to a quote. A field that is left out keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Input, Apply)]
#[input(record = Quote, patch)]
#[apply(to = Quote)]
pub struct QuoteUpdate {
    /// The new status of the offer. Any status may follow any other. A change to `accepted` or `declined` fires the
    /// event of that name.
    pub status: Patch<QuoteStatus>,
    /// The price in the currency of the quote, with no more decimals than that currency has.
    #[apply(skip)]
    pub total: Patch<Decimal>,
    /// The last day on which the offer is valid, as a date or a date-time. Of a date-time only the calendar date is
    /// used, as it is written, without conversion to another time zone. It cannot be cleared.
    #[apply(skip)]
    pub valid_until: Patch<DateOrTime>,
}

/// The filters of the list of quotes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Input)]
pub struct QuoteFilter {
    /// Returns only quotes with this status.
    pub status: Option<QuoteStatus>,
}

impl Filter<Quote> for QuoteFilter {
    fn none() -> Self {
        Self { status: None }
    }
    fn matches(&self, row: &Quote) -> bool {
        self.status.is_none_or(|status| status == row.status)
    }
}

/// The `line_items` of a new quote: at most 500 objects, which are checked and then dropped (`docs/contract.md`,
/// "Quotes").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineItems;

impl FromJson for LineItems {
    fn from_json(json: Json) -> Result<Self, Issue> {
        let items = json.into_array()?;
        if items.len() > MAX_LINE_ITEMS {
            return Err(Issue::new(FieldCode::TooLong, format!("must have at most {MAX_LINE_ITEMS} items")));
        }
        match items.iter().position(|item| !matches!(item, Json::Object(_))) {
            Some(at) => Err(Issue::new(FieldCode::InvalidType, "must be an object").at(at.to_string())),
            None => Ok(Self),
        }
    }
}

/// A client sends none, as the service keeps none.
impl Serialize for LineItems {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(std::iter::empty::<()>())
    }
}

impl schemars::JsonSchema for LineItems {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LineItems".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let item = generator.subschema_for::<LineItem>();
        schemars::json_schema!({ "type": "array", "items": item, "maxItems": MAX_LINE_ITEMS })
    }
}

/// A line of a new quote, which has a schema of its own so that generated clients name it.
struct LineItem;

impl schemars::JsonSchema for LineItem {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LineItem".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object", "description": "A line of the offer, with any members." })
    }
}

/// Converts a total to an amount of the currency.
fn total_in(total: Decimal, currency: Currency) -> Result<Amount, Error> {
    total.to_amount(currency.scale()).map_err(|error| Issue::from(error).on("total"))
}

#[async_trait]
impl Create for Quote {
    type Input = QuoteCreate;

    async fn build(tx: &mut dyn Tx, new: NewRecord, input: QuoteCreate) -> Result<Self, Error> {
        let tenant = tenants::get(tx, new.tenant_id).await?;
        let currency = tenant.currency_or(input.currency)?;
        let total = total_in(input.total, currency)?;
        contacts::referenced(tx, new.tenant_id, input.contact_id).await?;
        let today = tenant.time_zone.date_at(WriteTime::new(tx, new.now).wall_clock);
        let valid_until = input.valid_until.map_or(today.plus_days(DEFAULT_VALIDITY_DAYS), |sent| sent.0);
        Ok(Self {
            id: new.id.into(),
            quote_number: tenants::next_number(tx, new.tenant_id, NumberKind::Quote).await?,
            contact_id: Some(input.contact_id),
            status: QuoteStatus::Draft,
            issue_date: Some(today),
            valid_until: Some(valid_until),
            total,
            currency,
            created_at: new.now,
            updated_at: new.now,
        })
    }

    fn created_events(&self) -> Vec<EventKind> {
        vec![EventKind::QuoteCreated]
    }
}

#[async_trait]
impl Update for Quote {
    type Input = QuoteUpdate;

    fn apply(&mut self, change: QuoteUpdate, _at: WriteTime) -> Result<(), Error> {
        if let Patch::Set(total) = change.total {
            self.total = total_in(total, self.currency)?;
        }
        if let Patch::Set(sent) = change.valid_until {
            self.valid_until = Some(sent.0);
        }
        change.apply_to(self);
        Ok(())
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }

    fn changed_events(&self, before: &Self) -> Vec<EventKind> {
        let mut events = Vec::with_capacity(2);
        if self.status != before.status {
            match self.status {
                QuoteStatus::Accepted => events.push(EventKind::QuoteAccepted),
                QuoteStatus::Declined => events.push(EventKind::QuoteDeclined),
                _ => {}
            }
        }
        events.push(EventKind::QuoteUpdated);
        events
    }
}

impl Quote {
    /// Returns whether the customer can accept or decline the offer: it was sent, and was neither accepted nor declined.
    pub fn awaits_decision(&self) -> bool {
        matches!(self.status, QuoteStatus::Sent | QuoteStatus::Viewed)
    }
}

/// Records that the customer accepts an offer. Fires `quote.accepted`, then `quote.updated`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] if the quote is neither sent nor viewed, or if `valid_until` is before
/// today in the tenant's time zone.
pub async fn accept(tx: &mut dyn Tx, tenant: TenantId, id: QuoteId) -> Result<Quote, Error> {
    let now = advance_clock(tx, tenant).await?;
    let quote = awaiting_decision(tx, tenant, id, "accepted").await?;
    let today = tenants::get(tx, tenant).await?.time_zone.date_at(WriteTime::new(tx, now).wall_clock);
    if let Some(day) = quote.valid_until.filter(|day| *day < today) {
        let text = format!("{} held until {day}; it cannot be accepted.", quote.quote_number);
        return Err(Error::NotAllowed(text));
    }
    set_status(tx, tenant, id, QuoteStatus::Accepted).await
}

/// Records that the customer declines an offer, whether or not it still holds. Fires `quote.declined`, then
/// `quote.updated`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] if the quote is neither sent nor viewed.
pub async fn decline(tx: &mut dyn Tx, tenant: TenantId, id: QuoteId) -> Result<Quote, Error> {
    advance_clock(tx, tenant).await?;
    awaiting_decision(tx, tenant, id, "declined").await?;
    set_status(tx, tenant, id, QuoteStatus::Declined).await
}

/// Returns the quote if the customer can decide on it. `step` is what the error calls the decision.
async fn awaiting_decision(tx: &mut dyn Tx, tenant: TenantId, id: QuoteId, step: &str) -> Result<Quote, Error> {
    let quote: Quote = crud::get(tx, tenant, id).await?;
    if quote.awaits_decision() {
        return Ok(quote);
    }
    Err(Error::NotAllowed(format!("{} is {}; it cannot be {step}.", quote.quote_number, quote.status)))
}

async fn set_status(tx: &mut dyn Tx, tenant: TenantId, id: QuoteId, status: QuoteStatus) -> Result<Quote, Error> {
    let change = QuoteUpdate { status: Patch::Set(status), total: Patch::Keep, valid_until: Patch::Keep };
    crud::update(tx, tenant, id, change).await
}
