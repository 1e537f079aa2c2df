//! Reads every row with the reader that the service uses, and collects what must be consistent with other rows.

use std::collections::{BTreeMap, BTreeSet};

use svc_core::accounts::clocks::MAX_AHEAD;
use svc_core::accounts::tenants::{NumberKind, Tenant};
use svc_core::error::StoreError;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::store::StoreResult;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::{Finding, MAX_FINDINGS, display, displayed_columns};
use crate::accounts::tenants::LastNumber;
use crate::column::{CellError, Row};
use crate::maintenance::table_reader::{Cell, TableReader, key_kinds};
use crate::maintenance::tables::TableInfo;
use crate::maintenance_connection::Transaction;
use crate::sql::Cells;
use crate::table::TableRow as _;
use crate::webhooks::subscriptions::SubscriptionKind;

/// Facts about rows that must be consistent with each other, or with the time of the check.
pub(super) struct Consistency {
    now: Timestamp,
    /// The tenants whose clock is ahead of the time of the check.
    ahead: Vec<(TenantId, Timestamp)>,
    /// The highest number in use, by tenant and kind.
    highest: BTreeMap<(TenantId, &'static str), u64>,
    /// The last number that was given, by tenant and kind.
    counters: BTreeMap<(TenantId, &'static str), u64>,
    /// The kinds that subscriptions want.
    wanted: BTreeSet<SubscriptionKind>,
    /// The kinds that are looked up for events.
    kinds: BTreeSet<SubscriptionKind>,
}

impl Consistency {
    pub(super) fn at(now: Timestamp) -> Self {
        Self {
            now,
            ahead: Vec::new(),
            highest: BTreeMap::new(),
            counters: BTreeMap::new(),
            wanted: BTreeSet::new(),
            kinds: BTreeSet::new(),
        }
    }

    /// Adds the clock of a tenant.
    fn clock(&mut self, tenant: TenantId, clock: Timestamp) {
        if clock.since(self.now) > MAX_AHEAD && self.ahead.len() < MAX_FINDINGS {
            self.ahead.push((tenant, clock));
        }
    }

    /// Adds a number in use, if it has the form of those that the service gives.
    fn number(&mut self, tenant: TenantId, kind: NumberKind, number: &str) {
        let digits = number.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix('-'));
        let Some(given) = digits.and_then(|digits| digits.parse::<u64>().ok()) else { return };
        // The service never writes INV-00007, so such a number was not given by the counter.
        if number != format!("{kind}-{given:04}") {
            return;
        }
        let highest = self.highest.entry((tenant, kind.as_str())).or_default();
        *highest = given.max(*highest);
    }

    /// Adds a finding for each inconsistency.
    pub(super) fn compare(&self, findings: &mut Vec<Finding>) {
        for (tenant, clock) in &self.ahead {
            let problem = format!(
                "the clock of the account is at {clock}, ahead of now ({}): a machine with a wrong clock wrote for it, and \
                 its writes get times from there on until that time has come",
                self.now
            );
            findings.push(Finding { table: Tenant::TABLE, id: Some(tenant.to_string()), problem });
        }
        for (of, highest) in &self.highest {
            let counter = self.counters.get(of).copied().unwrap_or_default();
            if counter < *highest {
                let problem = format!(
                    "the last number given is {counter}, but {}-{highest:04} is in use, so a number may be given twice",
                    of.1
                );
                findings.push(Finding { table: "numbers", id: Some(format!("{} {}", of.0, of.1)), problem });
            }
        }
        let differ = |one: &BTreeSet<_>, other: &BTreeSet<_>, problem: &str| -> Vec<Finding> {
            let differ = one.difference(other).take(MAX_FINDINGS);
            let finding = |SubscriptionKind { kind, subscription_id, .. }: &SubscriptionKind| {
                let id = Some(format!("{kind} {subscription_id}"));
                Finding { table: SubscriptionKind::TABLE, id, problem: problem.to_owned() }
            };
            differ.map(finding).collect()
        };
        findings.extend(differ(
            &self.wanted,
            &self.kinds,
            "the subscription includes this kind of event, but has no row for it with the right values",
        ));
        findings.extend(differ(
            &self.kinds,
            &self.wanted,
            "the subscription does not include this kind of event, or the row has wrong values",
        ));
    }
}

type RowReader = fn(&mut Cells<'_>, &mut Consistency) -> Result<(), CellError>;

/// Returns the reader of a table whose rows must be consistent with other rows. `None` for the others.
fn consistency_reader(table: &TableInfo) -> Option<RowReader> {
    Some(match table.name {
        Tenant::TABLE => |cells, rows| {
            let (tenant, (clock, _)) = (Tenant::read(cells)?, Tenant::read_extra(cells)?);
            rows.clock(tenant.id, clock);
            Ok(())
        },
        LastNumber::TABLE => |cells, rows| {
            let LastNumber { tenant_id, kind, last } = LastNumber::read(cells)?;
            rows.counters.insert((tenant_id, kind.as_str()), last);
            Ok(())
        },
        Invoice::TABLE => |cells, rows| {
            let (invoice, (tenant,)) = (Invoice::read(cells)?, Invoice::read_extra(cells)?);
            rows.number(tenant, NumberKind::Invoice, &invoice.invoice_number);
            Ok(())
        },
        Quote::TABLE => |cells, rows| {
            let (quote, (tenant,)) = (Quote::read(cells)?, Quote::read_extra(cells)?);
            rows.number(tenant, NumberKind::Quote, &quote.quote_number);
            Ok(())
        },
        Job::TABLE => |cells, rows| {
            let (job, (tenant,)) = (Job::read(cells)?, Job::read_extra(cells)?);
            rows.number(tenant, NumberKind::Job, &job.job_number);
            Ok(())
        },
        WebhookSubscription::TABLE => |cells, rows| {
            let subscription = WebhookSubscription::read(cells)?;
            let (tenant, _) = WebhookSubscription::read_extra(cells)?;
            rows.wanted.extend(SubscriptionKind::all_of(tenant, &subscription));
            Ok(())
        },
        SubscriptionKind::TABLE => |cells, rows| {
            rows.kinds.insert(SubscriptionKind::read(cells)?);
            Ok(())
        },
        _ => return None,
    })
}

/// Reads a whole table, and returns how many rows it has.
pub(super) async fn read_all(
    tx: &mut dyn Transaction,
    table: &'static TableInfo,
    consistency: &mut Consistency,
    findings: &mut Vec<Finding>,
) -> StoreResult<u64> {
    let (columns, read_consistent) = (table.read_order(), consistency_reader(table));
    let (first_displayed, first_key) = (columns.len(), columns.len() + displayed_columns(table).len());
    let selected: Vec<&str> =
        columns.iter().copied().chain(displayed_columns(table)).chain(table.key.iter().copied()).collect();
    let mut reader = TableReader::selecting(table, tx.dialect(), &selected.join(", "), None);
    let (mut rows, mut unreadable) = (0, 0);
    loop {
        let before = rows;
        let mut last = None;
        let mut each = |row: &dyn Row| {
            rows += 1;
            last = key(row, first_key, table);
            let mut cells = Cells::new(row);
            let read = match read_consistent {
                Some(read) => read(&mut cells, consistency),
                None => (table.read)(&mut cells),
            };
            if let Err(error) = read {
                unreadable += 1;
                if unreadable <= MAX_FINDINGS {
                    let id = display(row, first_displayed, table);
                    findings.push(Finding { table: table.name, id, problem: StoreError::from(error).to_string() });
                }
            }
            Ok(())
        };
        reader.query(tx, &mut each).await?;
        match last {
            Some(key) => reader.continue_after(key),
            None if rows == before => return Ok(rows),
            None => {
                let problem = "the key of a row is invalid; the rows after it were not checked".to_owned();
                findings.push(Finding { table: table.name, id: None, problem });
                return Ok(rows);
            }
        }
    }
}

fn key(row: &dyn Row, from: usize, table: &TableInfo) -> Option<Vec<Cell>> {
    (from..).zip(key_kinds(table)).map(|(index, kind)| Cell::read(row.value(index).ok()?, kind)).collect()
}
