//! The client, and its way to the collections.

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use svc_core::input::{Input, ToBody};
use svc_core::operation::{self, Operation, Target};
use svc_core::pages::Page;
use svc_core::resources::Resource;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::values::{Secret, TenantId, Timestamp};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use url::Url;
use uuid::Uuid;

use crate::builder::ClientBuilder;
use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::mcp::Mcp;
use crate::records::Record;
use crate::tokens::TokenSource;
use crate::transport::{Credential, Request, Response, Transport};

/// A client of the API for one API key or one access of an app, and so for one account. Its clones share their connections.
///
/// # Cancel safety
///
/// Every call is a future that can be dropped. Whether the service did what was asked is then not known, as after a lost
/// connection: create with [`create_with_key`](Collection::create_with_key) what you may have to repeat.
#[derive(Clone)]
pub struct Client {
    /// The URL that the collections are below.
    root: Arc<Url>,
    transport: Arc<Transport>,
}

/// The result of [`Client::ping`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Ping {
    /// Always true.
    pub ok: bool,
    /// The account of the key.
    pub tenant_id: TenantId,
    /// The time of the service.
    pub timestamp: Timestamp,
}

impl Client {
    /// Returns the settings of a client for the service at this URL, such as `https://svc.example.com`, with this API key.
    /// An application that mounts the service under a path of its own has that path in its URL.
    pub fn builder(url: &str, key: &str) -> ClientBuilder {
        ClientBuilder::new(url, Credential::Key(Secret::new(key)))
    }

    /// Returns the settings of a client for the service at this URL that works on an account as an app, with its tokens.
    pub fn builder_with_tokens(url: &str, tokens: TokenSource) -> ClientBuilder {
        ClientBuilder::new(url, Credential::Tokens(Box::new(tokens)))
    }

    /// Returns a client of what is below this path of the service.
    pub(crate) fn new(base: &Url, path: &str, transport: Arc<Transport>) -> Self {
        let mut root = base.clone();
        root.set_path(&format!("{}{path}/", root.path()));
        Self { root: Arc::new(root), transport }
    }

    /// Returns the way to the tools for assistants (Model Context Protocol), which the operator has to switch on.
    /// With `read_only` there are none that change anything.
    pub fn mcp(&self, read_only: bool) -> Mcp {
        // Below the service, and not below a version of its API.
        let mut base = Url::clone(&self.root);
        let path = base.path().strip_suffix("api/v1/").unwrap_or("/").to_owned();
        base.set_path(&path);
        Mcp::new(&base, "mcp", read_only, Arc::clone(&self.transport))
    }

    /// Checks the key and the connection. The platform API has no such operation.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn ping(&self) -> Result<Ping> {
        let response = self.transport.send(Request::new(Method::GET, self.url(&["ping"]))).await?;
        response.json(&self.transport.env)
    }

    /// Returns the contacts.
    pub fn contacts(&self) -> Collection<Contact> {
        self.collection()
    }

    /// Returns the invoices, which the API can only read.
    pub fn invoices(&self) -> Collection<Invoice> {
        self.collection()
    }

    /// Returns the bookings.
    pub fn bookings(&self) -> Collection<Booking> {
        self.collection()
    }

    /// Returns the quotes.
    pub fn quotes(&self) -> Collection<Quote> {
        self.collection()
    }

    /// Returns the jobs.
    pub fn jobs(&self) -> Collection<Job> {
        self.collection()
    }

    /// Returns the webhook subscriptions.
    pub fn webhooks(&self) -> Collection<WebhookSubscription> {
        self.collection()
    }

    /// Returns the collection of any kind of record.
    pub fn collection<R: Record + Resource>(&self) -> Collection<R> {
        Collection::new(self.clone())
    }

    /// Reads the page of a list that these pairs of a query ask for.
    pub(crate) async fn page<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        query: Vec<(String, String)>,
    ) -> Result<Page<T>> {
        let mut url = self.url(segments);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.transport.send(Request::new(Method::GET, url)).await?.json(&self.transport.env)
    }

    /// Calls an operation. `id` is that of the record in its path. A POST has this idempotency key, or else a new one.
    pub(crate) async fn send<K: Target, I: Input + ToBody + Clone, O: Send + 'static>(
        &self,
        operation: &Operation<K, I, O>,
        id: Option<Uuid>,
        input: &I,
        idempotency_key: Option<&HeaderValue>,
    ) -> Result<Response> {
        let id = id.map(|id| id.to_string());
        let mut url = self.url(&[&operation.segments(id.as_deref())]);
        let (has_input, method) = (operation.has_input, operation.method);
        let pairs = if has_input && method == operation::Method::Get { input.to_query() } else { Vec::new() };
        if !pairs.is_empty() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        let mut request = match method {
            operation::Method::Get => return self.transport.send(Request::new(Method::GET, url)).await,
            operation::Method::Delete => return self.transport.send(Request::new(Method::DELETE, url)).await,
            operation::Method::Patch => Request::new(Method::PATCH, url),
            operation::Method::Post => {
                let key = idempotency_key.cloned().map_or_else(|| self.new_idempotency_key(), Ok)?;
                Request::new(Method::POST, url).idempotency_key(key)
            }
        };
        if has_input {
            request = request.json(input.to_body());
        }
        self.transport.send(request).await
    }

    /// Returns the output of an operation in a response.
    pub(crate) fn output<K, I, O: DeserializeOwned>(
        &self,
        operation: &Operation<K, I, O>,
        response: &Response,
    ) -> Result<O> {
        match (operation.is_wrapped, response.status) {
            (_, StatusCode::NO_CONTENT) => {
                Response { body: "null".into(), ..response.clone() }.json(&self.transport.env)
            }
            (true, _) => self.data(response),
            (false, _) => response.json(&self.transport.env),
        }
    }

    /// Returns what a response contains.
    pub(crate) fn data<T: DeserializeOwned>(&self, response: &Response) -> Result<T> {
        /// The body of a response that has no pages.
        #[derive(Deserialize)]
        struct Envelope<T> {
            data: T,
        }
        response.json(&self.transport.env).map(|Envelope { data }| data)
    }

    /// Returns an idempotency key that no other request has.
    pub(crate) fn new_idempotency_key(&self) -> Result<HeaderValue> {
        let env = &self.transport.env;
        let key: Uuid = env.id(env.now());
        HeaderValue::from_str(&key.to_string()).map_err(|error| Error::InvalidArgument(error.to_string()))
    }

    /// Returns the URL of a path below the root of the API.
    pub(crate) fn url(&self, segments: &[&str]) -> Url {
        let mut url = Url::clone(&self.root);
        let path = format!("{}{}", url.path(), segments.join("/"));
        // Without segments, it is the path of the account itself.
        url.set_path(path.trim_end_matches('/'));
        url
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }
}

impl fmt::Debug for Client {
    /// Shows no credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("root", &self.root.as_str()).field("transport", &self.transport).finish()
    }
}
