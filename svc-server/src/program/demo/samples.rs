//! The sample records, and when each of them was created and changed.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use svc_core::accounts::tenants::{Tenant, TenantCreate};
use svc_core::values::{Currency, Note, RecordKind, Text, TimeZone, Timestamp};

use super::DemoError;
use super::calendar::{Calendar, minus, plus};

const TENANT: &str = include_str!("../../../demo/tenant.json");
const CONTACTS: &str = include_str!("../../../demo/contacts.json");
const INVOICES: &str = include_str!("../../../demo/invoices.json");
const QUOTES: &str = include_str!("../../../demo/quotes.json");
const BOOKINGS: &str = include_str!("../../../demo/bookings.json");
const JOBS: &str = include_str!("../../../demo/jobs.json");

const HOUR: u64 = 60;
const DAY: u64 = 24 * HOUR;
/// How long ago the account was created, in minutes: a little less than events are kept by default.
const AGE: u64 = 30 * DAY - 3 * HOUR;
/// The number of changes in each hour of the last day, by the hour of the time zone of the account.
const CHANGES: [u64; 24] = [1, 0, 0, 1, 0, 1, 2, 4, 6, 8, 9, 8, 5, 7, 9, 8, 6, 4, 3, 2, 2, 1, 1, 1];
/// Lines that are added to the notes of a booking.
const LINES: [&str; 3] = ["Rang to confirm.", "Asked for a text message on the way.", "Prefers to pay by card."];

/// The action of a step. Records are named by their positions in the samples.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Create(RecordKind, usize),
    Update(RecordKind, usize, Value),
    /// An operation on an invoice, such as `send`.
    Invoice(usize, &'static str),
    /// Marks the invoices that are overdue.
    CheckOverdue,
    /// Disables the endpoints that are to be disabled, before what is on its way to them is sent.
    DisableEndpoints,
    /// A request that changes nothing: its path, its status and the code of its error.
    Read(&'static str, u16, Option<&'static str>),
}

/// Something that happened in the account.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) at: Timestamp,
    pub(super) action: Action,
}

#[derive(Deserialize)]
struct DemoTenant {
    name: String,
    time_zone: String,
    currency: String,
    #[serde(flatten)]
    settings: DemoSettings,
}

/// The settings that invoices and quotes show.
#[derive(Clone, Deserialize)]
pub(super) struct DemoSettings {
    address: Note<500>,
    tax_number: Text<100>,
    days_until_due: u32,
    payment_details: Note<500>,
}

impl DemoSettings {
    pub(super) fn apply(self, tenant: &mut Tenant) {
        tenant.address = Some(self.address);
        tenant.tax_number = Some(self.tax_number);
        tenant.days_until_due = Some(self.days_until_due);
        tenant.payment_details = Some(self.payment_details);
    }
}

#[derive(Deserialize)]
struct DemoInvoice {
    contact: String,
    total: Value,
    currency: String,
    issue_in_days: i64,
    due_in_days: i64,
    steps: Vec<String>,
}

#[derive(Deserialize)]
struct DemoQuote {
    contact: String,
    total: Value,
    status: String,
    valid_in_days: i64,
}

#[derive(Deserialize)]
struct DemoBooking {
    contact: String,
    service_name: String,
    workday: i64,
    time: String,
    minutes: u64,
    status: String,
    notes: Option<String>,
}

#[derive(Deserialize)]
struct DemoJob {
    contact: Option<String>,
    status: String,
    workday: Option<i64>,
    time: Option<String>,
    until_workday: Option<i64>,
    until: Option<String>,
    #[serde(flatten)]
    details: Map<String, Value>,
}

impl DemoJob {
    /// Returns when the work is planned to begin and to end.
    fn schedule(&self, calendar: &Calendar) -> Option<(Timestamp, Timestamp)> {
        let begin = calendar.at_workday(self.workday?, self.time.as_deref()?);
        Some((begin, calendar.at_workday(self.until_workday?, self.until.as_deref()?)))
    }
}

/// The sample data.
pub(super) struct Samples {
    pub(super) tenant: TenantCreate,
    pub(super) settings: DemoSettings,
    pub(super) calendar: Calendar,
    contacts: Vec<Map<String, Value>>,
    quotes: Vec<DemoQuote>,
    bookings: Vec<DemoBooking>,
    jobs: Vec<DemoJob>,
    invoices: Vec<DemoInvoice>,
}

impl Samples {
    pub(super) fn read(now: Timestamp) -> Result<Self, DemoError> {
        let DemoTenant { name, time_zone, currency, settings } = serde_json::from_str(TENANT)?;
        let tenant = TenantCreate {
            time_zone: TimeZone::parse(&time_zone).map_err(|issue| issue.on("time_zone"))?,
            currency: Currency::parse(&currency).map_err(|issue| issue.on("currency"))?,
            ..TenantCreate::named(&name)
        };
        Ok(Self {
            calendar: Calendar::new(&tenant.time_zone, now),
            tenant,
            settings,
            contacts: serde_json::from_str(CONTACTS)?,
            quotes: serde_json::from_str(QUOTES)?,
            bookings: serde_json::from_str(BOOKINGS)?,
            jobs: serde_json::from_str(JOBS)?,
            invoices: serde_json::from_str(INVOICES)?,
        })
    }

    /// Returns when the account was created.
    pub(super) fn begin(&self) -> Timestamp {
        minus(self.calendar.now, AGE)
    }

    /// Returns the position of a contact.
    fn contact(&self, name: &str) -> Option<usize> {
        self.contacts.iter().position(|row| row.get("ref").and_then(Value::as_str) == Some(name))
    }

    /// Returns the position of the contact that a record refers to.
    pub(super) fn contact_of(&self, kind: RecordKind, n: usize) -> Option<usize> {
        let name = match kind {
            RecordKind::Contact => None,
            RecordKind::Quote => self.quotes.get(n).map(|quote| &quote.contact),
            RecordKind::Booking => self.bookings.get(n).map(|booking| &booking.contact),
            RecordKind::Job => self.jobs.get(n).and_then(|job| job.contact.as_ref()),
            RecordKind::Invoice => self.invoices.get(n).map(|invoice| &invoice.contact),
        };
        self.contact(name?)
    }

    /// Returns the body that creates a record, without its contact.
    pub(super) fn body(&self, kind: RecordKind, n: usize) -> Map<String, Value> {
        let (calendar, today) = (&self.calendar, self.calendar.today);
        let body = match kind {
            RecordKind::Contact => {
                let mut row = self.contacts[n].clone();
                row.remove("ref");
                return row;
            }
            RecordKind::Quote => {
                let quote = &self.quotes[n];
                json!({ "total": quote.total, "valid_until": today.plus_days(quote.valid_in_days) })
            }
            RecordKind::Booking => {
                let booking = &self.bookings[n];
                let begin = calendar.at_workday(booking.workday, &booking.time);
                json!({
                    "service_name": booking.service_name,
                    "notes": booking.notes,
                    "start_time": begin,
                    "end_time": plus(begin, booking.minutes),
                })
            }
            RecordKind::Job => {
                let job = &self.jobs[n];
                let mut body = job.details.clone();
                if let Some((begin, end)) = job.schedule(calendar) {
                    body.insert("scheduled_start".to_owned(), json!(begin));
                    body.insert("scheduled_end".to_owned(), json!(end));
                }
                return body;
            }
            RecordKind::Invoice => {
                let invoice = &self.invoices[n];
                json!({
                    "total": invoice.total,
                    "currency": invoice.currency,
                    "issue_date": today.plus_days(invoice.issue_in_days),
                    "due_date": today.plus_days(invoice.due_in_days),
                })
            }
        };
        if let Value::Object(body) = body { body } else { Map::new() }
    }

    /// Returns all that happened in the account, oldest first. No two steps have the same time.
    ///
    /// `with_routine` adds what happens in an account day by day: changes of records, and requests that only read.
    pub(super) fn timeline(&self, with_routine: bool) -> Vec<Step> {
        let mut timeline = Timeline::new(self);
        self.add_quotes(&mut timeline);
        self.add_bookings(&mut timeline);
        self.add_jobs(&mut timeline);
        self.add_invoices(&mut timeline);
        self.add_contacts(&mut timeline);
        let (now, calendar) = (self.calendar.now, &self.calendar);
        if with_routine {
            // Records older than the account are entered in its first hours, and an invoice that is overdue cannot be viewed.
            let entered = plus(timeline.begin, DAY);
            for at in (-29..=0).map(|day| calendar.at(day, 1)).filter(|at| *at > entered) {
                timeline.add(at, Action::CheckOverdue);
            }
            self.add_routine(&mut timeline);
        }
        timeline.add(minus(now, 11), Action::CheckOverdue);
        timeline.add(minus(now, 26 * HOUR), Action::DisableEndpoints);
        timeline.sorted()
    }

    fn add_contacts(&self, timeline: &mut Timeline) {
        for n in 0..self.contacts.len() {
            let nth = n as u64;
            let first = timeline.first_uses.get(&n).map_or(timeline.latest, |at| minus(*at, 20 * HOUR));
            let at = first.min(plus(timeline.begin, nth * 26 * HOUR)).max(plus(timeline.begin, nth + 1));
            timeline.create(RecordKind::Contact, n, at);
        }
    }

    fn add_quotes(&self, timeline: &mut Timeline) {
        for (n, quote) in self.quotes.iter().enumerate() {
            let created = self.calendar.at(quote.valid_in_days - 30, 11 * HOUR);
            let statuses: &[&str] = match quote.status.as_str() {
                "draft" => &[],
                "sent" => &["sent"],
                "viewed" => &["sent", "viewed"],
                "accepted" => &["sent", "viewed", "accepted"],
                "declined" => &["sent", "viewed", "declined"],
                "expired" => &["sent", "expired"],
                _ => &["sent", "viewed", "accepted", "converted"],
            };
            let mut at = timeline.create_for(RecordKind::Quote, n, self.contact(&quote.contact), created);
            for (status, days) in statuses.iter().zip([0, 1, 2, 3]) {
                let expires = self.calendar.at(quote.valid_in_days + 1, HOUR);
                let wanted = if *status == "expired" { expires } else { plus(created, days * DAY + 40) };
                at = timeline.then(at, wanted, Action::Update(RecordKind::Quote, n, json!({ "status": status })));
            }
        }
    }

    fn add_bookings(&self, timeline: &mut Timeline) {
        let now = self.calendar.now;
        let mut ahead = 0;
        for (n, booking) in self.bookings.iter().enumerate() {
            let begin = self.calendar.at_workday(booking.workday, &booking.time);
            let mut created = minus(begin, 4 * DAY);
            if begin > now {
                // Those ahead were made one after the other.
                ahead += 1;
                created = created.min(minus(now, 3 * HOUR * (9 - ahead.min(8))));
            }
            let at = timeline.create_for(RecordKind::Booking, n, self.contact(&booking.contact), created);
            let wanted = match booking.status.as_str() {
                "confirmed" => continue,
                "cancelled" => minus(begin, 20 * HOUR),
                _ => plus(begin, booking.minutes + 15),
            };
            timeline.then(at, wanted, Action::Update(RecordKind::Booking, n, json!({ "status": booking.status })));
        }
    }

    fn add_jobs(&self, timeline: &mut Timeline) {
        for (n, job) in self.jobs.iter().enumerate() {
            let schedule = job.schedule(&self.calendar);
            let (begin, end) = schedule.unwrap_or((self.calendar.now, self.calendar.now));
            let created = minus(begin, 6 * DAY);
            let contact = job.contact.as_deref().and_then(|name| self.contact(name));
            let at = timeline.create_for(RecordKind::Job, n, contact, created);
            let planned = ("scheduled", plus(created, 3 * HOUR));
            let statuses = match job.status.as_str() {
                "quoted" => vec![],
                "on_hold" => vec![("on_hold", plus(created, DAY))],
                "cancelled" => vec![planned, ("cancelled", minus(begin, 20 * HOUR))],
                "scheduled" => vec![planned],
                "in_progress" => vec![planned, ("in_progress", begin)],
                "completed" => vec![planned, ("in_progress", begin), ("completed", end)],
                _ => vec![planned, ("in_progress", begin), ("completed", end), ("invoiced", plus(end, DAY))],
            };
            statuses.into_iter().fold(at, |at, (status, wanted)| {
                timeline.then(at, wanted, Action::Update(RecordKind::Job, n, json!({ "status": status })))
            });
        }
    }

    fn add_invoices(&self, timeline: &mut Timeline) {
        let calendar = &self.calendar;
        for (n, invoice) in self.invoices.iter().enumerate() {
            let issued = calendar.at(invoice.issue_in_days, 10 * HOUR);
            let mut at = timeline.create_for(RecordKind::Invoice, n, self.contact(&invoice.contact), issued);
            for step in &invoice.steps {
                let (name, wanted) = match step.as_str() {
                    "send" => ("send", plus(issued, 10)),
                    "view" => ("view", plus(issued, DAY)),
                    "resend" => ("resend", plus(issued, 8 * DAY)),
                    "void" => ("void", plus(issued, 4 * DAY)),
                    // Some are paid in time, and some a day or two too late.
                    _ if invoice.due_in_days < 0 => {
                        ("pay", calendar.at(invoice.due_in_days + n as i64 % 4 - 1, 15 * HOUR))
                    }
                    _ => ("pay", plus(issued, 5 * DAY)),
                };
                at = timeline.then(at, wanted, Action::Invoice(n, name));
            }
        }
    }

    /// Adds two changes a day, and in the last day as many as in a busy account.
    fn add_routine(&self, timeline: &mut Timeline) {
        let (now, calendar) = (self.calendar.now, &self.calendar);
        let busy_since = minus(now, 25 * HOUR);
        let mut routine = Routine::default();
        for day in -29..=0 {
            for hour in 0..24 {
                let begin = calendar.at(day, hour * HOUR);
                let is_busy = begin >= busy_since;
                let count = match hour {
                    _ if is_busy => CHANGES[hour as usize],
                    9 | 14 => 1,
                    _ => 0,
                };
                for n in 0..count {
                    let at = plus(begin, 1 + n * HOUR / count);
                    if at < timeline.latest && at > plus(timeline.begin, DAY) {
                        let action = routine.next(self, timeline, at);
                        timeline.add(at, action);
                    }
                    if is_busy && at < timeline.latest {
                        timeline.add(plus(at, 2), routine.read());
                        timeline.add(plus(at, 4), routine.read());
                    }
                }
            }
        }
        for minutes in [50, 35, 20] {
            let at = minus(now, minutes);
            let action = routine.update_booking(self, timeline, at);
            timeline.add(at, action);
        }
    }
}

/// The steps, in the order in which they are added.
struct Timeline {
    begin: Timestamp,
    /// The time of the last step, some minutes ago.
    latest: Timestamp,
    steps: Vec<Step>,
    created: HashMap<(RecordKind, usize), Timestamp>,
    /// When a record was first created for a contact.
    first_uses: HashMap<usize, Timestamp>,
}

impl Timeline {
    fn new(samples: &Samples) -> Self {
        let (begin, latest) = (samples.begin(), minus(samples.calendar.now, 10));
        Self { begin, latest, steps: Vec::new(), created: HashMap::new(), first_uses: HashMap::new() }
    }

    fn add(&mut self, at: Timestamp, action: Action) {
        if at > self.begin {
            self.steps.push(Step { at: at.min(self.latest), action });
        }
    }

    fn create(&mut self, kind: RecordKind, n: usize, at: Timestamp) {
        self.created.insert((kind, n), at);
        self.add(at, Action::Create(kind, n));
    }

    /// Adds the creation of a record for a contact, and returns its time. A record older than the account was entered when the
    /// account was created.
    fn create_for(&mut self, kind: RecordKind, n: usize, contact: Option<usize>, at: Timestamp) -> Timestamp {
        let at = at.max(plus(self.begin, HOUR + self.created.len() as u64)).min(self.latest);
        if let Some(contact) = contact {
            let first = self.first_uses.entry(contact).or_insert(at);
            *first = at.min(*first);
        }
        self.create(kind, n, at);
        at
    }

    /// Adds a step of a record that comes after its step at `before`, and returns its time.
    fn then(&mut self, before: Timestamp, wanted: Timestamp, action: Action) -> Timestamp {
        let at = wanted.max(plus(before, 3)).min(self.latest);
        self.add(at, action);
        at
    }

    /// Returns the records that exist at a time.
    fn existing(&self, kind: RecordKind, at: Timestamp) -> Vec<usize> {
        let is_there = |known: RecordKind, created: Timestamp| known == kind && created < at;
        let mut found: Vec<usize> =
            self.created.iter().filter(|((known, _), at)| is_there(*known, **at)).map(|((_, n), _)| *n).collect();
        found.sort_unstable();
        found
    }

    fn sorted(mut self) -> Vec<Step> {
        self.steps.sort_by_key(|step| step.at);
        let mut last = self.begin;
        for (n, step) in self.steps.iter_mut().enumerate() {
            // Not everything happens at the beginning of a minute.
            let uneven = Timestamp::from_micros(step.at.as_micros() + n as i64 * 7_919_113 % 50_000_000);
            step.at = uneven.max(Timestamp::from_micros(last.as_micros() + 1_000_000));
            last = step.at;
        }
        self.steps
    }
}

/// Chooses what happens in an account day by day.
#[derive(Default)]
struct Routine {
    changes: usize,
    reads: usize,
    /// How often each record was changed.
    counts: HashMap<(RecordKind, usize), usize>,
}

impl Routine {
    fn next(&mut self, samples: &Samples, timeline: &Timeline, at: Timestamp) -> Action {
        self.changes += 1;
        match self.changes % 5 {
            1 | 4 => self.update_booking(samples, timeline, at),
            2 => self.update_job(samples, timeline, at),
            _ => self.update_contact(samples, timeline, at),
        }
    }

    /// Counts a change of a record, and returns how many there were before.
    fn count(&mut self, kind: RecordKind, n: usize) -> usize {
        let count = self.counts.entry((kind, n)).or_default();
        *count += 1;
        *count - 1
    }

    /// Writes the phone number of a contact in another way.
    fn update_contact(&mut self, samples: &Samples, timeline: &Timeline, at: Timestamp) -> Action {
        let existing = timeline.existing(RecordKind::Contact, at);
        let n = existing.get(self.changes * 7 % existing.len().max(1)).copied().unwrap_or_default();
        let phone = samples.contacts[n].get("phone").and_then(Value::as_str).unwrap_or_default();
        let international = format!("+61 {}", phone.replace(['(', ')'], "").trim_start_matches('0'));
        let phone = if self.count(RecordKind::Contact, n).is_multiple_of(2) { international } else { phone.to_owned() };
        Action::Update(RecordKind::Contact, n, json!({ "phone": phone }))
    }

    /// Adds a line to the notes of a booking that is ahead.
    fn update_booking(&mut self, samples: &Samples, timeline: &Timeline, at: Timestamp) -> Action {
        let begin = |n: &usize| {
            let booking = &samples.bookings[*n];
            samples.calendar.at_workday(booking.workday, &booking.time)
        };
        let mut ahead = timeline.existing(RecordKind::Booking, at);
        ahead.retain(|n| begin(n) > at);
        let Some(n) = ahead.get(self.changes % ahead.len().max(1)).copied() else {
            return self.update_contact(samples, timeline, at);
        };
        let line = LINES[self.count(RecordKind::Booking, n) % LINES.len()];
        let notes = match &samples.bookings[n].notes {
            Some(notes) => format!("{notes}\n{line}"),
            None => line.to_owned(),
        };
        Action::Update(RecordKind::Booking, n, json!({ "notes": notes }))
    }

    /// Books what was used on a job that is under way.
    fn update_job(&mut self, samples: &Samples, timeline: &Timeline, at: Timestamp) -> Action {
        let mut under_way = timeline.existing(RecordKind::Job, at);
        under_way.retain(|n| {
            samples.jobs[*n].schedule(&samples.calendar).is_some_and(|(begin, end)| begin < at && at < end)
        });
        let Some(n) = under_way.get(self.changes % under_way.len().max(1)).copied() else {
            return self.update_contact(samples, timeline, at);
        };
        let used = 420 + 185 * self.count(RecordKind::Job, n);
        Action::Update(RecordKind::Job, n, json!({ "actual_total": used }))
    }

    fn read(&mut self) -> Action {
        const READS: [&str; 5] =
            ["/api/v1/bookings", "/api/v1/contacts", "/api/v1/jobs", "/api/v1/bookings", "/api/v1/invoices"];
        self.reads += 1;
        match self.reads % 23 {
            7 => Action::Read("/api/v1/contacts/0195a3c8-1d2e-7f40-8a6b-2c3d4e5f6071", 404, Some("not_found")),
            16 => Action::Read("/api/v1/invoices", 400, Some("validation_failed")),
            n => Action::Read(READS[n % READS.len()], 200, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The demo starts at any time of the day: no check finds an invoice overdue between its steps, since an overdue invoice cannot be
    /// viewed.
    #[test]
    fn no_invoice_is_viewed_after_it_is_overdue() {
        let midnight = Timestamp::parse("2026-11-30T00:00:00Z").unwrap();
        for minute in (0..DAY).step_by(3) {
            let samples = Samples::read(plus(midnight, minute)).unwrap();
            let (today, zone) = (samples.calendar.today, &samples.tenant.time_zone);
            let (mut unpaid, mut overdue) = (HashSet::new(), HashSet::new());
            for Step { at, action } in samples.timeline(true) {
                match action {
                    Action::Invoice(n, "send") => drop(unpaid.insert(n)),
                    Action::Invoice(n, "view") => assert!(!overdue.contains(&n), "invoice {n} at {minute} minutes"),
                    Action::Invoice(n, "pay" | "void") => drop(unpaid.remove(&n)),
                    Action::CheckOverdue => {
                        let due = |n: &usize| today.plus_days(samples.invoices[*n].due_in_days);
                        overdue.extend(unpaid.iter().copied().filter(|n| due(n) < zone.date_at(at)));
                    }
                    _ => {}
                }
            }
        }
    }
}
