//! How far a stream is behind, for operators.

use super::StreamKey;
use crate::error::Error;
use crate::store::Tx;
use crate::values::Timestamp;

/// The highest number of accounts that are counted.
pub const LAG_ACCOUNTS: u32 = 1_000;
/// The number of them whose oldest event is looked for.
const LOOKED_AT: usize = 100;

/// How far a stream is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// The number of accounts that were written to and not read since, up to [`LAG_ACCOUNTS`].
    pub accounts: u32,
    /// The time of the oldest event that is not sent yet. If very many accounts are behind, it is that of some of them.
    pub oldest: Option<Timestamp>,
}

/// Returns how far a stream is behind. Its cost is bounded, however many events wait.
///
/// # Errors
/// [`Error::Store`].
pub async fn lag(tx: &mut dyn Tx, key: StreamKey) -> Result<Lag, Error> {
    let Some(stream) = tx.stream(key).await? else { return Ok(Lag::default()) };
    let behind = tx.accounts_behind(&stream, None, LAG_ACCOUNTS).await?;
    let mut oldest = None;
    for account in behind.iter().take(LOOKED_AT) {
        let first = tx.events_after(account.tenant_id, account.sent_until, 1).await?;
        oldest = first.first().map(|event| event.created_at).into_iter().chain(oldest).min();
    }
    Ok(Lag { accounts: u32::try_from(behind.len()).unwrap_or(LAG_ACCOUNTS), oldest })
}
