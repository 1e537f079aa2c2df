//! What describes an operation of an API, for everything that offers or calls it.
//!
//! An [`Operation`] is written once, in [`operations`](super::operations). The server adds the texts of its document and
//! serves it; the typed client sends its input to its path; `svc` beside a database runs it on the store.

use std::borrow::Cow;
use std::fmt;

use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::SerializeMap;
use uuid::Uuid;

use crate::error::Error;
use crate::input::schema::{self, FieldSchema};
use crate::input::{Fields, Input, ToBody};
use crate::store::{Store, Tx};
use crate::values::{Id, TenantId};

/// The method of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads. The input is in the query.
    Get,
    /// Creates, or does something with a record. The input is in the body, if there is one.
    Post,
    /// Changes the fields that are sent.
    Patch,
    /// Deletes.
    Delete,
}

/// What the path of an operation names: nothing, an account, a record of an account, or one without an account.
pub trait Target: Copy + Send + Sync + 'static {
    /// Whether the path names an account.
    const HAS_ACCOUNT: bool = true;
    /// Whether the path names a record.
    const HAS_ID: bool = false;

    /// Returns what a path with these ids names. The ids that it does not name are ignored.
    fn new(account: TenantId, id: Uuid) -> Self;

    /// Returns the account, if the path names one.
    fn account(self) -> Option<TenantId>;

    /// Returns the id of the record, if the path names one.
    fn id(self) -> Option<Uuid> {
        None
    }
}

impl Target for () {
    const HAS_ACCOUNT: bool = false;

    fn new(_: TenantId, _: Uuid) -> Self {}

    fn account(self) -> Option<TenantId> {
        None
    }
}

impl Target for TenantId {
    fn new(account: TenantId, _: Uuid) -> Self {
        account
    }

    fn account(self) -> Option<TenantId> {
        Some(self)
    }
}

impl<R: 'static> Target for Id<R> {
    const HAS_ACCOUNT: bool = false;
    const HAS_ID: bool = true;

    fn new(_: TenantId, id: Uuid) -> Self {
        id.into()
    }

    fn account(self) -> Option<TenantId> {
        None
    }

    fn id(self) -> Option<Uuid> {
        Some(self.uuid())
    }
}

impl<R: 'static> Target for (TenantId, Id<R>) {
    const HAS_ID: bool = true;

    fn new(account: TenantId, id: Uuid) -> Self {
        (account, id.into())
    }

    fn account(self) -> Option<TenantId> {
        Some(self.0)
    }

    fn id(self) -> Option<Uuid> {
        Some(self.1.uuid())
    }
}

/// Runs an operation. Every async closure of this form does, if its future can be sent between threads.
pub trait Run<'t, K, I: 't, O> {
    /// Runs the operation on its target, with its input, inside a transaction.
    fn run(&self, tx: &'t mut dyn Tx, target: K, input: &'t I) -> BoxFuture<'t, Result<O, Error>>;
}

impl<'t, K, I, O, F, Fut> Run<'t, K, I, O> for F
where
    I: 't,
    F: Fn(&'t mut dyn Tx, K, &'t I) -> Fut,
    Fut: Future<Output = Result<O, Error>> + Send + 't,
{
    fn run(&self, tx: &'t mut dyn Tx, target: K, input: &'t I) -> BoxFuture<'t, Result<O, Error>> {
        Box::pin(self(tx, target, input))
    }
}

/// The async closure of an operation.
pub trait OperationFn<K, I: 'static, O>:
    for<'t> AsyncFn(&'t mut dyn Tx, K, &'t I) -> Result<O, Error> + for<'t> Run<'t, K, I, O> + Send + Sync + 'static
{
}

impl<K, I: 'static, O, F> OperationFn<K, I, O> for F where
    F: for<'t> AsyncFn(&'t mut dyn Tx, K, &'t I) -> Result<O, Error> + for<'t> Run<'t, K, I, O> + Send + Sync + 'static
{
}

/// An operation on a target `K`, with an input `I` and an output `O`.
pub struct Operation<K: 'static, I: 'static, O: 'static> {
    /// The name of the operation in the OpenAPI document, in logs and in metrics.
    pub id: &'static str,
    /// The method.
    pub method: Method,
    /// The first segment of the path, after that of the account. Empty for an operation on the account itself.
    pub collection: &'static str,
    /// The last segment of the path, after the id of the record. Empty if there is none.
    pub action: &'static str,
    /// Whether the output is the member `data` of the response. Otherwise it is the response.
    pub is_wrapped: bool,
    is_dry_run: fn(&I) -> bool,
    run: &'static (dyn for<'t> Run<'t, K, I, O> + Send + Sync),
}

impl<K, I, O> Clone for Operation<K, I, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, I, O> Copy for Operation<K, I, O> {}

impl<K, I, O> fmt::Debug for Operation<K, I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Operation").field(&self.id).finish()
    }
}

impl<K: Target, I: Input + Clone, O: Send + 'static> Operation<K, I, O> {
    /// Describes an operation whose response has its output in `data`.
    pub const fn new(
        id: &'static str,
        method: Method,
        collection: &'static str,
        action: &'static str,
        run: &'static impl OperationFn<K, I, O>,
    ) -> Self {
        Self { id, method, collection, action, is_wrapped: true, is_dry_run: |_| false, run }
    }

    /// Makes the output the whole response.
    #[must_use]
    pub const fn unwrapped(self) -> Self {
        Self { is_wrapped: false, ..self }
    }

    /// Sets which inputs only try the operation. What it writes is then rolled back.
    #[must_use]
    pub const fn dry_run(self, is_dry_run: fn(&I) -> bool) -> Self {
        Self { is_dry_run, ..self }
    }

    /// Returns whether a request has an input. Only one without fields has no size.
    pub const fn has_input(&self) -> bool {
        size_of::<I>() > 0
    }

    /// Returns whether an input only tries the operation.
    pub fn is_dry_run(&self, input: &I) -> bool {
        (self.is_dry_run)(input)
    }

    /// Returns the path in the notation of OpenAPI, such as `/accounts/{account_id}/keys/{id}/revoke`.
    pub fn path(&self) -> String {
        let account = if K::HAS_ACCOUNT { "/accounts/{account_id}" } else { "" };
        let rest = self.segments(K::HAS_ID.then_some("{id}"));
        format!("{account}{}{rest}", if rest.is_empty() { "" } else { "/" })
    }

    /// Returns the path after that of the account, without a slash at its beginning. `id` is that of the record, if the path
    /// names one.
    pub fn segments(&self, id: Option<&str>) -> String {
        let segments = [Some(self.collection), id, Some(self.action)];
        segments.into_iter().flatten().filter(|segment| !segment.is_empty()).collect::<Vec<_>>().join("/")
    }

    /// Runs the operation inside a transaction.
    ///
    /// # Errors
    /// What the rules refuse, and [`Error::Store`].
    pub async fn run(&self, tx: &mut dyn Tx, target: K, input: &I) -> Result<O, Error> {
        self.run.run(tx, target, input).await
    }

    /// Runs the operation on a store, as a trusted caller that may do everything: in a transaction of its own, if the account
    /// exists.
    ///
    /// # Errors
    /// [`Error::UnknownTenant`], what the rules refuse, and [`Error::Store`].
    pub async fn run_on(&self, store: &dyn Store, target: K, input: I) -> Result<O, Error> {
        let is_dry_run = self.is_dry_run(&input);
        let call = (*self, target, input);
        match self.method {
            Method::Get => store.read(self.id, call, run_in_account).await,
            _ if is_dry_run => store.dry_run(self.id, call, run_in_account).await,
            _ => store.write(self.id, call, run_in_account).await,
        }
    }
}

/// Runs an operation, if the account of its path exists.
async fn run_in_account<K: Target, I: Input + Clone, O: Send + 'static>(
    tx: &mut dyn Tx,
    (operation, target, input): &(Operation<K, I, O>, K, I),
) -> Result<O, Error> {
    if let Some(account) = target.account() {
        if operation.method != Method::Get {
            tx.lock_tenant(account).await?;
        }
        if tx.tenant(account).await?.is_none() {
            return Err(Error::UnknownTenant(account));
        }
    }
    operation.run(tx, *target, input).await
}

/// No input.
impl Input for () {
    fn take(_: &mut Fields) -> Option<Self> {
        Some(())
    }
}

impl ToBody for () {
    fn write_fields<M: SerializeMap>(&self, _: &mut M) -> Result<(), M::Error> {
        Ok(())
    }
}

/// The query of a list: its page, and its filters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Listing<P, F> {
    /// The page.
    pub page: P,
    /// The filters.
    pub filter: F,
}

impl<P: Input, F: Input> Input for Listing<P, F> {
    fn take(fields: &mut Fields) -> Option<Self> {
        let (page, filter) = (P::take(fields), F::take(fields));
        Some(Self { page: page?, filter: filter? })
    }

    fn field_schemas(generator: &mut SchemaGenerator) -> Vec<FieldSchema> {
        let mut schemas = P::field_schemas(generator);
        schemas.extend(F::field_schemas(generator));
        schemas
    }
}

impl<P: ToBody, F: ToBody> ToBody for Listing<P, F> {
    fn write_fields<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
        self.page.write_fields(object)?;
        self.filter.write_fields(object)
    }
}

impl<P: Input, F: Input> JsonSchema for Listing<P, F> {
    fn schema_name() -> Cow<'static, str> {
        "Listing".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::input("The query of a list.", false, Self::field_schemas(generator))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::accounts::actor::{Actor, acting};
    use crate::env::Env;
    use crate::platform::AccountCreate;
    use crate::platform::operations::{self, LIST_AUDIT_LOG, Records};
    use crate::resources::contacts::{Contact, ContactCreate};
    use crate::store::memory::MemoryStore;
    use crate::values::Text;

    async fn a_caller_runs_operations() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Env::system()));
        let store = &*acting(store, Actor::Cli("ada".to_owned()));
        let account = AccountCreate::new(Text::parse("Harbour").unwrap());
        let account = operations::CREATE_ACCOUNT.run_on(store, (), account).await.unwrap().id;
        let create = async |account| {
            let contact = ContactCreate::new("ada@example.com".parse().unwrap());
            Records::<Contact>::CREATE.run_on(store, account, contact).await
        };
        let existing_id = create(account).await.unwrap().id.uuid();
        assert_eq!(create(account).await, Err(Error::EmailTaken { existing_id }));
        let unknown = TenantId(Uuid::from_u128(1));
        assert_eq!(create(unknown).await, Err(Error::UnknownTenant(unknown)));
        let log = LIST_AUDIT_LOG.run_on(store, account, Listing::default()).await.unwrap();
        let actors: Vec<&str> = log.data.iter().map(|entry| entry.actor.as_str()).collect();
        assert_eq!(actors, ["cli:ada", "cli:ada"]);
    }

    #[test]
    fn a_trusted_caller_runs_operations_on_a_store() {
        a_caller_runs_operations().now_or_never().unwrap();
    }

    #[test]
    fn the_path_follows_from_the_target() {
        assert_eq!(operations::CREATE_OPERATOR_LINK.path(), "/operator-links");
        assert_eq!(operations::GET_ACCOUNT.path(), "/accounts/{account_id}");
        assert_eq!(operations::REVOKE_KEY.path(), "/accounts/{account_id}/keys/{id}/revoke");
        assert_eq!(operations::REVOKE_KEY.segments(Some("1")), "keys/1/revoke");
        assert_eq!(operations::MARK_OVERDUE_INVOICES.path(), "/accounts/{account_id}/invoices/mark-overdue");
    }
}
