//! One operation of an API: the constant that everything reads that offers or calls it.
//!
//! An [`Operation`] stands beside its rule and says all of it: what it is called, where it is found, who may call it, what it takes
//! and returns, and its texts. Router, limits, documents and tools read it through [`AnyOperation`], whatever its types; the typed
//! client sends its input to its path; `svc` beside a database runs it on the store.

mod any;
mod listing;
mod outside;
mod target;
mod texts;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use uuid::Uuid;

pub use self::any::{About, AnyOperation, Call, Done, ETag, InputError, Parsed, Request, Success, Version};
pub(crate) use self::any::{View, Viewed};
pub use self::listing::Listing;
pub use self::outside::Outside;
pub use self::target::{Method, Target};
use self::texts::TextsOf;
pub use self::texts::{OperationText, Profile, Texts};
use crate::accounts::platform_keys::Area;
use crate::error::Error;
use crate::input::Input;
use crate::store::Tx;
use crate::values::TenantId;

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
///
/// ```
/// use svc_core::operation::{Method, Success};
/// use svc_core::platform::operations::CREATE_KEY;
///
/// assert_eq!((CREATE_KEY.id, CREATE_KEY.method, CREATE_KEY.success), ("createKey", Method::Post, Success::Created));
/// assert_eq!(CREATE_KEY.path(), "/accounts/{account_id}/keys");
/// assert_eq!(CREATE_KEY.texts().summary, "Create an API key");
/// ```
pub struct Operation<K: 'static, I: 'static, O: 'static> {
    about: About,
    is_dry_run: fn(&I) -> bool,
    /// Returns the memory that a read needs for its response, in records of 64 KiB.
    memory: fn(&I) -> u32,
    check: fn(&I) -> Result<(), Error>,
    outside: fn(&I) -> Outside,
    /// Returns the id of the created record.
    created: Option<fn(&O) -> Uuid>,
    /// Returns what names a version of the record.
    version: Option<fn(&O) -> Option<Version>>,
    view: &'static dyn View<O>,
    run: &'static (dyn for<'t> Run<'t, K, I, O> + Send + Sync),
}

impl<K, I, O> Deref for Operation<K, I, O> {
    type Target = About;

    fn deref(&self) -> &About {
        &self.about
    }
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

impl<K, I, O> Operation<K, I, O>
where
    K: Target,
    I: Input + Clone,
    O: Serialize + JsonSchema + Send + 'static,
{
    /// Describes an operation whose response has its output in `data`.
    pub const fn new(
        id: &'static str,
        method: Method,
        collection: &'static str,
        action: &'static str,
        run: &'static impl OperationFn<K, I, O>,
    ) -> Self {
        let about = About {
            id,
            method,
            collection,
            action,
            tag: if collection.is_empty() { "accounts" } else { collection },
            area: Area::Records,
            has_account: K::HAS_ACCOUNT,
            has_id: K::HAS_ID,
            // Only an input without fields has no size.
            has_input: size_of::<I>() > 0,
            is_wrapped: true,
            success: if matches!(method, Method::Delete) { Success::NoContent } else { Success::Ok },
            created_in: collection,
            etag: ETag::None,
            current: None,
            names_event_kinds: false,
            ignores_query: false,
            texts: TextsOf::Fixed { summary: "", description: "", success: "" },
        };
        Self {
            about,
            is_dry_run: |_| false,
            memory: |_| 1,
            check: |_| Ok(()),
            outside: |_| Outside { webhook: None, certificate: None, authority: None, stream: None },
            created: None,
            version: None,
            view: const { &Viewed::<O, O>(|output| output) },
            run,
        }
    }

    /// Adds its title, its description, and the description of its response.
    #[must_use]
    pub const fn described(mut self, summary: &'static str, description: &'static str, success: &'static str) -> Self {
        self.about.texts = TextsOf::Fixed { summary, description, success };
        self
    }

    /// Adds the texts that every resource has.
    #[must_use]
    pub(crate) const fn described_by(mut self, texts: fn(&Profile) -> Texts, profile: &'static Profile) -> Self {
        self.about.texts = TextsOf::OfResource(texts, profile);
        self
    }

    /// Puts it into an area of the platform API. Without this it is in that of records.
    #[must_use]
    pub const fn in_area(mut self, area: Area) -> Self {
        self.about.area = area;
        self
    }

    /// Lists the operation under another name than the first segment of its path.
    #[must_use]
    pub const fn tagged(mut self, tag: &'static str) -> Self {
        self.about.tag = tag;
        self
    }

    /// Makes the output the whole response.
    #[must_use]
    pub const fn unwrapped(mut self) -> Self {
        self.about.is_wrapped = false;
        self
    }

    /// Sets which inputs are a dry run of the operation. Its writes are then rolled back.
    #[must_use]
    pub const fn dry_run(mut self, is_dry_run: fn(&I) -> bool) -> Self {
        self.is_dry_run = is_dry_run;
        self
    }

    /// Responds with 201.
    #[must_use]
    pub const fn creates(mut self) -> Self {
        self.about.success = Success::Created;
        self
    }

    /// Responds with 201, and the path of the record with this id.
    #[must_use]
    pub(crate) const fn creating(mut self, id: fn(&O) -> Uuid) -> Self {
        self.created = Some(id);
        self.creates()
    }

    /// Adds the ETag of the version of a record.
    #[must_use]
    pub(crate) const fn with_version_of(mut self, version: fn(&O) -> Option<Version>) -> Self {
        self.about.etag = ETag::Version;
        self.version = Some(version);
        self
    }

    /// Adds the ETag of the response.
    #[must_use]
    pub const fn with_etag(mut self) -> Self {
        self.about.etag = ETag::Own;
        self.version = None;
        self
    }

    /// Takes the ETag with which this operation retrieves the record as `If-Match`.
    #[must_use]
    pub const fn if_match(mut self, get: &'static dyn AnyOperation) -> Self {
        self.about.current = Some(get);
        self
    }

    /// Adds the ETag of the record, as this operation retrieves it. A PATCH and a DELETE take it as `If-Match`.
    #[must_use]
    pub const fn retrieved_by(mut self, get: &'static dyn AnyOperation) -> Self {
        self.about.etag = ETag::Retrieved;
        self.version = None;
        self.if_match(get)
    }

    /// Responds with 201, the path of the record with this id, and the ETag with which this operation retrieves it.
    #[must_use]
    pub const fn creates_record(self, id: fn(&O) -> Uuid, get: &'static dyn AnyOperation) -> Self {
        self.creating(id).retrieved_by(get)
    }

    /// Responds as [`creates_record`](Self::creates_record) with a record of another collection than that of the path.
    #[must_use]
    pub const fn creates_in(
        mut self,
        collection: &'static str,
        id: fn(&O) -> Uuid,
        get: &'static dyn AnyOperation,
    ) -> Self {
        self.about.created_in = collection;
        self.creates_record(id, get)
    }

    /// Sets the memory that a read needs for its response, in records of 64 KiB.
    #[must_use]
    pub const fn reading(mut self, memory: fn(&I) -> u32) -> Self {
        self.memory = memory;
        self
    }

    /// Sets a check of the input that its fields do not make.
    #[must_use]
    pub const fn checking(mut self, check: fn(&I) -> Result<(), Error>) -> Self {
        self.check = check;
        self
    }

    /// Sets what of the input must be checked before the operation runs.
    #[must_use]
    pub const fn checked_outside(mut self, outside: fn(&I) -> Outside) -> Self {
        self.outside = outside;
        self
    }

    /// Lets the input name the event kinds of the service.
    #[must_use]
    pub const fn with_event_kinds(mut self) -> Self {
        self.about.names_event_kinds = true;
        self
    }

    /// Ignores query parameters in place of refusing them.
    #[must_use]
    pub const fn ignoring_query(mut self) -> Self {
        self.about.ignores_query = true;
        self
    }

    /// Shows clients the output in another form.
    #[must_use]
    pub(crate) const fn viewed(mut self, view: &'static Viewed<O, impl Serialize + JsonSchema + 'static>) -> Self {
        self.view = view;
        self
    }
}

impl<K: Target, I: Input + Clone, O: Send + 'static> Operation<K, I, O> {
    /// Returns whether an input only tries the operation.
    pub fn is_dry_run(&self, input: &I) -> bool {
        (self.is_dry_run)(input)
    }

    /// Runs the operation inside a transaction.
    ///
    /// # Errors
    /// The refusals of the rules, and [`Error::Store`].
    pub async fn run(&self, tx: &mut dyn Tx, target: K, input: &I) -> Result<O, Error> {
        self.run.run(tx, target, input).await
    }
}

struct CallOf<K: 'static, I: 'static, O: 'static> {
    operation: &'static Operation<K, I, O>,
    input: I,
    target: PhantomData<fn() -> K>,
}

impl<K, I, O> Call for CallOf<K, I, O>
where
    K: Target,
    I: Input + Clone,
    O: Serialize + JsonSchema + Send + 'static,
{
    fn run<'t>(&'t self, tx: &'t mut dyn Tx, account: TenantId, id: Uuid) -> BoxFuture<'t, Result<Done, Error>> {
        Box::pin(async move {
            let operation = self.operation;
            let output = operation.run.run(tx, K::new(account, id), &self.input).await?;
            Ok(Done {
                created: operation.created.map(|created| created(&output)),
                version: operation.version.and_then(|version| version(&output)),
                write: Box::new(move || operation.view.write(output, operation.is_wrapped)),
            })
        })
    }
}

impl<K, I, O> AnyOperation for Operation<K, I, O>
where
    K: Target,
    I: Input + Clone,
    O: Serialize + JsonSchema + Send + 'static,
{
    fn about(&self) -> &About {
        &self.about
    }

    fn parse(&'static self, request: Request<'_>) -> Result<Parsed, InputError> {
        let input: I = if self.has_input && self.method == Method::Get {
            request.query()?
        } else {
            if !self.ignores_query {
                request.no_query()?;
            }
            match (self.has_input, self.names_event_kinds) {
                (false, _) => I::from_members(Vec::new())?,
                (true, false) => I::from_body(request.body)?,
                (true, true) => I::from_body_with_kinds(request.body, request.event_kinds)?,
            }
        };
        (self.check)(&input)?;
        Ok(Parsed {
            memory: if self.method == Method::Get { (self.memory)(&input) } else { 0 },
            is_dry_run: self.is_dry_run(&input),
            outside: (self.outside)(&input),
            call: Arc::new(CallOf { operation: self, input, target: PhantomData }),
        })
    }

    fn input_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        if self.method == Method::Get { I::json_schema(generator) } else { generator.subschema_for::<I>() }
    }

    fn output_schema(&self, generator: &mut SchemaGenerator) -> Option<Schema> {
        (self.success != Success::NoContent).then(|| self.view.schema(self.is_wrapped, generator))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::accounts::actor::Actor;
    use crate::platform::AccountCreate;
    use crate::platform::operations::{self, LIST_AUDIT_LOG, Records};
    use crate::resources::contacts::{Contact, ContactCreate};
    use crate::service::Svc;
    use crate::values::Text;

    async fn a_caller_runs_operations() {
        let svc = Svc::in_memory().acting_as(Actor::Cli("ada".to_owned()));
        let account = AccountCreate::new(Text::parse("Harbour").unwrap());
        let account = svc.call(&operations::CREATE_ACCOUNT, (), account).await.unwrap().id;
        let create = async |account| {
            let contact = ContactCreate::new("ada@example.com".parse().unwrap());
            svc.call(&Records::<Contact>::CREATE, account, contact).await
        };
        let existing_id = create(account).await.unwrap().id.uuid();
        assert_eq!(create(account).await, Err(Error::EmailTaken { existing_id }));
        let unknown = TenantId(Uuid::from_u128(1));
        assert_eq!(create(unknown).await, Err(Error::UnknownTenant(unknown)));
        let log = svc.call(&LIST_AUDIT_LOG, account, Listing::default()).await.unwrap();
        let actors: Vec<&str> = log.data.iter().map(|entry| entry.actor.as_str()).collect();
        assert_eq!(actors, ["cli:ada", "cli:ada"]);
    }

    #[test]
    fn a_trusted_caller_runs_operations() {
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
