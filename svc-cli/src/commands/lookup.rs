//! Finds accounts and records by what was typed: whole ids, parts of ids, or nothing where there is one account only.
//!
//! Ids are unique within an account. An import can give records of two accounts the same id, so a whole id that is given
//! without an account is refused if several of them have it. Parts of ids are looked up within one account
//! ([`svc_core::lookup`]).

use serde::de::DeserializeOwned;
use svc_core::accounts::keys;
use svc_core::accounts::operational::PLATFORM_ACCOUNT;
use svc_core::lookup::{KindInAccount, KindOfAll, MAX_SEARCHED, Matches, PartOfId, RecordId};
use svc_core::pages::MAX_LIMIT;
use svc_core::platform::operations::{self, Records};
use svc_core::platform::{Account, ApiKey, DeliveryDetails, Operation};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::values::{Id, TenantId};
use svc_core::webhooks::deliveries::Delivery;
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use crate::cli::InAccount;
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::ids::{IdArg, IdPart};
use crate::output::plain;
use crate::service::{CallResult, Service};

/// The number of accounts that an error lists.
const LISTED_ACCOUNTS: u32 = 10;

/// A record and the account that owns it.
pub(super) struct Owned<R> {
    pub(super) tenant_id: TenantId,
    pub(super) record: R,
}

/// A type of record that is found by its id.
pub(super) trait Found: DeserializeOwned + Send + Sync + 'static {
    /// What the id is of.
    type Named: 'static;
    /// The name of a record, which is the name of its command.
    const NAME: &'static str;
    /// The name of several.
    const PLURAL: &'static str;
    /// The kind by which parts of ids are looked up.
    const KIND: KindInAccount;
    /// The kind by which the accounts of a record are looked up. `None` if a record is known in its account only.
    const KIND_OF_ALL: Option<KindOfAll>;
    /// Retrieves a record.
    const GET: Operation<(TenantId, Id<Self::Named>), (), Self>;
}

macro_rules! found {
    ($record:ty, $named:ty, $name:literal, $plural:literal, $kind:ident, $kind_of_all:expr, $get:expr) => {
        impl Found for $record {
            type Named = $named;
            const NAME: &'static str = $name;
            const PLURAL: &'static str = $plural;
            const KIND: KindInAccount = KindInAccount::$kind;
            const KIND_OF_ALL: Option<KindOfAll> = $kind_of_all;
            const GET: Operation<(TenantId, Id<$named>), (), Self> = $get;
        }
    };
}

found!(Contact, Self, "contact", "contacts", Contact, None, Records::<Self>::GET);
found!(Invoice, Self, "invoice", "invoices", Invoice, Some(KindOfAll::Invoice), Records::<Self>::GET);
found!(Quote, Self, "quote", "quotes", Quote, Some(KindOfAll::Quote), Records::<Self>::GET);
found!(Booking, Self, "booking", "bookings", Booking, None, Records::<Self>::GET);
found!(Job, Self, "job", "jobs", Job, None, Records::<Self>::GET);
found!(WebhookSubscription, Self, "webhook", "webhooks", Webhook, Some(KindOfAll::Webhook), Records::<Self>::GET);
found!(
    DeliveryDetails,
    Delivery,
    "delivery",
    "deliveries",
    Delivery,
    Some(KindOfAll::Delivery),
    operations::GET_DELIVERY
);
found!(ApiKey, keys::ApiKey, "key", "keys", Key, Some(KindOfAll::Key), operations::GET_KEY);

/// Returns the account that a command works on: the one that was named, otherwise the only one of the service.
///
/// # Errors
/// There is no such account, or none was named and there are several.
pub(super) async fn account(service: &Service, named: &InAccount) -> Result<Account, Failure> {
    if let Some(id) = &named.account {
        return account_by_id(service, id).await;
    }
    // The account of operational events has no records, so it is meant only where it is named.
    let (mut accounts, _) = service.accounts(None, LISTED_ACCOUNTS + 2).await?;
    accounts.retain(|account| account.id != PLATFORM_ACCOUNT);
    match accounts.len() {
        0 => {
            let reason = "The database has no accounts yet; create one with `svc account create`.";
            Err(Failure::new(Exit::NotFound, reason))
        }
        1 => Ok(accounts.remove(0)),
        count => {
            let (count, more) = match count {
                count if count > LISTED_ACCOUNTS as usize => ("several".to_owned(), "\n  …"),
                count => (count.to_string(), ""),
            };
            accounts.truncate(LISTED_ACCOUNTS as usize);
            let message = format!(
                "The database has {count} accounts; name one of them with --account or SVC_TENANT:{}{more}",
                listing(&accounts)
            );
            Err(Failure::new(Exit::Usage, message))
        }
    }
}

/// Returns the account with this id, or the only one with this part of an id.
///
/// # Errors
/// There is no such account, or there are several.
pub(super) async fn account_by_id(service: &Service, id: &IdArg) -> Result<Account, Failure> {
    const HINT: &str = "`svc account list` lists all accounts";
    match id {
        IdArg::Whole(id) => {
            service.call(&operations::GET_ACCOUNT, TenantId(*id), ()).await.or_not_found("account", id, HINT)
        }
        IdArg::Part(part) => {
            let found = accounts_with(service, part).await?;
            only(found, "account", "accounts", id, || format!("There is no account {id}; {HINT}."))
        }
    }
}

/// Returns the accounts whose ids begin with a part, otherwise those whose ids end with it. `None` if there are too many to
/// search.
async fn accounts_with(service: &Service, part: &IdPart) -> CallResult<Option<Vec<Account>>> {
    if let Some(first) = part.first() {
        let before = TenantId(Uuid::from_u128(first.as_u128().saturating_sub(1)));
        let (next, _) = service.accounts(Some(before), MAX_LIMIT).await?;
        let found: Vec<Account> = next.into_iter().take_while(|account| part.begins(account.id.0)).collect();
        if !found.is_empty() {
            return Ok(Some(found));
        }
    }
    let (mut all, has_more) = service.accounts(None, u32::try_from(MAX_SEARCHED).unwrap_or(u32::MAX)).await?;
    all.retain(|account| part.ends(account.id.0));
    Ok(Some(all).filter(|_| !has_more))
}

/// Returns the record with this id, or the only one with this part of an id, and its account. A record never changes its
/// account, so the account is still right in a later transaction.
///
/// # Errors
/// There is no such record, or there are several.
pub(super) async fn find<R: Found>(service: &Service, id: &IdArg, named: &InAccount) -> Result<Owned<R>, Failure> {
    let (tenant_id, whole) = match (id, &named.account, R::KIND_OF_ALL) {
        (IdArg::Whole(id), None, Some(kind)) => (account_of::<R>(service, kind, *id).await?, *id),
        _ => {
            let account = account(service, named).await?.id;
            (account, id_in::<R>(service, account, id).await?)
        }
    };
    let record = match service.call(&R::GET, (tenant_id, whole.into()), ()).await {
        Err(error) if error.is_not_found() => return Err(nothing_in::<R>(tenant_id, &IdArg::Whole(whole))),
        record => record?,
    };
    Ok(Owned { tenant_id, record })
}

/// Returns the only account that has a record with this id.
async fn account_of<R: Found>(service: &Service, kind: KindOfAll, id: Uuid) -> Result<TenantId, Failure> {
    let found = service.call(&operations::FIND_ACCOUNTS, (), RecordId { kind, id }).await?;
    let name = R::NAME;
    match &found.data[..] {
        [] => {
            let reason = format!("There is no {name} {id}; `svc {name} list` lists the {} of an account.", R::PLURAL);
            Err(Failure::new(Exit::NotFound, reason))
        }
        [account] => Ok(account.id),
        accounts => {
            let (count, accounts) = (accounts.len(), listing(accounts));
            let reason = format!(
                "The {name} {id} exists in {count} accounts; name one of them with --account or SVC_TENANT:{accounts}"
            );
            Err(Failure::new(Exit::Refused, reason))
        }
    }
}

/// Returns the whole id of what was typed. A whole id is returned as it is, whether or not the account has the record.
///
/// # Errors
/// The account has no record with this part of an id, or several.
pub(super) async fn id_in<R: Found>(service: &Service, account: TenantId, id: &IdArg) -> Result<Uuid, Failure> {
    let part = match id {
        IdArg::Whole(id) => return Ok(*id),
        IdArg::Part(part) => part.clone(),
    };
    let part = PartOfId { kind: R::KIND, part };
    let Matches { data, is_complete } = service.call(&operations::FIND_IDS, account, part).await?;
    let found = Some(data).filter(|_| is_complete);
    only(found, R::NAME, R::PLURAL, id, || nothing_in::<R>(account, id).message().to_owned())
}

/// Returns the only one that has a part of an id. `None` stands for too many to search.
fn only<T>(
    found: Option<Vec<T>>,
    name: &str,
    plural: &str,
    id: &IdArg,
    nothing: impl FnOnce() -> String,
) -> Result<T, Failure> {
    let Some(mut found) = found else {
        let reason = format!(
            "No {name} has an id that begins with {id}, and there are too many {plural} to look for one that ends with it; \
             give the whole id."
        );
        return Err(Failure::new(Exit::NotFound, reason));
    };
    match (found.pop(), found.len()) {
        (None, _) => Err(Failure::new(Exit::NotFound, nothing())),
        (Some(only), 0) => Ok(only),
        (Some(_), others) => {
            let count = match others + 1 {
                count if count < MAX_LIMIT as usize => count.to_string(),
                _ => format!("{MAX_LIMIT} or more"),
            };
            let reason = format!("{count} {plural} have an id that begins or ends with {id}; give more of the id.");
            Err(Failure::new(Exit::Usage, reason))
        }
    }
}

/// Returns the failure of a lookup in an account that found nothing.
pub(super) fn nothing_in<R: Found>(account: TenantId, id: &IdArg) -> Failure {
    let name = R::NAME;
    Failure::new(
        Exit::NotFound,
        format!("Account {account} has no {name} {id}; `svc {name} list` lists its {}.", R::PLURAL),
    )
}

/// Lists accounts, one per line.
fn listing(accounts: &[Account]) -> String {
    accounts.iter().map(|account| format!("\n  {}  {}", account.id, plain(&account.name))).collect()
}
