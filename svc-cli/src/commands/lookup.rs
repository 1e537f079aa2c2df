//! Finds accounts and records by what was typed: whole ids, parts of ids, what they are called, or nothing where there is one
//! account only.
//!
//! Ids are unique within an account. An import can give records of two accounts the same id, so a whole id that is given
//! without an account is refused if several of them have it. Parts of ids are looked up within one account
//! ([`svc_core::lookup`]), and so are numbers, email addresses and names, which must be whole and those of one record: what
//! is similar is listed, and never changed ([`svc_core::find`]).

use serde::de::DeserializeOwned;
use svc_core::accounts::keys;
use svc_core::accounts::operational::PLATFORM_ACCOUNT;
use svc_core::find::{self as texts, Hit, MAX_HITS};
use svc_core::input::{Input, ToBody};
use svc_core::lookup::{KindInAccount, KindOfAll, MAX_SEARCHED, Matches, PartOfId, RecordId};
use svc_core::operation::Operation;
use svc_core::pages::MAX_LIMIT;
use svc_core::platform::operations::{self, Records};
use svc_core::platform::{Account, ApiKey, DeliveryDetails, Event};
use svc_core::values::{Id, RecordKind, TenantId};
use svc_core::webhooks::deliveries::Delivery;
use svc_core::webhooks::events;
use uuid::Uuid;

use super::resource::ResourceCommands;
use crate::exit::{Exit, Failure};
use crate::ids::{IdArg, IdPart, InAccount, Target};
use crate::output::plain;
use crate::service::{CallResult, Service};
use crate::times;

/// The number of accounts that an error lists.
const LISTED_ACCOUNTS: u32 = 10;
/// The highest number of accounts in which a record is looked for, one read each, where no index leads from its id to its
/// account.
const MAX_ASKED: u32 = 50;

/// A type of record that is found by its id.
pub(super) trait Lookup: DeserializeOwned + Send + Sync + 'static {
    /// The kind of record that the id names.
    type Record: 'static;
    /// The kind of record, whose name is that of its command.
    const KIND: KindInAccount;
    /// The name of several.
    const PLURAL: &'static str;
    /// Retrieves a record.
    const GET: Operation<(TenantId, Id<Self::Record>), (), Self>;
}

impl<R: ResourceCommands> Lookup for R {
    type Record = Self;
    const KIND: KindInAccount = R::KIND;
    const PLURAL: &'static str = R::COLLECTION;
    const GET: Operation<(TenantId, Id<Self>), (), Self> = Records::<Self>::GET;
}

impl Lookup for DeliveryDetails {
    type Record = Delivery;
    const KIND: KindInAccount = KindInAccount::Delivery;
    const PLURAL: &'static str = "deliveries";
    const GET: Operation<(TenantId, Id<Delivery>), (), Self> = operations::GET_DELIVERY;
}

impl Lookup for Event {
    type Record = events::Event;
    const KIND: KindInAccount = KindInAccount::Event;
    const PLURAL: &'static str = "events";
    const GET: Operation<(TenantId, Id<events::Event>), (), Self> = operations::GET_EVENT;
}

impl Lookup for ApiKey {
    type Record = keys::ApiKey;
    const KIND: KindInAccount = KindInAccount::Key;
    const PLURAL: &'static str = "keys";
    const GET: Operation<(TenantId, Id<keys::ApiKey>), (), Self> = operations::GET_KEY;
}

/// A record and the account that owns it.
pub(super) struct FoundRecord<R: Lookup> {
    pub(super) tenant_id: TenantId,
    pub(super) id: Id<R::Record>,
    pub(super) record: R,
}

impl<R: Lookup> FoundRecord<R> {
    /// Calls an operation on the record.
    pub(super) async fn call<I, O>(
        &self,
        service: &Service,
        operation: &Operation<(TenantId, Id<R::Record>), I, O>,
        input: I,
    ) -> Result<O, Failure>
    where
        I: Input + ToBody + Clone,
        O: DeserializeOwned + Send,
    {
        match service.call(operation, (self.tenant_id, self.id), input).await {
            Err(error) if error.is_not_found() => Err(nothing_in::<R>(self.tenant_id, &IdArg::Whole(self.id.uuid()))),
            called => Ok(called?),
        }
    }
}

/// Calls an operation on the record that was named.
pub(super) async fn call<R: Lookup<Record = R>, I, O>(
    service: &Service,
    target: &Target,
    operation: &Operation<(TenantId, Id<R>), I, O>,
    input: I,
) -> Result<O, Failure>
where
    I: Input + ToBody + Clone,
    O: DeserializeOwned + Send,
{
    find::<R>(service, &target.id, &target.account).await?.call(service, operation, input).await
}

/// Returns the account that a command works on: the one that was named, otherwise the only one of the service. People type
/// and see times in its time zone.
///
/// # Errors
/// There is no such account, or none was named and there are several.
pub(super) async fn account(service: &Service, named: &InAccount) -> Result<Account, Failure> {
    let account = match &named.account {
        Some(id) => account_by_id(service, id).await?,
        None => only_account(service).await?,
    };
    times::use_zone_of(&account);
    Ok(account)
}

/// Returns the account that a command works on, as [`account`] does. If none was named and there are several, it is the one of
/// a record that was named by its whole id.
///
/// # Errors
/// As [`account`], and if several accounts have the record.
pub(super) async fn account_with<R: Lookup>(
    service: &Service,
    named: &InAccount,
    record: Option<&IdArg>,
) -> Result<Account, Failure> {
    let Some(IdArg::Whole(id)) = record.filter(|_| named.account.is_none()) else {
        return account(service, named).await;
    };
    match account(service, named).await {
        // There are several accounts.
        Err(failure) if failure.exit() == Exit::Usage => match owners::<R>(service, *id).await? {
            // A webhook that is deleted has deliveries in its account still.
            Some(owners) if owners.is_empty() && R::KIND == KindInAccount::Webhook => Err(failure),
            Some(owners) => owner::<R>(*id, owners),
            None => Err(failure),
        },
        account => account,
    }
}

/// Returns the only account of the service.
async fn only_account(service: &Service) -> Result<Account, Failure> {
    // The account of operational events has no records, so it is meant only where it is named, and so is a sandbox.
    let (mut accounts, _) = service.accounts(None, LISTED_ACCOUNTS + 2, false).await?;
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

/// Returns the account with this id, or the only one with this part of an id, or with this name in any case.
///
/// # Errors
/// There is no such account, or there are several.
pub(super) async fn account_by_id(service: &Service, id: &IdArg) -> Result<Account, Failure> {
    let nothing = || format!("There is no account {id}; `svc account list` lists all accounts.");
    match id {
        IdArg::Whole(whole) => match service.call(&operations::GET_ACCOUNT, TenantId(*whole), ()).await {
            Err(error) if error.is_not_found() => Err(Failure::new(Exit::NotFound, nothing())),
            account => Ok(account?),
        },
        IdArg::Part(part) => match accounts_with(service, part).await? {
            Some(found) if found.is_empty() => account_by_name(service, part.to_string(), nothing).await,
            found => only(found, "account", "accounts", id, nothing),
        },
        IdArg::Name(name) => account_by_name(service, name.clone(), nothing).await,
    }
}

/// Returns the only account with a name, in any case.
async fn account_by_name(
    service: &Service,
    name: String,
    nothing: impl FnOnce() -> String,
) -> Result<Account, Failure> {
    let name = name.to_lowercase();
    let wanted = u32::try_from(MAX_SEARCHED).unwrap_or(u32::MAX);
    let (mut all, has_more) = service.accounts(None, wanted, true).await?;
    if has_more {
        let reason = "There are too many accounts to look for one by its name; give its id.";
        return Err(Failure::new(Exit::NotFound, reason));
    }
    all.retain(|account| account.name.to_lowercase() == name);
    single_match(
        all,
        || Failure::new(Exit::NotFound, nothing()),
        |all| {
            let listed = listing(&all[..all.len().min(LISTED_ACCOUNTS as usize)]);
            format!("{} accounts have this name; give the id of one of them:{listed}", all.len())
        },
    )
}

/// Returns the accounts whose ids begin with a part, otherwise those whose ids end with it. `None` if there are too many to
/// search.
async fn accounts_with(service: &Service, part: &IdPart) -> CallResult<Option<Vec<Account>>> {
    if let Some(first) = part.first() {
        let before = TenantId(Uuid::from_u128(first.as_u128().saturating_sub(1)));
        let (next, _) = service.accounts(Some(before), MAX_LIMIT, true).await?;
        let found: Vec<Account> = next.into_iter().take_while(|account| part.begins(account.id.0)).collect();
        if !found.is_empty() {
            return Ok(Some(found));
        }
    }
    let wanted = u32::try_from(MAX_SEARCHED).unwrap_or(u32::MAX);
    let (mut all, has_more) = service.accounts(None, wanted, true).await?;
    all.retain(|account| part.ends(account.id.0));
    Ok(Some(all).filter(|_| !has_more))
}

/// Returns the record with this id, or the only one with this part of an id, and its account. A record never changes its
/// account, so the account is still right in a later transaction.
///
/// # Errors
/// There is no such record, or there are several.
pub(super) async fn find<R: Lookup>(
    service: &Service,
    id: &IdArg,
    named: &InAccount,
) -> Result<FoundRecord<R>, Failure> {
    let (tenant_id, whole) = match (id, &named.account) {
        (IdArg::Whole(id), None) if KindOfAll::from_text(R::KIND.as_str()).is_some() => {
            let owners = owners::<R>(service, *id).await?.unwrap_or_default();
            (owner::<R>(*id, owners)?.id, *id)
        }
        _ => {
            let account = account_with::<R>(service, named, Some(id)).await?.id;
            (account, id_in::<R>(service, account, id).await?)
        }
    };
    let record = match service.call(&R::GET, (tenant_id, whole.into()), ()).await {
        Err(error) if error.is_not_found() => return Err(nothing_in::<R>(tenant_id, &IdArg::Whole(whole))),
        record => record?,
    };
    Ok(FoundRecord { tenant_id, id: whole.into(), record })
}

/// Returns the accounts that have a record with this id. `None` if that is not known.
///
/// An index leads from the ids of some kinds to their accounts. The others are looked for in each account, as long as there are
/// few accounts.
async fn owners<R: Lookup>(service: &Service, id: Uuid) -> Result<Option<Vec<Account>>, Failure> {
    if let Some(kind) = KindOfAll::from_text(R::KIND.as_str()) {
        return Ok(Some(service.call(&operations::FIND_ACCOUNTS, (), RecordId { kind, id }).await?.data));
    }
    let (accounts, has_more) = service.accounts(None, MAX_ASKED, true).await?;
    if has_more || accounts.len() > MAX_ASKED as usize {
        return Ok(None);
    }
    let mut owners = Vec::new();
    for account in accounts {
        match service.call(&R::GET, (account.id, id.into()), ()).await {
            Ok(_) => owners.push(account),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(owners))
}

/// Returns the only one of the accounts that have a record with this id.
fn owner<R: Lookup>(id: Uuid, mut owners: Vec<Account>) -> Result<Account, Failure> {
    let name = R::KIND;
    match owners.len() {
        0 => {
            let reason = format!("There is no {name} {id}; `svc {name} list` lists the {} of an account.", R::PLURAL);
            Err(Failure::new(Exit::NotFound, reason))
        }
        1 => {
            let account = owners.remove(0);
            times::use_zone_of(&account);
            Ok(account)
        }
        count => {
            let accounts = listing(&owners);
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
/// The account has no record with this part of an id or with this name, or several.
pub(super) async fn id_in<R: Lookup>(service: &Service, account: TenantId, id: &IdArg) -> Result<Uuid, Failure> {
    let part = match id {
        IdArg::Whole(id) => return Ok(*id),
        IdArg::Part(part) => part.clone(),
        IdArg::Name(name) => {
            let named = id_by_name::<R>(service, account, name).await?;
            return named.ok_or_else(|| nothing_in::<R>(account, id));
        }
    };
    let name = part.to_string();
    let part = PartOfId { kind: R::KIND, part };
    let Matches { data, is_complete } = service.call(&operations::FIND_IDS, account, part).await?;
    if data.is_empty()
        && let Some(named) = id_by_name::<R>(service, account, &name).await?
    {
        return Ok(named);
    }
    let found = Some(data).filter(|_| is_complete);
    only(found, R::KIND.as_str(), R::PLURAL, id, || nothing_in::<R>(account, id).message().to_owned())
}

/// Returns the whole id of what may have been typed, as [`id_in`] does.
pub(super) async fn optional_id<R: Lookup>(
    service: &Service,
    account: TenantId,
    typed: Option<IdArg>,
) -> Result<Option<Id<R::Record>>, Failure> {
    match typed {
        Some(id) => Ok(Some(id_in::<R>(service, account, &id).await?.into())),
        None => Ok(None),
    }
}

/// Returns the only record of an account that is called so: by its whole number, email address or name, in any case. `None`
/// if none is.
///
/// # Errors
/// Several records are called so, or none is and others are similar: they are listed.
async fn id_by_name<R: Lookup>(service: &Service, account: TenantId, name: &str) -> Result<Option<Uuid>, Failure> {
    // Webhooks, deliveries and keys have ids only.
    let Some(kind) = RecordKind::from_text(R::KIND.as_str()) else { return Ok(None) };
    let found = service.find(account, texts::parse(name)?).await?;
    let is_all = found.is_complete && found.data.len() < MAX_HITS;
    let similar: Vec<&Hit> = found.data.iter().filter(|hit| hit.kind == kind).collect();
    let name = name.to_lowercase();
    let is_email = name.contains('@');
    let exact: Vec<&Hit> = similar.iter().copied().filter(|hit| is_called(hit, &name, is_email)).collect();
    let (word, plural) = (R::KIND, R::PLURAL);
    match exact[..] {
        // Those with a number or an email address come before all others, so none of them is missing.
        [only] if is_all || is_email || matches!(kind, RecordKind::Invoice | RecordKind::Job) => Ok(Some(only.id)),
        // A part of an id has a message of its own.
        [] if !found.is_complete && IdPart::parse(&name).is_none() => {
            let reason = format!(
                "No {word} that is called {name} was found yet, as many records changed just now; give the id, or repeat the \
                 command in some seconds."
            );
            Err(Failure::new(Exit::NotFound, reason))
        }
        [] if similar.is_empty() => Ok(None),
        [] => {
            let reason = format!("No {word} is called {name}; these {plural} are similar:{}", hits(&similar));
            Err(Failure::new(Exit::NotFound, reason))
        }
        [_] => {
            let reason =
                format!("There may be several {plural} that are called {name}; give the id:{}", hits(&similar));
            Err(Failure::new(Exit::Refused, reason))
        }
        [..] => {
            let count = exact.len();
            let reason = format!("{count} {plural} are called {name}; give the id of one of them:{}", hits(&exact));
            Err(Failure::new(Exit::Refused, reason))
        }
    }
}

/// Returns whether a text in lower case is all of what a record is called.
fn is_called(hit: &Hit, name: &str, is_email: bool) -> bool {
    hit.title.to_lowercase() == name || is_email && hit.detail.split(" · ").any(|detail| detail.to_lowercase() == name)
}

/// Lists records, one per line.
fn hits(hits: &[&Hit]) -> String {
    hits.iter().map(|hit| format!("\n  {}  {}  {}", hit.id, plain(&hit.title), plain(&hit.detail))).collect()
}

/// Returns the only one that has a part of an id. `None` stands for too many to search.
fn only<T>(
    found: Option<Vec<T>>,
    name: &str,
    plural: &str,
    id: &IdArg,
    nothing: impl FnOnce() -> String,
) -> Result<T, Failure> {
    let Some(found) = found else {
        let reason = format!(
            "No {name} has an id that begins with {id}, and there are too many {plural} to look for one that ends with it; \
             give the whole id."
        );
        return Err(Failure::new(Exit::NotFound, reason));
    };
    single_match(
        found,
        || Failure::new(Exit::NotFound, nothing()),
        |found| {
            let count = match found.len() {
                count if count < MAX_LIMIT as usize => count.to_string(),
                _ => format!("{MAX_LIMIT} or more"),
            };
            format!("{count} {plural} have an id that begins or ends with {id}; give more of the id.")
        },
    )
}

/// Returns the only record that was found.
///
/// # Errors
/// There is none, or there are several.
pub(super) fn single_match<T>(
    mut found: Vec<T>,
    nothing: impl FnOnce() -> Failure,
    several: impl FnOnce(&[T]) -> String,
) -> Result<T, Failure> {
    match found.len() {
        0 => Err(nothing()),
        1 => Ok(found.remove(0)),
        _ => Err(Failure::new(Exit::Refused, several(&found))),
    }
}

/// Returns the failure of a lookup in an account that found nothing.
pub(super) fn nothing_in<R: Lookup>(account: TenantId, id: &IdArg) -> Failure {
    let name = R::KIND;
    Failure::new(
        Exit::NotFound,
        format!("Account {account} has no {name} {id}; `svc {name} list` lists its {}.", R::PLURAL),
    )
}

/// Lists accounts, one per line.
fn listing(accounts: &[Account]) -> String {
    accounts.iter().map(|account| format!("\n  {}  {}", account.id, plain(&account.name))).collect()
}
