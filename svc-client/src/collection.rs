//! The operations that all collections share.

use std::fmt;
use std::marker::PhantomData;

use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use svc_core::input::ToBody;
use svc_core::resources::crud::{Create, Update};
use svc_core::values::Id;
use uuid::Uuid;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::etag::{ETag, Versioned};
use crate::list::List;
use crate::records::{Creatable, Deletable, Record, Updatable};
use crate::transport::{Request, Response};

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The records of one kind: the contacts of the account, or its jobs.
///
/// # Examples
///
/// ```no_run
/// use svc_client::prelude::*;
///
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let contacts = client.contacts();
/// let ada = contacts.create(&ContactCreate::new("ada@example.com".parse()?)).await?;
/// let city = ContactDetails { city: Patch::Set(Some("Perth".parse()?)), ..Default::default() };
/// let change = ContactUpdate { details: city, ..Default::default() };
/// match contacts.update_if(&ada.etag, ada.id, &change).await {
///     Ok(ada) => println!("{:?}", ada.city),
///     Err(error) if error.code() == Some("precondition_failed") => println!("somebody else changed it"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(())
/// # }
/// ```
pub struct Collection<R> {
    client: Client,
    records: PhantomData<fn() -> R>,
}

/// A response with one record.
#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

impl<R: Record> Collection<R> {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, records: PhantomData }
    }

    /// Returns the record with this id.
    ///
    /// # Errors
    /// `not_found` if the account has no such record, and any other [`Error`].
    pub async fn get(&self, id: Id<R>) -> Result<Versioned<R>> {
        self.versioned(&self.send(self.to_one(Method::GET, id)).await?)
    }

    /// Returns the record with this id if its version is another one, and `None` if it is this one. `None` costs nothing of
    /// the rate limit.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_if_changed(&self, id: Id<R>, known: &ETag) -> Result<Option<Versioned<R>>> {
        let request = self.to_one(Method::GET, id).header(IF_NONE_MATCH, known.header()?);
        let response = self.send(request).await?;
        if response.status == StatusCode::NOT_MODIFIED { Ok(None) } else { self.versioned(&response).map(Some) }
    }

    /// Returns the list of the records, newest first, for its filters and its pages.
    pub fn list(&self) -> List<R> {
        List::new(self.clone())
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    fn to_one(&self, method: Method, id: Id<R>) -> Request {
        Request::new(method, self.client.url(&[R::COLLECTION, &id.to_string()]))
    }

    async fn send(&self, request: Request) -> Result<Response> {
        self.client.transport().send(request).await
    }

    fn versioned<T: DeserializeOwned>(&self, response: &Response) -> Result<Versioned<T>> {
        let env = &self.client.transport().env;
        let Envelope { data: record } = response.json(env)?;
        let etag = response.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        let etag = etag.map(ETag::new).ok_or_else(|| response.without("ETag", env))?;
        Ok(Versioned { record, etag })
    }
}

impl<R: Creatable> Collection<R> {
    /// Creates a record, with an `Idempotency-Key` of its own: however often the client has to send the request, the record
    /// is created once.
    ///
    /// # Errors
    /// `validation_failed` with all failing fields, and any other [`Error`]. After a
    /// [`TransportError`](crate::TransportError) the record may exist.
    pub async fn create(&self, new: &<R as Create>::Input) -> Result<Versioned<R::Created>> {
        let env = &self.client.transport().env;
        let key: Uuid = env.id(env.now());
        self.create_with_key(new, &key.to_string()).await
    }

    /// Creates a record under an `Idempotency-Key` of yours, such as the id of an order: 1 to 255 printable ASCII
    /// characters. Within 24 hours, a repeat of the same request returns the same record, also after a restart of your
    /// program.
    ///
    /// # Errors
    /// As [`create`](Self::create); `idempotency_key_reused` if the key was used with another request.
    pub async fn create_with_key(&self, new: &<R as Create>::Input, key: &str) -> Result<Versioned<R::Created>> {
        let is_valid = (1..=255).contains(&key.len()) && key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let value = HeaderValue::from_str(key).ok().filter(|_| is_valid).ok_or_else(|| {
            Error::InvalidArgument("an idempotency key must have 1 to 255 printable ASCII characters".into())
        })?;
        let request = Request::new(Method::POST, self.client.url(&[R::COLLECTION]));
        self.versioned(&self.send(request.header(IDEMPOTENCY_KEY, value).json(new.to_body())).await?)
    }
}

impl<R: Updatable> Collection<R> {
    /// Changes a record, whichever version it has.
    ///
    /// # Errors
    /// `not_found`, `validation_failed`, and any other [`Error`].
    pub async fn update(&self, id: Id<R>, change: &<R as Update>::Input) -> Result<Versioned<R>> {
        self.versioned(&self.send(self.to_one(Method::PATCH, id).json(change.to_body())).await?)
    }

    /// Changes a record if it has this version.
    ///
    /// # Errors
    /// As [`update`](Self::update), and `precondition_failed` if the record has another version. With more than one of
    /// [`attempts`](Error::attempts), that version may be the one of this change, whose response was lost: read the
    /// record.
    pub async fn update_if(&self, version: &ETag, id: Id<R>, change: &<R as Update>::Input) -> Result<Versioned<R>> {
        let request = self.to_one(Method::PATCH, id).header(IF_MATCH, version.header()?);
        self.versioned(&self.send(request.json(change.to_body())).await?)
    }
}

impl<R: Deletable> Collection<R> {
    /// Deletes a record, whichever version it has.
    ///
    /// # Errors
    /// `not_found`, unless an earlier attempt of this call may have deleted the record; and any other [`Error`].
    pub async fn delete(&self, id: Id<R>) -> Result<()> {
        self.send(self.to_one(Method::DELETE, id)).await.map(|_| ())
    }

    /// Deletes a record if it has this version.
    ///
    /// # Errors
    /// As [`delete`](Self::delete), and `precondition_failed` if the record has another version.
    pub async fn delete_if(&self, version: &ETag, id: Id<R>) -> Result<()> {
        self.send(self.to_one(Method::DELETE, id).header(IF_MATCH, version.header()?)).await.map(|_| ())
    }
}

impl<R> Clone for Collection<R> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), records: PhantomData }
    }
}

impl<R: Record> fmt::Debug for Collection<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Collection").field(&R::COLLECTION).finish()
    }
}
