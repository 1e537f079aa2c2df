//! Reads every row through the reader that the service uses, and notes what must agree with other rows.

use std::collections::{BTreeMap, BTreeSet};

use svc_core::accounts::tenants::NumberKind;
use svc_core::error::StoreError;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::values::{Amount, Currency, TenantId, Timestamp};
use svc_core::webhooks::subscriptions::{EventHandling, WebhookSubscription};
use uuid::Uuid;

use super::{Finding, MOST, show, shown};
use crate::accounts::{audit, keys, tenants};
use crate::maintenance::tables::TableInfo;
use crate::maintenance::walk::{Cell, Walk, key_kinds};
use crate::sql::{Cells, Row, Sql};
use crate::table::Table;
use crate::webhooks::{deliveries, events};

/// What must agree with other rows.
#[derive(Default)]
pub(super) struct Notes {
    highest: BTreeMap<(TenantId, &'static str), u64>,
    counters: BTreeMap<(TenantId, &'static str), u64>,
    /// What subscriptions want, and what is looked up: tenant, kind, subscription, whether it is paused.
    wanted: BTreeSet<(TenantId, String, Uuid, bool)>,
    kinds: BTreeSet<(TenantId, String, Uuid, bool)>,
}

impl Notes {
    /// A number that the service may have given; others come from elsewhere and are not counted.
    fn number(&mut self, tenant: TenantId, kind: NumberKind, number: &str) {
        let digits = number.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix('-'));
        let Some(given) = digits.and_then(|digits| digits.parse::<u64>().ok()) else { return };
        // INV-00007 is not how seven is written, so it meets none that is counted.
        if number != format!("{kind}-{given:04}") {
            return;
        }
        let highest = self.highest.entry((tenant, kind.as_str())).or_default();
        *highest = given.max(*highest);
    }

    pub(super) fn compare(&self, findings: &mut Vec<Finding>) {
        for (of, highest) in &self.highest {
            let counter = self.counters.get(of).copied().unwrap_or_default();
            if counter < *highest {
                let problem = format!("it stands at {counter}, but {}-{highest:04} is in use", of.1);
                findings.push(Finding { table: "numbers", id: Some(format!("{} {}", of.0, of.1)), problem });
            }
        }
        let differ = |one: &BTreeSet<_>, other: &BTreeSet<_>, what: &str| -> Vec<Finding> {
            let differ =
                one.difference(other).take(MOST).map(|(_, kind, subscription, _): &(TenantId, String, Uuid, bool)| {
                    let id = Some(format!("{kind} {subscription}"));
                    Finding { table: "subscription_kinds", id, problem: what.to_owned() }
                });
            differ.collect()
        };
        findings.extend(differ(&self.wanted, &self.kinds, "the subscription wants this kind, but is not found by it"));
        findings.extend(differ(&self.kinds, &self.wanted, "the subscription does not want this kind in this way"));
    }
}

type Read = fn(&mut Cells<'_>, &mut Notes) -> Result<(), StoreError>;

/// How the rows of a table are read: their columns in the order in which the reader takes them.
fn reader(table: &TableInfo) -> (Vec<&'static str>, Read) {
    match table.name {
        "tenants" => (
            words("id name developer_access time_zone currency unique_contact_email created_at limits clock"),
            |cells, _| {
                tenants::read(cells)?;
                cells.take::<Timestamp>().map(drop)
            },
        ),
        "numbers" => (words("tenant_id kind last"), |cells, notes| {
            let (tenant, kind): (TenantId, NumberKind) = (cells.take()?, cells.take()?);
            notes.counters.insert((tenant, kind.as_str()), cells.take()?);
            Ok(())
        }),
        "api_keys" => (
            words(
                "id tenant_id name can_write prefix signing_secret created_at expires_at revoked_at last_used_at \
                 key_hash",
            ),
            |cells, _| {
                keys::read(cells)?;
                cells.take::<[u8; 32]>().map(drop)
            },
        ),
        "used_signatures" => (words("key_id mac expires_at"), |cells, _| {
            let (_, _): (Uuid, [u8; 32]) = (cells.take()?, cells.take()?);
            cells.take::<Timestamp>().map(drop)
        }),
        "idempotency" => (words("fingerprint status location etag body created_at tenant_id key"), |cells, _| {
            keys::read_recorded(cells)?;
            let (_, _): (TenantId, String) = (cells.take()?, cells.take()?);
            Ok(())
        }),
        "contacts" => of::<Contact>(|cells, _| resource::<Contact>(cells).map(drop)),
        "invoices" => of::<Invoice>(|cells, notes| {
            let (invoice, tenant) = resource::<Invoice>(cells)?;
            notes.number(tenant, NumberKind::Invoice, &invoice.invoice_number);
            Ok(())
        }),
        "payments" => (words("tenant_id id invoice_id amount currency paid_at"), |cells, _| {
            let (_, _, _): (TenantId, Uuid, Uuid) = (cells.take()?, cells.take()?, cells.take()?);
            let (_, _): (Amount, Currency) = (cells.take()?, cells.take()?);
            cells.take::<Timestamp>().map(drop)
        }),
        "bookings" => of::<Booking>(|cells, _| resource::<Booking>(cells).map(drop)),
        "quotes" => of::<Quote>(|cells, notes| {
            let (quote, tenant) = resource::<Quote>(cells)?;
            notes.number(tenant, NumberKind::Quote, &quote.quote_number);
            Ok(())
        }),
        "jobs" => of::<Job>(|cells, notes| {
            let (job, tenant) = resource::<Job>(cells)?;
            notes.number(tenant, NumberKind::Job, &job.job_number);
            Ok(())
        }),
        "subscriptions" => of::<WebhookSubscription>(|cells, notes| {
            let (subscription, tenant) = resource::<WebhookSubscription>(cells)?;
            if subscription.event_handling() != EventHandling::Ignore {
                let paused = subscription.event_handling() == EventHandling::Hold;
                let kinds = subscription.events.names().into_iter();
                notes.wanted.extend(kinds.map(|kind| (tenant, kind.to_owned(), subscription.id, paused)));
            }
            Ok(())
        }),
        "subscription_kinds" => (words("tenant_id kind subscription_id paused"), |cells, notes| {
            notes.kinds.insert((cells.take()?, cells.take()?, cells.take()?, cells.take()?));
            Ok(())
        }),
        "events" => {
            (words("id tenant_id kind data created_at only_for actor"), |cells, _| events::read_caused(cells).map(drop))
        }
        "deliveries" => (
            words(
                "id tenant_id event_id kind subscription_id state attempts failures last_status next_attempt_at lease \
                 created_at",
            ),
            |cells, _| deliveries::read(cells).map(drop),
        ),
        "delivery_attempts" => (
            words(
                "attempt started_at duration_ms status error response_body response_truncated remote_addr tenant_id \
                 delivery_id",
            ),
            |cells, _| {
                deliveries::read_attempt(cells)?;
                let (_, _): (TenantId, Uuid) = (cells.take()?, cells.take()?);
                Ok(())
            },
        ),
        "turns" => (words("tenant_id subscription_id at"), |cells, _| {
            let (_, _): (TenantId, Uuid) = (cells.take()?, cells.take()?);
            cells.take::<Timestamp>().map(drop)
        }),
        "replays" => (
            words(
                "id tenant_id subscription_id since until statuses missed position stepped_at replayed created_at \
                 finished_at",
            ),
            |cells, _| deliveries::read_replay(cells).map(drop),
        ),
        "audit_log" => (words("id tenant_id at actor action object_kind object_id before after"), |cells, _| {
            audit::read(cells).map(drop)
        }),
        // A test sees to it that there is none.
        _ => (Vec::new(), |_, _| Ok(())),
    }
}

fn words(names: &'static str) -> Vec<&'static str> {
    names.split_whitespace().collect()
}

/// A resource's columns, its tenant, and whether it is live.
fn of<R: Table>(read: Read) -> (Vec<&'static str>, Read) {
    let mut columns = R::COLUMNS.to_vec();
    columns.push("tenant_id");
    if R::SOFT_DELETE {
        columns.push("live");
    }
    (columns, read)
}

fn resource<R: Table>(cells: &mut Cells<'_>) -> Result<(R, TenantId), StoreError> {
    let (record, tenant) = (R::read(cells)?, cells.take()?);
    if R::SOFT_DELETE {
        cells.take::<bool>()?;
    }
    Ok((record, tenant))
}

/// Reads a whole table; returns how many rows it has.
pub(super) async fn read_all(
    sql: &mut dyn Sql,
    table: &'static TableInfo,
    notes: &mut Notes,
    findings: &mut Vec<Finding>,
) -> Result<u64, StoreError> {
    let (columns, read) = reader(table);
    let (first_shown, first_key) = (columns.len(), columns.len() + shown(table).len());
    let selected: Vec<&str> = columns.iter().copied().chain(shown(table)).chain(table.key.iter().copied()).collect();
    let mut walk = Walk::selecting(table, &selected.join(", "), None);
    let (mut rows, mut on_progress) = (0, 0);
    loop {
        let before = rows;
        let mut last = None;
        let mut each = |row: &dyn Row| {
            rows += 1;
            last = key(row, first_key, table);
            let mut cells = Cells { row, table: table.name, columns: &columns, next: 0 };
            if let Err(error) = read(&mut cells, notes) {
                on_progress += 1;
                if on_progress <= MOST {
                    let id = show(row, first_shown, table);
                    findings.push(Finding { table: table.name, id, problem: error.to_string() });
                }
            }
            Ok(())
        };
        walk.query(sql, &mut each).await?;
        match last {
            Some(key) => walk.go_on(key),
            None if rows == before => return Ok(rows),
            None => {
                let problem = "a key is not what it must be; what lies behind it was not read".to_owned();
                findings.push(Finding { table: table.name, id: None, problem });
                return Ok(rows);
            }
        }
    }
}

fn key(row: &dyn Row, from: usize, table: &TableInfo) -> Option<Vec<Cell>> {
    (from..).zip(key_kinds(table)).map(|(index, kind)| Cell::read(row.value(index).ok()?, kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintenance::tables::TABLES;

    #[test]
    fn every_column_is_read() {
        for table in TABLES {
            let (mut columns, _) = reader(table);
            let mut all: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
            columns.sort_unstable();
            all.sort_unstable();
            assert_eq!(columns, all, "{}", table.name);
        }
    }
}
