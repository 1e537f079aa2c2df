//! The history of the sample account: its records are created and changed, and its deliveries are sent, at times in the
//! past. All of it goes through the rules that requests and deliveries go through, under a clock that was set back.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::{Value, json};
use svc_core::accounts::actor::Actor;
use svc_core::accounts::keys::{self, KeyCreate, KeyId};
use svc_core::accounts::tenants::{self, Tenant};
use svc_core::error::Error;
use svc_core::requests::{ApiRequest, MAX_AGE};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::{self, InvoiceCreate, OverduePosition, PaymentCreate};
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::resources::{Create, Update, crud, kinds};
use svc_core::store::{KeyUse, Tx};
use svc_core::values::{Id, RecordKind, TenantId, Text, Timestamp};
use svc_core::webhooks::engine::{self, AttemptResult, Batch, InFlight, Policy};
use svc_core::webhooks::statistics::AttemptCounter;
use uuid::Uuid;

use super::clock::DemoClock;
use super::samples::{Action, Samples, Step};
use super::{input, receivers};

/// The person who writes and sends invoices.
const OFFICE: &str = "office@example.com";
/// The number of rows that one statement writes.
const ROWS: usize = 250;
/// The number of polls between two steps at most.
const MAX_POLLS: usize = 200;
/// The number of events that a step fires at most.
const MAX_EVENTS: u32 = 10;

/// Creates the account with its endpoints and all its records. With a clock, everything happens when it would have happened,
/// and deliveries are sent to the endpoints. Without one, everything happens now, and the deliveries stay to be sent.
pub(super) async fn create(
    tx: &mut dyn Tx,
    samples: &Samples,
    clock: Option<&DemoClock>,
    endpoints: Option<&str>,
) -> Result<Tenant, Error> {
    if let Some(clock) = clock {
        clock.set(samples.begin());
    }
    let tenant = tenants::create(tx, samples.tenant.clone()).await?;
    let settings = samples.settings.clone();
    let tenant = tenants::update(tx, tenant.id.0, |tenant| settings.apply(tenant)).await?;
    if let Some(url) = endpoints {
        receivers::subscribe(tx, tenant.id, url).await?;
    }
    let mut history = History {
        samples,
        tenant: tenant.id,
        ids: HashMap::new(),
        website: create_key(tx, tenant.id, "Website").await?,
        office: create_key(tx, tenant.id, "Back office").await?,
    };
    let Some(clock) = clock else {
        for step in samples.timeline(false) {
            history.apply(tx, &step.action).await?;
        }
        return Ok(tenant);
    };
    let mut sender = Sender::new(tenant.id, clock, samples.calendar.now);
    let mut requests = Vec::new();
    for step in samples.timeline(true) {
        sender.send_until(tx, step.at).await?;
        clock.set(step.at);
        requests.extend(history.request(tx, &step).await?);
    }
    sender.send_until(tx, samples.calendar.now).await?;
    // The sender of the server delivers this one: the first webhook that is really sent.
    update::<Job>(tx, tenant.id, history.id(RecordKind::Job, 5), &json!({ "priority": "urgent" })).await?;
    for counts in sender.counter.take().chunks(ROWS) {
        tx.add_attempt_counts(counts).await?;
    }
    for requests in requests.chunks(ROWS) {
        tx.insert_requests(requests).await?;
    }
    let used =
        |key_id| requests.iter().rev().find(|request| request.key_id == key_id).map(|request| request.started_at);
    for key_id in [history.website, history.office] {
        if let Some(used_at) = used(key_id) {
            tx.record_key_uses(&[KeyUse { key_id, used_at }]).await?;
        }
    }
    Ok(tenant)
}

async fn create_key(tx: &mut dyn Tx, tenant: TenantId, name: &str) -> Result<KeyId, Error> {
    let input = KeyCreate { name: Some(name.to_owned()), write: true, expires_in: None, signed: false };
    Ok(keys::create(tx, tenant, input).await?.key.id)
}

/// Applies the steps of the samples.
struct History<'s> {
    samples: &'s Samples,
    tenant: TenantId,
    /// The ids of the records that were created.
    ids: HashMap<(RecordKind, usize), Uuid>,
    /// The key that makes contacts and bookings.
    website: KeyId,
    /// The key that makes everything else.
    office: KeyId,
}

impl History<'_> {
    /// Applies a step as a request with a key, and returns the entry of the request log if it is kept that long.
    async fn request(&mut self, tx: &mut dyn Tx, step: &Step) -> Result<Option<ApiRequest>, Error> {
        let key_id = match &step.action {
            Action::Create(RecordKind::Contact | RecordKind::Booking, _)
            | Action::Update(RecordKind::Contact | RecordKind::Booking, ..) => self.website,
            Action::Read(path, ..) if path.contains("bookings") => self.website,
            _ => self.office,
        };
        tx.act_as(match step.action {
            Action::CheckOverdue => Actor::System,
            // The public API reads invoices alone.
            Action::Create(RecordKind::Invoice, _) | Action::Invoice(..) => Actor::Dashboard(OFFICE.to_owned()),
            _ => Actor::Key(key_id),
        });
        self.apply(tx, &step.action).await?;
        let is_kept = step.at > self.samples.calendar.now.minus(MAX_AGE);
        let Some((method, path, status, code)) = self.head(&step.action).filter(|_| is_kept) else { return Ok(None) };
        let written = match step.action {
            Action::Read(..) => Vec::new(),
            _ => tx.events_after(self.tenant, step.at.minus(Duration::from_micros(1)), MAX_EVENTS).await?,
        };
        let took = 1_800 + u64::from(step.at.as_micros().unsigned_abs() as u32 % 7_000) + 900 * written.len() as u64;
        Ok(Some(ApiRequest {
            id: tx.env().id(step.at),
            tenant_id: self.tenant,
            request_id: tx.env().id::<Uuid>(step.at).to_string(),
            key_id,
            method: method.to_owned(),
            path,
            query: None,
            status,
            code: code.map(str::to_owned),
            failing_fields: (code == Some("validation_failed")).then(|| "limit out_of_range".to_owned()),
            started_at: step.at,
            duration_us: took,
            events: u32::try_from(written.len()).unwrap_or(MAX_EVENTS),
            first_event_id: written.first().map(|event| event.id),
            last_event_id: written.last().map(|event| event.id),
        }))
    }

    /// Returns the method, the path, the status and the error of the request that makes a change.
    fn head(&self, action: &Action) -> Option<(&'static str, String, u16, Option<&'static str>)> {
        // The public API reads invoices alone.
        let path =
            |kind: &RecordKind| (*kind != RecordKind::Invoice).then(|| format!("/api/v1/{}", kinds::collection(*kind)));
        Some(match action {
            Action::Create(kind, _) => ("POST", path(kind)?, 201, None),
            Action::Update(kind, n, _) => ("PATCH", format!("{}/{}", path(kind)?, self.id(*kind, *n)), 200, None),
            Action::Read(path, status, code) => ("GET", (*path).to_owned(), *status, *code),
            Action::Invoice(..) | Action::CheckOverdue | Action::DisableEndpoints => return None,
        })
    }

    fn id(&self, kind: RecordKind, n: usize) -> Uuid {
        self.ids.get(&(kind, n)).copied().unwrap_or_default()
    }

    async fn apply(&mut self, tx: &mut dyn Tx, action: &Action) -> Result<(), Error> {
        let tenant = self.tenant;
        match action {
            Action::Create(kind, n) => {
                let mut body = self.samples.body(*kind, *n);
                if let Some(contact) = self.samples.contact_of(*kind, *n) {
                    body.insert("contact_id".to_owned(), json!(self.id(RecordKind::Contact, contact)));
                }
                let body = body.into();
                let id = match kind {
                    RecordKind::Contact => create_record::<Contact>(tx, tenant, &body).await?,
                    RecordKind::Quote => create_record::<Quote>(tx, tenant, &body).await?,
                    RecordKind::Booking => create_record::<Booking>(tx, tenant, &body).await?,
                    RecordKind::Job => create_record::<Job>(tx, tenant, &body).await?,
                    RecordKind::Invoice => {
                        invoices::create(tx, tenant, input::<InvoiceCreate>(&body)?).await?.id.uuid()
                    }
                };
                self.ids.insert((*kind, *n), id);
            }
            Action::Update(kind, n, change) => {
                let id = self.id(*kind, *n);
                match kind {
                    RecordKind::Contact => update::<Contact>(tx, tenant, id, change).await?,
                    RecordKind::Quote => update::<Quote>(tx, tenant, id, change).await?,
                    RecordKind::Booking => update::<Booking>(tx, tenant, id, change).await?,
                    RecordKind::Job => update::<Job>(tx, tenant, id, change).await?,
                    RecordKind::Invoice => {}
                }
            }
            Action::Invoice(n, step) => {
                let id = self.id(RecordKind::Invoice, *n).into();
                match *step {
                    "send" => invoices::send(tx, tenant, id).await?,
                    "view" => invoices::view(tx, tenant, id).await?,
                    "void" => invoices::void(tx, tenant, id).await?,
                    "resend" => invoices::resend(tx, tenant, id).await?,
                    _ => invoices::pay(tx, tenant, id, paid_by(*n)).await?,
                };
            }
            Action::CheckOverdue => drop(invoices::overdue(tx, tenant, OverduePosition::default()).await?),
            Action::DisableEndpoints => {
                // What is on its way when an endpoint is disabled is held.
                for n in 0..3 {
                    update::<Job>(tx, tenant, self.id(RecordKind::Job, n), &json!({ "priority": "low" })).await?;
                }
                receivers::disable(tx, tenant).await?;
            }
            Action::Read(..) => {}
        }
        Ok(())
    }
}

/// Returns a payment of all that is left of the invoice with this number: the customers pay in two ways, in turns.
fn paid_by(n: usize) -> PaymentCreate {
    let method = if n.is_multiple_of(2) { "bank transfer" } else { "card" };
    PaymentCreate { method: Text::parse(method).ok(), ..PaymentCreate::default() }
}

async fn create_record<R: Create>(tx: &mut dyn Tx, tenant: TenantId, body: &Value) -> Result<Uuid, Error> {
    Ok(crud::create::<R>(tx, tenant, input(body)?).await?.id().uuid())
}

async fn update<R: Update>(tx: &mut dyn Tx, tenant: TenantId, id: Uuid, change: &Value) -> Result<(), Error> {
    crud::update::<R>(tx, tenant, Id::from(id), input(change)?).await?;
    Ok(())
}

/// Makes the delivery attempts of the history, with the responses that the endpoints would have sent.
struct Sender<'c> {
    tenant: TenantId,
    clock: &'c DemoClock,
    /// The end of the history.
    end: Timestamp,
    now: Timestamp,
    policy: Policy,
    in_flight: InFlight,
    counter: AttemptCounter,
    attempts: u32,
}

impl<'c> Sender<'c> {
    fn new(tenant: TenantId, clock: &'c DemoClock, end: Timestamp) -> Self {
        Self {
            tenant,
            clock,
            end,
            now: Timestamp::default(),
            policy: Policy::default(),
            in_flight: InFlight::default(),
            counter: AttemptCounter::default(),
            attempts: 0,
        }
    }

    /// Makes all attempts that are due before a time.
    async fn send_until(&mut self, tx: &mut dyn Tx, until: Timestamp) -> Result<(), Error> {
        self.now = tx.env().now();
        let mut outcomes: Vec<AttemptResult> = Vec::new();
        for _ in 0..MAX_POLLS {
            let mut due = engine::poll(tx).await?;
            due.exclude_tenants(|tenant| tenant != self.tenant);
            if due.endpoints.is_empty() && outcomes.is_empty() {
                match due.next_due_at().filter(|at| *at < until) {
                    Some(at) => self.set_clock(at),
                    None => return Ok(()),
                }
                continue;
            }
            let ended = if outcomes.is_empty() {
                BTreeMap::new()
            } else {
                BTreeMap::from([(self.tenant, std::mem::take(&mut outcomes))])
            };
            let batches = self.in_flight.plan(&self.policy, &due, ended);
            for batch in batches {
                outcomes.extend(self.run(tx, &batch).await?);
            }
            let longest = outcomes.iter().map(|outcome| outcome.log.duration_ms).max().unwrap_or(1);
            let ended_at = self.now.checked_add(Duration::from_millis(longest.into())).unwrap_or(self.now);
            self.set_clock(ended_at.min(self.end));
        }
        Ok(())
    }

    fn set_clock(&mut self, now: Timestamp) {
        self.now = now;
        self.clock.set(now);
    }

    async fn run(&mut self, tx: &mut dyn Tx, batch: &Batch) -> Result<Vec<AttemptResult>, Error> {
        let claimed = engine::run_batch(tx, &self.policy, batch).await?.attempts;
        self.in_flight.batch_finished(batch, &claimed);
        let mut outcomes = Vec::new();
        for attempt in claimed {
            self.attempts += 1;
            let minutes_ago = self.end.since(self.now).as_secs() / 60;
            let log = receivers::past_response(&attempt, self.now, minutes_ago, self.attempts);
            self.counter.add(self.tenant, attempt.delivery.subscription_id, &log);
            let outcome = AttemptResult { delivery: attempt.delivery, log, retry_after: None };
            self.in_flight.attempt_finished(&outcome);
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }
}
