//! The next events of some accounts, read in one snapshot.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{AccountBehind, Message, StreamKey};
use crate::error::Error;
use crate::store::{self, Repository, Tx};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::events::{self, Event};
use crate::webhooks::options::Payload;
use crate::webhooks::subscriptions::WebhookSubscription;

/// The highest number of accounts of a batch, whose messages are published at the same time.
pub const ACCOUNTS: u32 = 32;
/// The number of accounts that one statement looks for. Those that wait by themselves are among them.
const PAGE: u32 = 4 * ACCOUNTS;
/// The highest number of events of each of them.
pub const EVENTS: u32 = 64;
/// The size of the data of a batch's events, in bytes, with which it ends. The last account may exceed it, by what one read of
/// events returns.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The messages to publish next.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) accounts: Vec<AccountBatch>,
    /// The account after which the next batch begins. `None` if it begins with the first one.
    pub(super) after: Option<TenantId>,
    /// Whether there is more to publish than this.
    pub(super) has_more: bool,
}

/// The next messages of an account.
#[derive(Debug)]
pub(super) struct AccountBatch {
    pub(super) tenant_id: TenantId,
    pub(super) is_sandbox: bool,
    pub(super) messages: Vec<Message>,
    /// The position once all messages are confirmed.
    pub(super) read_until: Timestamp,
}

impl AccountBatch {
    /// Returns the position once the first `confirmed` messages are: just before the first that is not.
    pub(super) fn position(&self, confirmed: usize) -> Timestamp {
        match self.messages.get(confirmed) {
            Some(next) => next.event.created_at.minus(Duration::from_micros(1)),
            None => self.read_until,
        }
    }
}

/// Reads the next events of the accounts after `after`, without those of some accounts. `None` if the stream is gone.
pub(super) async fn read(
    tx: &mut dyn Tx,
    key: StreamKey,
    after: Option<TenantId>,
    except: &BTreeSet<TenantId>,
) -> Result<Option<Batch>, Error> {
    let Some(stream) = tx.stream(key).await? else { return Ok(None) };
    let subscription = if key == StreamKey::SERVER {
        None
    } else {
        let found = Repository::<WebhookSubscription>::get(tx, key.tenant_id, key.id).await?;
        match found.filter(WebhookSubscription::is_active) {
            Some(subscription) => Some(subscription),
            None => return Ok(None),
        }
    };
    // An earlier batch may have left accounts before `after`.
    let mut batch = Batch { after, has_more: after.is_some(), ..Batch::default() };
    let mut bytes = 0;
    loop {
        let behind = tx.accounts_behind(&stream, batch.after, PAGE).await?;
        let is_last_page = behind.len() < PAGE as usize;
        for account in behind {
            if batch.accounts.len() == ACCOUNTS as usize || bytes >= MAX_BYTES {
                batch.has_more = true;
                return Ok(Some(batch));
            }
            batch.after = Some(account.tenant_id);
            if !except.contains(&account.tenant_id) {
                let (of_account, is_complete) = read_account(tx, subscription.as_ref(), account).await?;
                batch.has_more |= !is_complete;
                bytes += of_account.messages.iter().map(|message| message.event.data.get().len()).sum::<usize>();
                batch.accounts.push(of_account);
            }
        }
        if is_last_page {
            batch.after = None;
            return Ok(Some(batch));
        }
    }
}

/// Returns the next messages of an account, and whether they are all.
async fn read_account(
    tx: &mut dyn Tx,
    subscription: Option<&WebhookSubscription>,
    account: AccountBehind,
) -> Result<(AccountBatch, bool), Error> {
    let AccountBehind { tenant_id, sent_until, clock, is_sandbox } = account;
    let events = tx.events_after(tenant_id, sent_until, EVENTS).await?;
    let is_complete = !store::is_cut(&events, EVENTS);
    let read_until = match events.last() {
        Some(last) if !is_complete => last.created_at,
        Some(last) => clock.max(last.created_at),
        None => clock,
    };
    let is_thin = subscription.is_some_and(|subscription| subscription.payload == Some(Payload::Thin));
    let is_wanted =
        |event: &Event| !event.is_test() && subscription.is_none_or(|subscription| is_for(subscription, event));
    let events = events.into_iter().filter(is_wanted);
    let messages = events.map(|event| Message { event, is_sandbox, is_thin }).collect();
    Ok((AccountBatch { tenant_id, is_sandbox, messages, read_until }, is_complete))
}

/// Returns whether an event is of the kinds of a subscription and passes its filter.
fn is_for(subscription: &WebhookSubscription, event: &Event) -> bool {
    subscription.events.contains(event.kind) && events::passing(event)(subscription.filter.as_ref())
}
