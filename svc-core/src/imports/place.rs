//! Where an imported record stands among the others: its id and its `created_at`, which lists take for the same order,
//! so no two records of a list may share a microsecond.

use std::time::Duration;

use uuid::{Uuid, Variant};

use crate::accounts::tenants::Tenant;
use crate::crypto::sha256;
use crate::env::{first_id_at, time_of_id};
use crate::error::{Error, FieldCode, Issue};
use crate::resources::crud::Resource;
use crate::resources::pages::{ListQuery, Order};
use crate::store::Tx;
use crate::values::{TenantId, Timestamp};

const DAY: u64 = 24 * 60 * 60 * 1_000_000;

/// Places that are tried for a row that names none. Each is likely to be free, whatever the others were.
const TRIES: u32 = 16;

/// What was found where a row belongs.
pub(super) enum Found<R> {
    /// The row's own record, from an earlier import.
    Record(R),
    /// A free place: id and `created_at`.
    Free(Uuid, Timestamp),
}

/// The record with the id that the row names, or the place for it.
pub(super) async fn named<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    (id, created_at): (Uuid, Option<Timestamp>),
    everything: R::Filter,
    now: Timestamp,
) -> Result<Found<R>, Error> {
    if (id.get_version_num(), id.get_variant()) != (7, Variant::RFC4122) {
        let reason = "must be a UUID of version 7, as exports have it; leave it out to get one";
        return Err(Issue::new(FieldCode::InvalidFormat, reason).on("id"));
    }
    let at = time_of_id(id);
    if at >= now {
        return Err(Issue::new(FieldCode::OutOfRange, "must not have a time in the future").on("id"));
    }
    if let Some(row) = R::repository(tx).get(tenant, id).await? {
        return Ok(Found::Record(row));
    }
    if created_at.is_some_and(|created_at| created_at != at) {
        let reason = format!("must be {at}, the time in the id, or left out");
        return Err(Issue::new(FieldCode::OutOfRange, reason).on("created_at"));
    }
    if is_free::<R>(tx, tenant, at, everything).await? {
        return Ok(Found::Free(id, at));
    }
    Err(Error::NotAllowed(format!(
        "The id {id} cannot be taken: another record was created at {at}; leave the id out."
    )))
}

/// The record of a row that names no id, from an earlier import, or the place for it.
pub(super) async fn derived<R: Resource>(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    (content, before): ([u8; 32], u32),
    created_at: Option<Timestamp>,
    everything: R::Filter,
    now: Timestamp,
) -> Result<Found<R>, Error> {
    if created_at.is_some_and(|at| at >= now || at.as_micros() < 2 * DAY.cast_signed()) {
        let reason = "must lie between 1970-01-03 and now";
        return Err(Issue::new(FieldCode::OutOfRange, reason).on("created_at"));
    }
    let seed = sha256(&[tenant.id.0.as_bytes().as_slice(), &content, &before.to_be_bytes()].concat());
    for attempt in 0..TRIES {
        let random = sha256(&[seed.as_slice(), &attempt.to_be_bytes()].concat());
        let back = match created_at {
            // The time as it was, then within wider and wider spans before it: an export of another program may say
            // the same second for all its rows.
            Some(_) => number(&random, 0) % (1000 << (2 * attempt)).min(DAY) * u64::from(attempt > 0),
            None => number(&random, 0) % DAY + 1,
        };
        let at = created_at.unwrap_or(tenant.created_at).minus(Duration::from_micros(back));
        // The id is the row's own in the rest as well, so that it is never taken for another's.
        let id = Uuid::from_u128(first_id_at(at).as_u128() | u128::from(number(&seed, 8) >> 2));
        if let Some(row) = R::repository(tx).get(tenant.id, id).await? {
            return Ok(Found::Record(row));
        }
        if is_free::<R>(tx, tenant.id, at, everything.clone()).await? {
            return Ok(Found::Free(id, at));
        }
    }
    let reason = "There are too many records of the same time; give the row another created_at, or an id.";
    Err(Error::NotAllowed(reason.to_owned()))
}

fn number(bytes: &[u8; 32], from: usize) -> u64 {
    bytes.iter().skip(from).take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Whether no record, deleted ones included, was created in this microsecond.
async fn is_free<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    at: Timestamp,
    everything: R::Filter,
) -> Result<bool, Error> {
    let order = Order::NewestFirst { before: Some(at.next()) };
    let last = R::repository(tx).list(tenant, &ListQuery { limit: 1, order, filter: everything }).await?;
    Ok(last.first().is_none_or(|row| row.created_at() < at))
}
