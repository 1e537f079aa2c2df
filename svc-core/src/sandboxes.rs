//! Sandboxes: a place for each account for testing programs.
//!
//! The sandbox of an account is an account of its own, with sample records and keys that begin with `svc_test_`. So whatever
//! keeps accounts apart keeps a sandbox apart from its account: a test key sees nothing of the account, and a key of the account
//! nothing of the sandbox. A sandbox shares with its account the people who may use it
//! ([`sessions`](crate::accounts::sessions)) and the developer access.
//!
//! A sandbox can be reset and deleted at any time, in small steps. Each step is a write transaction, which locks the account
//! and then its sandbox. A step begins anew with what refers to other rows, so what is written between two steps does no harm.
//! The last step of a reset creates the sample records, so a sandbox is never seen without any after it.

mod samples;

use serde::{Deserialize, Serialize};

use crate::accounts::keys::{self, KeyCreate, NewKey};
use crate::accounts::operational::PLATFORM_ACCOUNT;
use crate::accounts::tenants::{self, Tenant, TenantCreate};
use crate::error::Error;
use crate::input::Record;
use crate::oauth::{self, RevokeReason};
use crate::store::{SandboxRows, Tx};
use crate::values::TenantId;
use crate::webhooks::statistics;

/// The highest number of rows that one step deletes.
pub const STEP: u32 = 500;

/// How many apps lose their access in one step.
const GRANTS_AT_ONCE: u32 = 20;
/// The end of the name of a sandbox.
const SUFFIX: &str = " (sandbox)";
/// The longest name of an account, in characters.
const MAX_NAME: usize = 300;

/// A new sandbox with its first key, whose text is shown once and not stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewSandbox {
    /// The sandbox.
    pub sandbox: Tenant,
    /// A key that reads and writes, and does not expire.
    pub key: NewKey,
}

/// The effect of a step of a reset or a deletion of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Record)]
pub struct SandboxStep {
    /// The number of rows that the step deleted.
    pub deleted: u64,
    /// Whether this was the last step. While it is false, send the request again.
    pub is_done: bool,
}

/// Returns the sandbox of an account, if it has one.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such account.
pub async fn find(tx: &mut dyn Tx, account: TenantId) -> Result<Option<Tenant>, Error> {
    let owner = tenants::get(tx, account).await?;
    tenants::sandbox_of(tx, &owner).await
}

/// Creates the sandbox of an account, with sample records, a key, and the time zone, the currency and the developer access of
/// the account.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such account, and [`Error::NotAllowed`] when it has a sandbox already, or is
/// one.
pub async fn create(tx: &mut dyn Tx, account: TenantId) -> Result<NewSandbox, Error> {
    tx.lock_tenant(account).await?;
    let owner = tenants::get(tx, account).await?;
    let refusal = if owner.is_sandbox() {
        Some("This account is a sandbox, which has no sandbox of its own.")
    } else if account == PLATFORM_ACCOUNT {
        Some("The account of operational events has no sandbox.")
    } else if tenants::sandbox_of(tx, &owner).await?.is_some() {
        Some("The account has a sandbox already. Reset it, or delete it before you create another.")
    } else {
        None
    };
    if let Some(reason) = refusal {
        return Err(Error::NotAllowed(reason.to_owned()));
    }
    let now = tx.env().now();
    let settings = TenantCreate {
        name: sandbox_name(&owner.name),
        time_zone: owner.time_zone.clone(),
        currency: owner.currency,
        developer_access: owner.developer_access,
    };
    let sandbox = Tenant {
        sandbox_of: Some(account),
        unique_contact_email: owner.unique_contact_email,
        ..Tenant::new(TenantId(tx.env().id(now)), settings, now)
    };
    tenants::insert(tx, &sandbox).await?;
    tenants::set_sandbox(tx, &owner, Some(sandbox.id)).await?;
    samples::create(tx, &sandbox).await?;
    let input = KeyCreate { name: Some("Sandbox".to_owned()), write: true, ..KeyCreate::default() };
    let key = keys::create(tx, sandbox.id, input).await?;
    Ok(NewSandbox { sandbox, key })
}

fn sandbox_name(of: &str) -> String {
    of.chars().take(MAX_NAME - SUFFIX.len()).chain(SUFFIX.chars()).collect()
}

/// Takes one step of resetting the sandbox of an account: deletes at most [`STEP`] rows of its data, and creates the sample
/// records when none is left. Keys and webhook subscriptions stay as they are, so that what is connected to the sandbox works
/// on.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such account, or it has no sandbox.
pub async fn reset_step(tx: &mut dyn Tx, account: TenantId) -> Result<SandboxStep, Error> {
    let (owner, sandbox) = lock(tx, account).await?;
    let sandbox = sandbox.ok_or(Error::NotFound)?;
    let step = delete(tx, &sandbox, SandboxRows::Data).await?;
    if step.is_done {
        samples::create(tx, &sandbox).await?;
        tenants::audit_reset(tx, &owner, sandbox.id).await?;
    }
    Ok(step)
}

/// Takes one step of deleting the sandbox of an account with all that it has: deletes at most [`STEP`] rows. The access of apps
/// ends first, as if it were revoked, so that each learns of it. Its keys are among the next, so they are refused from then on.
/// An account that names a sandbox which is gone has none after it.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such account, or it has no sandbox.
pub async fn delete_step(tx: &mut dyn Tx, account: TenantId) -> Result<SandboxStep, Error> {
    let (owner, sandbox) = lock(tx, account).await?;
    let step = match sandbox {
        Some(sandbox) => {
            let grants = tx.grants(sandbox.id, GRANTS_AT_ONCE).await?;
            if !grants.is_empty() {
                for grant in &grants {
                    oauth::revoke(tx, sandbox.id, grant.id, RevokeReason::Revoked).await?;
                }
                return Ok(SandboxStep { deleted: grants.len() as u64, is_done: false });
            }
            delete(tx, &sandbox, SandboxRows::All).await?
        }
        // Earlier versions could delete the last row of a sandbox, and leave its id with the account.
        None if owner.sandbox_id.is_some() => SandboxStep { deleted: 0, is_done: true },
        None => return Err(Error::NotFound),
    };
    if step.is_done {
        tenants::set_sandbox(tx, &owner, None).await?;
    }
    Ok(step)
}

/// Locks an account and its sandbox, if it has one, and returns both.
async fn lock(tx: &mut dyn Tx, account: TenantId) -> Result<(Tenant, Option<Tenant>), Error> {
    tx.lock_tenant(account).await?;
    let owner = tenants::get(tx, account).await?;
    let sandbox = tenants::lock_sandbox_of(tx, &owner).await?;
    Ok((owner, sandbox))
}

async fn delete(tx: &mut dyn Tx, sandbox: &Tenant, rows: SandboxRows) -> Result<SandboxStep, Error> {
    let deleted = tx.delete_sandbox_rows(sandbox.id, rows, STEP).await?;
    let is_done = deleted < u64::from(STEP);
    if is_done {
        statistics::delete_of_tenant(tx, sandbox.id).await?;
    }
    Ok(SandboxStep { deleted, is_done })
}
