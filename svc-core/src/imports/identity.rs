//! The id and the `created_at` of an imported record.
//!
//! Lists are ordered by either and take the two for one order, so no two records of a list may share a microsecond.

use std::time::Duration;

use uuid::{Uuid, Variant};

use crate::accounts::tenants::Tenant;
use crate::crypto::sha256;
use crate::env::{first_id_at, time_of_id};
use crate::error::{Error, FieldCode, Issue};
use crate::pages::{ListQuery, Order};
use crate::resources::Resource;
use crate::store::Tx;
use crate::values::{Id, TenantId, Timestamp};

const DAY_MICROS: u64 = 24 * 60 * 60 * 1_000_000;

/// The number of attempts to find a time for a row that names no id. Each is likely to succeed, whatever the earlier ones did.
const MAX_ATTEMPTS: u32 = 16;

/// The identity that a row was recognised by.
pub(super) enum Identity<R> {
    /// This record, from an earlier import.
    Existing(R),
    /// No record: it is to be created with this id and this `created_at`.
    New(Id<R>, Timestamp),
}

/// Returns the record with the id that the row has, or that id with its time if there is none. `unfiltered` is the
/// filter that every record passes.
pub(super) async fn by_id<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    (id, created_at): (Id<R>, Option<Timestamp>),
    unfiltered: R::Filter,
    now: Timestamp,
) -> Result<Identity<R>, Error> {
    if (id.uuid().get_version_num(), id.uuid().get_variant()) != (7, Variant::RFC4122) {
        let reason = "must be a UUID of version 7, as exports have it; leave it out to get one";
        return Err(Issue::new(FieldCode::InvalidFormat, reason).on("id"));
    }
    let at = time_of_id(id.uuid());
    if at >= now {
        return Err(Issue::new(FieldCode::OutOfRange, "must not have a time in the future").on("id"));
    }
    if let Some(row) = R::repository(tx).get(tenant, id).await? {
        return Ok(Identity::Existing(row));
    }
    if created_at.is_some_and(|created_at| created_at != at) {
        let reason = format!("must be {at}, the time in the id, or left out");
        return Err(Issue::new(FieldCode::OutOfRange, reason).on("created_at"));
    }
    if is_free::<R>(tx, tenant, at, unfiltered).await? {
        return Ok(Identity::New(id, at));
    }
    Err(Error::NotAllowed(format!(
        "The id {id} cannot be taken: another record was created at {at}; leave the id out."
    )))
}

/// Returns the record with the id that is derived from the content of a row, or that id if there is no such record.
/// `before` is the number of earlier rows with the same content.
pub(super) async fn by_content<R: Resource>(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    (content, before): ([u8; 32], u32),
    created_at: Option<Timestamp>,
    unfiltered: R::Filter,
    now: Timestamp,
) -> Result<Identity<R>, Error> {
    if created_at.is_some_and(|at| at >= now || at.as_micros() < 2 * DAY_MICROS.cast_signed()) {
        let reason = "must lie between 1970-01-03 and now";
        return Err(Issue::new(FieldCode::OutOfRange, reason).on("created_at"));
    }
    let seed = sha256(&[tenant.id.0.as_bytes().as_slice(), &content, &before.to_be_bytes()].concat());
    for attempt in 0..MAX_ATTEMPTS {
        let random = sha256(&[seed.as_slice(), &attempt.to_be_bytes()].concat());
        let back = match created_at {
            // First the time itself, then times in growing spans before it: an export of another program may have the
            // same second in all its rows.
            Some(_) => number(&random, 0) % (1000 << (2 * attempt)).min(DAY_MICROS) * u64::from(attempt > 0),
            None => number(&random, 0) % DAY_MICROS + 1,
        };
        let at = created_at.unwrap_or(tenant.created_at).minus(Duration::from_micros(back));
        // The bits of the id after the time come from the row as well, so another row's record is not taken for its own.
        let id = Uuid::from_u128(first_id_at(at).as_u128() | u128::from(number(&seed, 8) >> 2)).into();
        if let Some(row) = R::repository(tx).get(tenant.id, id).await? {
            return Ok(Identity::Existing(row));
        }
        if is_free::<R>(tx, tenant.id, at, unfiltered.clone()).await? {
            return Ok(Identity::New(id, at));
        }
    }
    let reason = "There are too many records of the same time; give the row another created_at, or an id.";
    Err(Error::NotAllowed(reason.to_owned()))
}

/// Returns the eight bytes from `from` on as a number.
fn number(bytes: &[u8; 32], from: usize) -> u64 {
    bytes.iter().skip(from).take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns whether no record, deleted ones included, was created in this microsecond.
async fn is_free<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    at: Timestamp,
    unfiltered: R::Filter,
) -> Result<bool, Error> {
    let order = Order::NewestFirst { before: Some(at.next()) };
    let last = R::repository(tx).list(tenant, &ListQuery { limit: 1, order, filter: unfiltered }).await?;
    Ok(last.first().is_none_or(|row| row.created_at() < at))
}
