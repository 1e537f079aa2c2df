//! Operations whatever their types, for what offers all of them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use uuid::Uuid;

use super::outside::Outside;
use super::target::Method;
use super::texts::{Texts, TextsOf};
use crate::accounts::keys::Scope;
use crate::accounts::platform_keys::Area;
use crate::error::{Error, StoreError};
use crate::input::{Fields, Input};
use crate::store::Tx;
use crate::values::{EventKinds, TenantId, Timestamp};

/// The facts about an operation, whatever its types.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct About {
    /// The name of the operation in the OpenAPI document, in logs and in metrics.
    pub id: &'static str,
    /// The method.
    pub method: Method,
    /// The first segment of the path, after that of the account. Empty for an operation on the account itself.
    pub collection: &'static str,
    /// The last segment of the path, after the id of the record. Empty if there is none.
    pub action: &'static str,
    /// The group that lists the operation, mostly its collection.
    pub tag: &'static str,
    /// The area of the platform API that it belongs to.
    pub area: Area,
    /// Whether the path names an account, on the platform API.
    pub has_account: bool,
    /// Whether the path names a record.
    pub has_id: bool,
    /// Whether a request has an input.
    pub has_input: bool,
    /// Whether the output is the member `data` of the response. Otherwise it is the response.
    pub is_wrapped: bool,
    /// The meaning of a successful response.
    pub success: Success,
    /// The collection in whose path the created record is found.
    pub created_in: &'static str,
    /// The ETag of a successful response.
    pub etag: ETag,
    /// The operation that returns the record in question, with its ETag: `If-Match` is compared with it.
    pub current: Option<&'static dyn AnyOperation>,
    /// Whether the input may name the event kinds of the service.
    pub names_event_kinds: bool,
    /// Whether query parameters are ignored in place of refused.
    pub ignores_query: bool,
    pub(super) texts: TextsOf,
}

/// The meaning of a successful response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Success {
    /// That it was done.
    Ok,
    /// That a record was created.
    Created,
    /// That it was done, without a body.
    NoContent,
}

impl Success {
    /// Returns the status of HTTP.
    pub const fn status(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::Created => 201,
            Self::NoContent => 204,
        }
    }
}

/// The ETag of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ETag {
    /// There is none.
    None,
    /// That of this representation of a record.
    Own,
    /// That of the version of a record. A record without versions has that of its representation.
    Version,
    /// That with which the record is retrieved.
    Retrieved,
}

impl About {
    /// Returns the texts of the operation in a document.
    pub fn texts(&self) -> Texts {
        self.texts.texts()
    }

    /// Returns the scope that a key must have; on the platform API, in the area of the operation.
    pub fn scope(&self) -> Scope {
        if self.method == Method::Get { Scope::Read } else { Scope::Write }
    }

    /// Returns whether a request has a body.
    pub fn takes_body(&self) -> bool {
        self.has_input && self.method != Method::Get
    }

    /// Returns whether a successful response has an ETag.
    pub fn has_etag(&self) -> bool {
        self.success != Success::NoContent && self.etag != ETag::None
    }

    /// Returns whether a request takes `If-Match`.
    pub fn takes_if_match(&self) -> bool {
        self.current.is_some() && self.method != Method::Post
    }

    /// Returns the path in the notation of OpenAPI, such as `/accounts/{account_id}/keys/{id}/revoke`.
    pub fn path(&self) -> String {
        let account = if self.has_account { "/accounts/{account_id}" } else { "" };
        format!("{account}{}", self.path_in_account())
    }

    /// Returns the path after that of the account, as an API has it whose keys belong to one account.
    pub fn path_in_account(&self) -> String {
        let rest = self.segments(self.has_id.then_some("{id}"));
        format!("{}{rest}", if rest.is_empty() { "" } else { "/" })
    }

    /// Returns the path after that of the account, without a slash at its beginning. `id` is that of the record, if the path
    /// names one.
    pub fn segments(&self, id: Option<&str>) -> String {
        let segments = [Some(self.collection), id, Some(self.action)];
        segments.into_iter().flatten().filter(|segment| !segment.is_empty()).collect::<Vec<_>>().join("/")
    }
}

/// An operation whatever its types, for what offers all of them.
///
/// ```
/// use svc_core::platform::operations;
///
/// let reads = operations::public().into_iter().filter(|operation| !operation.takes_body());
/// assert!(reads.map(|operation| operation.path_in_account()).any(|path| path == "/contacts/{id}"));
/// ```
pub trait AnyOperation: Send + Sync + 'static {
    /// Returns what is known of it.
    fn about(&self) -> &About;

    /// Reads the input of a request.
    ///
    /// # Errors
    /// An [`InputError`] that names every mistake.
    fn parse(&'static self, request: Request<'_>) -> Result<Parsed, InputError>;

    /// Returns the schema of the input: of the query of a read, which is no component of the document, or of the body.
    fn input_schema(&self, generator: &mut SchemaGenerator) -> Schema;

    /// Returns the schema of a successful response; `None` if it has no body.
    fn output_schema(&self, generator: &mut SchemaGenerator) -> Option<Schema>;
}

impl Deref for dyn AnyOperation {
    type Target = About;

    fn deref(&self) -> &About {
        self.about()
    }
}

impl fmt::Debug for dyn AnyOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyOperation").field(&self.id).finish()
    }
}

/// The parts of a request that an input is read from.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The query string as it was sent, empty when there is none.
    pub query: &'a str,
    /// The body, empty for a read.
    pub body: &'a [u8],
    /// The event kinds of the service, which some inputs can name.
    pub event_kinds: &'a EventKinds,
}

impl Request<'_> {
    fn pairs(&self) -> Vec<(String, String)> {
        url::form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
    }

    /// Checks that there are no query parameters, which only lists have.
    pub(super) fn no_query(&self) -> Result<(), InputError> {
        match self.pairs().into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(InputError::UnknownParameter { name, meant: None }),
        }
    }

    /// Reads the query parameters, all of which the input takes.
    pub(super) fn query<I: Input>(&self) -> Result<I, InputError> {
        let mut fields = Fields::from_query(self.pairs());
        let taken = I::take(&mut fields);
        if let Some(name) = fields.first_unknown() {
            return Err(InputError::UnknownParameter { name: name.to_owned(), meant: fields.meant_by(name) });
        }
        Ok(fields.finish(taken)?)
    }
}

/// Why an input cannot be read.
#[derive(Debug)]
pub enum InputError {
    /// Fields are missing or wrong, or the body is.
    Refused(Error),
    /// The operation has no such query parameter.
    UnknownParameter {
        /// Its name.
        name: String,
        /// The parameter that was probably meant.
        meant: Option<&'static str>,
    },
}

impl From<Error> for InputError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// A request whose input was read.
#[derive(Clone)]
pub struct Parsed {
    /// Runs the operation.
    pub call: Arc<dyn Call>,
    /// The memory that the response needs, in records of 64 KiB. A write counts none.
    pub memory: u32,
    /// Whether what the operation writes is rolled back, so that its response says only what it would have done.
    pub is_dry_run: bool,
    /// The checks that must be made before it runs.
    pub outside: Outside,
}

impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parsed").field("memory", &self.memory).finish_non_exhaustive()
    }
}

/// An operation with its input.
pub trait Call: Send + Sync {
    /// Runs it for an account, on the record with this id. The store may call it again to repeat the transaction.
    fn run<'t>(&'t self, tx: &'t mut dyn Tx, account: TenantId, id: Uuid) -> BoxFuture<'t, Result<Done, Error>>;
}

/// The name of a version of a record: its id, and when it last changed.
pub type Version = (Uuid, Timestamp);

/// The result of an operation.
pub struct Done {
    /// The id of the created record.
    pub created: Option<Uuid>,
    /// The version of the record.
    pub version: Option<Version>,
    pub(super) write: Box<dyn FnOnce() -> Result<Vec<u8>, serde_json::Error> + Send>,
}

impl Done {
    /// Writes the output as JSON, as a client sees it.
    ///
    /// # Errors
    /// [`StoreError::Internal`], if it cannot be written.
    pub fn into_json(self) -> Result<Vec<u8>, StoreError> {
        (self.write)().map_err(|error| StoreError::Internal(error.to_string()))
    }
}

/// Writes an output as a client sees it.
pub(crate) trait View<O>: Send + Sync {
    fn write(&self, output: O, is_wrapped: bool) -> Result<Vec<u8>, serde_json::Error>;

    fn schema(&self, is_wrapped: bool, generator: &mut SchemaGenerator) -> Schema;
}

/// An output in another form.
pub(crate) struct Viewed<O, S>(pub(crate) fn(O) -> S);

impl<O, S: Serialize + JsonSchema> View<O> for Viewed<O, S> {
    fn write(&self, output: O, is_wrapped: bool) -> Result<Vec<u8>, serde_json::Error> {
        let data = self.0(output);
        if is_wrapped { serde_json::to_vec(&Data { data }) } else { serde_json::to_vec(&data) }
    }

    fn schema(&self, is_wrapped: bool, generator: &mut SchemaGenerator) -> Schema {
        if is_wrapped { generator.subschema_for::<Data<S>>() } else { generator.subschema_for::<S>() }
    }
}

/// A response body with a single record.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}Response")]
struct Data<T> {
    /// The record that the operation returns.
    data: T,
}
