//! Quotes: offers with a price (contract, "Quote").

use async_trait::async_trait;
use serde::Serialize;
use uuid::Uuid;

use crate::accounts::tenants::{self, NumberKind};
use crate::error::{Error, FieldCode, Issue};
use crate::input::json::Json;
use crate::input::{FromJson, input, record};
use crate::resources::contacts;
use crate::resources::crud::{self, Create, Filter, NewRecord, Update, advance_clock, resource};
use crate::store::Tx;
use crate::values::EventKind;
use crate::values::{Amount, Currency, Date, DateOrTime, Decimal, Patch, TenantId, Timestamp, text_enum};

/// Days that a quote is valid when its end is not sent, counted from today in the tenant's time zone.
pub const DEFAULT_VALIDITY_DAYS: i64 = 30;

const MAX_LINE_ITEMS: usize = 500;

text_enum! {
    /// State of a quote. A PATCH may set any; what the client does has its rules: [`accept`], [`decline`].
    pub enum QuoteStatus {
        Draft = "draft",
        Sent = "sent",
        Viewed = "viewed",
        Accepted = "accepted",
        Declined = "declined",
        Expired = "expired",
        Converted = "converted",
    }
}

record! {
    /// An offer with a price.
    pub struct Quote {
        /// Identifier.
        pub id: Uuid,
        /// `QUO-0001`, counted per account without gaps.
        pub quote_number: String,
        /// Whom it is for.
        pub contact_id: Option<Uuid>,
        /// State.
        pub status: QuoteStatus,
        /// Day of issue.
        pub issue_date: Option<Date>,
        /// Last day on which it holds.
        pub valid_until: Option<Date>,
        /// Price, exact, with no more decimals than the currency has.
        pub total: Amount,
        /// Currency of the price.
        pub currency: Currency,
        /// When it was created.
        pub created_at: Timestamp,
        /// When it was last changed.
        pub updated_at: Timestamp,
    }
}

resource!(Quote, "quotes", QuoteFilter);

input! {
    /// A new quote, which is a draft.
    pub struct QuoteCreate for Quote {
        /// A live contact of the account.
        contact_id: Uuid,
        /// Price, with no more decimals than the currency has.
        total: Decimal,
        /// Active currency of ISO 4217. When left out it is the account's own: AUD, unless the account has set another.
        currency: Option<Currency> = "AUD",
        /// Last day on which it holds, as a date-time (its calendar date counts as written) or a date; 30 days from today when left out.
        valid_until: Option<DateOrTime>,
        /// Accepted, checked to be objects, and not kept.
        line_items: Patch<LineItems>,
    }
}

input! {
    /// Changes to a quote: what is left out stays.
    pub struct QuoteUpdate for Quote, patch true {
        /// State; any may follow any other.
        status: Patch<QuoteStatus>,
        /// Price, with no more decimals than the quote's currency has.
        total: Patch<Decimal>,
        /// Last day on which it holds, as a date-time (its calendar date counts as written) or a date.
        valid_until: Patch<DateOrTime>,
    }
}

input! {
    /// Filters of the list of quotes.
    pub struct QuoteFilter, derive Serialize {
        /// Only quotes in this state.
        status: Option<QuoteStatus>,
    }
}

impl Filter<Quote> for QuoteFilter {
    fn none() -> Self {
        Self { status: None }
    }
    fn matches(&self, row: &Quote) -> bool {
        self.status.is_none_or(|status| status == row.status)
    }
}

/// Up to 500 objects, which are checked and then dropped (contract, "QuoteCreate").
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

impl schemars::JsonSchema for LineItems {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LineItems".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "array", "items": { "type": "object" }, "maxItems": MAX_LINE_ITEMS })
    }
}

fn total_in(total: Decimal, currency: Currency) -> Result<Amount, Error> {
    total.to_amount(currency.scale()).map_err(|error| Issue::from(error).on("total"))
}

#[async_trait]
impl Create for Quote {
    type Input = QuoteCreate;

    async fn build(tx: &mut dyn Tx, new: NewRecord, input: QuoteCreate) -> Result<Self, Error> {
        let tenant = tenants::get(tx, new.tenant_id).await?;
        let currency = input.currency.unwrap_or(tenant.currency);
        let total = total_in(input.total, currency)?;
        contacts::referenced(tx, new.tenant_id, input.contact_id).await?;
        let today = tenant.time_zone.date_at(new.now);
        let valid_until = input.valid_until.map_or(today.plus_days(DEFAULT_VALIDITY_DAYS), |sent| sent.0);
        Ok(Self {
            id: new.id,
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

    fn apply(&mut self, change: QuoteUpdate, _now: Timestamp) -> Result<(), Error> {
        change.status.apply(&mut self.status);
        if let Patch::Set(total) = change.total {
            self.total = total_in(total, self.currency)?;
        }
        if let Patch::Set(sent) = change.valid_until {
            self.valid_until = Some(sent.0);
        }
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

/// The client accepts an offer. Fires `quote.accepted`, then `quote.updated`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] unless it is sent or viewed, or when it held until a day before today
/// in the tenant's time zone.
pub async fn accept(tx: &mut dyn Tx, tenant: TenantId, id: Uuid) -> Result<Quote, Error> {
    let now = advance_clock(tx, tenant).await?;
    let quote = open(tx, tenant, id, "accepted").await?;
    let today = tenants::get(tx, tenant).await?.time_zone.date_at(now);
    if let Some(day) = quote.valid_until.filter(|day| *day < today) {
        let text = format!("{} held until {day}; it cannot be accepted.", quote.quote_number);
        return Err(Error::NotAllowed(text));
    }
    answer(tx, tenant, id, QuoteStatus::Accepted).await
}

/// The client declines an offer, also one that holds no longer. Fires `quote.declined`, then `quote.updated`.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] unless it is sent or viewed.
pub async fn decline(tx: &mut dyn Tx, tenant: TenantId, id: Uuid) -> Result<Quote, Error> {
    advance_clock(tx, tenant).await?;
    open(tx, tenant, id, "declined").await?;
    answer(tx, tenant, id, QuoteStatus::Declined).await
}

/// The quote, if the client has it and has not answered yet.
async fn open(tx: &mut dyn Tx, tenant: TenantId, id: Uuid, step: &str) -> Result<Quote, Error> {
    let quote: Quote = crud::get(tx, tenant, id).await?;
    if matches!(quote.status, QuoteStatus::Sent | QuoteStatus::Viewed) {
        return Ok(quote);
    }
    Err(Error::NotAllowed(format!("{} is {}; it cannot be {step}.", quote.quote_number, quote.status)))
}

async fn answer(tx: &mut dyn Tx, tenant: TenantId, id: Uuid, status: QuoteStatus) -> Result<Quote, Error> {
    let change = QuoteUpdate { status: Patch::Set(status), total: Patch::Keep, valid_until: Patch::Keep };
    crud::update(tx, tenant, id, change).await
}
