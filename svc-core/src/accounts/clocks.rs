//! Clocks of tenants that are ahead of now, and how they are set back.
//!
//! Each write of a tenant takes a time after all of its earlier writes (`docs/contract.md`, "Timestamps and ordering"). So a
//! write under a clock that is ahead takes the clock of the tenant along: from then on each write adds a microsecond to it,
//! until the wall clock has caught up. Only the order of the tenant's records follows from it. Dates, due times and expiries
//! follow from the wall clock ([`WriteTime`]).
//!
//! # What is set back, and what is not
//!
//! Records keep their times. A client that has seen a change asks for what changed since then, and a sweep or a replay goes
//! on after the last event that it has seen; neither would ever find a later write with an earlier time. So the clock of a
//! tenant can go back to its latest record and no further. If that record has a time in the future, the clock counts on from
//! there until that time has come.
//!
//! The positions that follow the clock go back with it: those of streams, and that of the index of searches.

use serde::Serialize;
use std::time::Duration;

use crate::accounts::audit::{self, AuditAction, Object};
use crate::error::Error;
use crate::store::Tx;
use crate::values::{TenantId, Timestamp};

/// How far the clock of a tenant may be ahead of now without a reason to repair it: the clocks of several machines differ.
pub const MAX_AHEAD: Duration = Duration::from_secs(10);

/// When a write happens.
#[derive(Clone, Copy, Debug)]
pub struct WriteTime {
    /// The time that [`advance_clock`] returned, which orders the writes of the tenant: the `updated_at` of what changes.
    pub now: Timestamp,
    /// The time at which it happens in the world, from which dates and expiries follow. It is the wall clock's if the
    /// tenant's clock is more than [`MAX_AHEAD`] ahead of it, and otherwise `now`.
    pub wall_clock: Timestamp,
}

impl WriteTime {
    /// Returns the times of the write for which [`advance_clock`] returned `now`.
    pub fn new(tx: &dyn Tx, now: Timestamp) -> Self {
        let wall_clock = tx.env().now();
        Self { now, wall_clock: if now.since(wall_clock) > MAX_AHEAD { wall_clock } else { now } }
    }
}

/// Locks the tenant and returns the time of this write, which is after every earlier write of the tenant.
///
/// # Errors
/// [`Error::NotFound`] if there is no such tenant.
pub async fn advance_clock(tx: &mut dyn Tx, tenant: TenantId) -> Result<Timestamp, Error> {
    tx.advance_clock(tenant).await?.ok_or(Error::NotFound)
}

/// The clock of a tenant that was ahead of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRepair {
    /// The time of the clock before.
    pub before: Timestamp,
    /// The time to which it was set back: now or, if it is later, the time of the latest record. It is `before` if the latest
    /// record has that time, so that nothing could be done.
    pub after: Timestamp,
}

/// Returns the first `limit` tenants after the tenant `after` whose clocks are more than [`MAX_AHEAD`] ahead of now, in the
/// order of their ids.
///
/// # Errors
/// [`Error::Store`].
pub async fn ahead(tx: &mut dyn Tx, after: Option<TenantId>, limit: u32) -> Result<Vec<TenantId>, Error> {
    let latest = tx.env().now().checked_add(MAX_AHEAD).unwrap_or_default();
    Ok(tx.tenants_ahead(latest, after, limit).await?)
}

/// Sets the clock of a tenant back if it is more than [`MAX_AHEAD`] ahead of now: to now or, if that is later, to the time
/// of its latest record. Returns `None` if the clock is not ahead.
///
/// # Errors
/// [`Error::NotFound`] if there is no such tenant.
pub async fn repair(tx: &mut dyn Tx, tenant: TenantId) -> Result<Option<ClockRepair>, Error> {
    tx.lock_tenant(tenant).await?;
    let before = tx.clock(tenant).await?.ok_or(Error::NotFound)?;
    let now = tx.env().now();
    if before.since(now) <= MAX_AHEAD {
        return Ok(None);
    }
    let after = tx.latest_time(tenant).await?.unwrap_or(now).max(now).min(before);
    let repair = ClockRepair { before, after };
    if after < before {
        tx.set_clock(tenant, after).await?;
        let object = Object { kind: audit::TENANT, id: tenant.0 };
        audit::record(
            tx,
            tenant,
            AuditAction::RepairClock,
            object,
            Some(&Clock { clock: before }),
            Some(&Clock { clock: after }),
        )
        .await?;
    }
    Ok(Some(repair))
}

/// A clock, as the audit log has it.
#[derive(Serialize)]
struct Clock {
    clock: Timestamp,
}
