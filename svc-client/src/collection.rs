//! The operations that all collections share.

use std::fmt;
use std::marker::PhantomData;

use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderValue, Method, StatusCode};
use serde::de::DeserializeOwned;
use svc_core::input::{Input, ToBody};
use svc_core::operation::{Operation, Target};
use uuid::Uuid;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::etag::{ETag, Versioned};
use crate::list::List;
use crate::records::{Creatable, Deletable, Readable, Record, Updatable};
use crate::transport::{Request, Response};

/// The records of one kind: the contacts of the account, or its jobs.
///
/// `C` is the client by which it is reached. A collection of the [`Platform`](crate::Platform) has more operations than
/// the same one of a [`Client`], such as the steps of invoices.
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
pub struct Collection<R, C = Client> {
    client: Client,
    /// The key of the POSTs, if they do not each get one of their own.
    idempotency_key: Option<HeaderValue>,
    kind: PhantomData<fn() -> (R, C)>,
}

impl<R: Record, C> Collection<R, C> {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, idempotency_key: None, kind: PhantomData }
    }

    /// Returns the list of the records, newest first, for its filters and its pages. Accounts, API keys and members are
    /// listed in another order, which the documentation of the platform API tells.
    pub fn list(&self) -> List<R, C> {
        List::new(self.clone())
    }

    /// Returns the collection for one POST under an `Idempotency-Key` of yours, such as the id of an order: 1 to 255
    /// printable ASCII characters. Within 24 hours, a repeat of the same request does nothing and gets the same response,
    /// also after a restart of your program. Without it, each POST has a new key, which covers the retries of one call.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use svc_client::platform::prelude::*;
    ///
    /// # async fn example(account: AccountClient, invoice: InvoiceId) -> Result<(), Error> {
    /// account.invoices().with_idempotency_key("bank-transfer-4711")?.pay(invoice, &PaymentCreate::default()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the key is not valid. `idempotency_key_reused` of the POST, if the key was used with
    /// another request.
    pub fn with_idempotency_key(&self, key: &str) -> Result<Self> {
        let is_valid = (1..=255).contains(&key.len()) && key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let value = HeaderValue::from_str(key).ok().filter(|_| is_valid).ok_or_else(|| {
            Error::InvalidArgument("an idempotency key must have 1 to 255 printable ASCII characters".into())
        })?;
        Ok(Self { idempotency_key: Some(value), ..self.clone() })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Calls an operation. `id` is that of the record in its path.
    pub(crate) async fn call<K: Target, I, O>(
        &self,
        operation: &Operation<K, I, O>,
        id: Option<Uuid>,
        input: &I,
    ) -> Result<O>
    where
        I: Input + ToBody + Clone,
        O: DeserializeOwned + Send,
    {
        let response = self.client.send(operation, id, input, self.idempotency_key.as_ref()).await?;
        self.client.output(operation, &response)
    }

    /// Calls an operation whose response has the version of a record.
    pub(crate) async fn call_versioned<K: Target, I, O>(
        &self,
        operation: &Operation<K, I, O>,
        id: Option<Uuid>,
        input: &I,
    ) -> Result<Versioned<O>>
    where
        I: Input + ToBody + Clone,
        O: DeserializeOwned + Send,
    {
        self.versioned(&self.client.send(operation, id, input, self.idempotency_key.as_ref()).await?)
    }

    fn to_one(&self, method: Method, id: R::Id) -> Request {
        Request::new(method, self.client.url(&[R::PATH, &id.to_string()]))
    }

    async fn send_request(&self, request: Request) -> Result<Response> {
        self.client.transport().send(request).await
    }

    /// Reads a record and its version.
    fn versioned<T: DeserializeOwned>(&self, response: &Response) -> Result<Versioned<T>> {
        let record = self.client.data(response)?;
        let etag = response.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        let etag = etag.map(ETag::new).ok_or_else(|| response.without("ETag", &self.client.transport().env))?;
        Ok(Versioned { record, etag })
    }
}

impl<R: Readable, C> Collection<R, C> {
    /// Returns the record with this id.
    ///
    /// # Errors
    /// `not_found` if the account has no such record, and any other [`Error`].
    pub async fn get(&self, id: R::Id) -> Result<Versioned<R::Full>> {
        self.versioned(&self.send_request(self.to_one(Method::GET, id)).await?)
    }

    /// Returns the record with this id if its version is another one, and `None` if it is this one. `None` costs nothing of
    /// the rate limit.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_if_changed(&self, id: R::Id, known: &ETag) -> Result<Option<Versioned<R::Full>>> {
        let request = self.to_one(Method::GET, id).header(IF_NONE_MATCH, known.header()?);
        let response = self.send_request(request).await?;
        if response.status == StatusCode::NOT_MODIFIED { Ok(None) } else { self.versioned(&response).map(Some) }
    }
}

impl<R: Creatable<C>, C> Collection<R, C> {
    /// Creates a record, with an `Idempotency-Key` of its own: however often the client has to send the request, the record
    /// is created once.
    ///
    /// # Errors
    /// `validation_failed` with all failing fields, and any other [`Error`]. After a
    /// [`TransportError`](crate::TransportError) the record may exist.
    pub async fn create(&self, new: &R::Input) -> Result<Versioned<R::Created>> {
        let key = self.idempotency_key.clone().map_or_else(|| self.client.new_idempotency_key(), Ok)?;
        let request = Request::new(Method::POST, self.client.url(&[R::PATH])).idempotency_key(key);
        self.versioned(&self.send_request(request.json(new.to_body())).await?)
    }

    /// Creates a record under an `Idempotency-Key` of yours, see
    /// [`with_idempotency_key`](Self::with_idempotency_key). A repeat of the same request returns the same record.
    ///
    /// # Errors
    /// As [`create`](Self::create); `idempotency_key_reused` if the key was used with another request.
    pub async fn create_with_key(&self, new: &R::Input, key: &str) -> Result<Versioned<R::Created>> {
        self.with_idempotency_key(key)?.create(new).await
    }
}

impl<R: Updatable<C>, C> Collection<R, C> {
    /// Changes a record, whichever version it has.
    ///
    /// # Errors
    /// `not_found`, `validation_failed`, and any other [`Error`].
    pub async fn update(&self, id: R::Id, change: &R::Change) -> Result<Versioned<R>> {
        self.versioned(&self.send_request(self.to_one(Method::PATCH, id).json(change.to_body())).await?)
    }

    /// Changes a record if it has this version.
    ///
    /// # Errors
    /// As [`update`](Self::update), and `precondition_failed` if the record has another version. With more than one of
    /// [`attempts`](Error::attempts), that version may be the one of this change, whose response was lost: read the
    /// record.
    pub async fn update_if(&self, version: &ETag, id: R::Id, change: &R::Change) -> Result<Versioned<R>> {
        let request = self.to_one(Method::PATCH, id).header(IF_MATCH, version.header()?);
        self.versioned(&self.send_request(request.json(change.to_body())).await?)
    }
}

impl<R: Deletable, C> Collection<R, C> {
    /// Deletes a record, whichever version it has.
    ///
    /// # Errors
    /// `not_found`, unless an earlier attempt of this call may have deleted the record; and any other [`Error`].
    pub async fn delete(&self, id: R::Id) -> Result<()> {
        self.send_request(self.to_one(Method::DELETE, id)).await.map(|_| ())
    }

    /// Deletes a record if it has this version.
    ///
    /// # Errors
    /// As [`delete`](Self::delete), and `precondition_failed` if the record has another version.
    pub async fn delete_if(&self, version: &ETag, id: R::Id) -> Result<()> {
        self.send_request(self.to_one(Method::DELETE, id).header(IF_MATCH, version.header()?)).await.map(|_| ())
    }
}

impl<R, C> Clone for Collection<R, C> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), idempotency_key: self.idempotency_key.clone(), kind: PhantomData }
    }
}

impl<R: Record, C> fmt::Debug for Collection<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Collection").field(&R::PATH).finish()
    }
}
