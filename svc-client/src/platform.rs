//! The accounts of a service, for programs of its operator.

mod apps;
mod back_office;
mod deliveries;
mod keys;
mod lookup;
mod sandbox;
mod transfer;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use serde::de::DeserializeOwned;
use svc_core::accounts::members::Member;
use svc_core::input::{Input, ToBody};
use svc_core::operation::{Operation, Target};
use svc_core::platform::operations;
use svc_core::platform::{
    Account, ApiKey, ApiRequest, AuditEntry, DashboardLink, DashboardLinkCreate, Delivery, Event, OperatorLink,
    OperatorLinkCreate, Replay, SharedAddress, SharedAddressCreate, Statistics,
};
use svc_core::resources::Resource;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::values::TenantId;
use svc_core::webhooks::subscriptions::WebhookSubscription;
use url::Url;

use crate::client::Client;
use crate::collection::Collection;
use crate::error::Result;
use crate::mcp::Mcp;
use crate::records::Record;
use crate::transport::{Request, Response, Transport};

/// A client of the platform API, with a platform key. It reaches every account.
///
/// # Examples
///
/// ```no_run
/// use svc_client::Client;
/// use svc_client::platform::prelude::*;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let key = std::env::var("SVC_PLATFORM_KEY")?;
/// let platform = Client::builder("http://127.0.0.1:8081", &key).build_platform()?;
///
/// let account = platform.accounts().create(&AccountCreate::new("Harbour Plumbing".parse()?)).await?;
/// let account = platform.account(account.id);
/// let invoice = account.invoices().create(&InvoiceCreate::new("149.50".parse()?)).await?;
/// account.invoices().send(invoice.id).await?;
/// account.invoices().pay(invoice.id, &PaymentCreate::default()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Platform {
    base: Arc<Url>,
    transport: Arc<Transport>,
}

impl Platform {
    pub(crate) fn new(base: Url, transport: Arc<Transport>) -> Self {
        Self { base: Arc::new(base), transport }
    }

    /// Returns a client of what is below no account.
    fn client(&self) -> Client {
        Client::new(&self.base, "platform/v1", Arc::clone(&self.transport))
    }

    /// Calls an operation of [`svc_core::platform::operations`] on its target: an account, a record of an account, or
    /// nothing. A POST carries an `Idempotency-Key`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use svc_client::platform::prelude::*;
    /// use svc_client::svc_core::platform::operations;
    ///
    /// # async fn example(platform: Platform, id: TenantId) -> Result<(), Error> {
    /// let statistics = platform.call(&operations::GET_STATISTICS, id, &()).await?;
    /// println!("{} attempts in the first hour", statistics.hours[0].attempts);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn call<K, I, O>(&self, operation: &Operation<K, I, O>, target: K, input: &I) -> Result<O>
    where
        K: Target,
        I: Input + ToBody + Clone,
        O: DeserializeOwned + Send,
    {
        let client = target.account().map_or_else(|| self.client(), |account| self.account(account).client);
        client.output(operation, &client.send(operation, target.id(), input, None).await?)
    }

    /// Calls the operation at a path below `/platform/v1`, such as `/accounts`, and reads its response. This is for an operation
    /// that this version does not know, such as one of a newer service. A POST carries an `Idempotency-Key`.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn call_path<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(String, String)],
        body: Option<Vec<u8>>,
    ) -> Result<T> {
        let mut url = Url::clone(&self.base);
        url.set_path(&format!("{}platform/v1{path}", url.path()));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = Request::new(method, url);
        if request.method == Method::POST {
            request = request.idempotency_key(self.client().new_idempotency_key()?);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let mut response = self.transport.send(request).await?;
        if response.body.is_empty() {
            // A response without a body reads as null.
            response.body = "null".into();
        }
        response.json(&self.transport.env)
    }

    /// Sends a request to a path below `/platform/v1`, such as `/accounts?limit=1`, once, and returns the response as it is:
    /// also one of a failure. This is for people who look at what the service responds.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport), and
    /// [`Error::UnexpectedResponse`](crate::Error::UnexpectedResponse) if the response has more than 32 MiB.
    pub async fn send_path(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<http::Response<Bytes>> {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut url = Url::clone(&self.base);
        url.set_path(&format!("{}platform/v1{path}", url.path()));
        url.set_query(query);
        let mut request = Request::new(method, url);
        if let Some(body) = body {
            request = request.json(body);
        }
        let Response { status, headers, body } = self.transport.send_once(request).await?;
        let mut response = http::Response::new(body);
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        Ok(response)
    }

    /// Returns the way to the tools for assistants (Model Context Protocol) on an account, which the operator has to
    /// switch on. With `read_only` there are none that change anything.
    pub fn mcp(&self, account: TenantId, read_only: bool) -> Mcp {
        let path = format!("platform/v1/accounts/{account}/mcp");
        Mcp::new(&self.base, &path, read_only, Arc::clone(&self.transport))
    }

    /// Returns the accounts: create, read, change and list them.
    ///
    /// # Examples
    ///
    /// Suspends an account, unless somebody else changed it meanwhile:
    ///
    /// ```no_run
    /// use svc_client::platform::prelude::*;
    ///
    /// # async fn example(platform: Platform, id: TenantId) -> Result<(), Error> {
    /// let account = platform.accounts().get(id).await?;
    /// let access = Patch::Set(DeveloperAccess::Suspended);
    /// let change = AccountUpdate { developer_access: access, ..Default::default() };
    /// platform.accounts().update_if(&account.etag, id, &change).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn accounts(&self) -> Collection<Account, Self> {
        Collection::new(self.client())
    }

    /// Creates a link that signs an operator in to the dashboard, once, within ten minutes. The key needs the scope
    /// `operators:write`, which `*` does not include.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn create_operator_link(&self, link: &OperatorLinkCreate) -> Result<OperatorLink> {
        self.call(&operations::CREATE_OPERATOR_LINK, (), link).await
    }

    /// Returns a client of one account. Whether the account exists is seen by its first call: `unknown_account` if not.
    pub fn account(&self, id: TenantId) -> AccountClient {
        let path = format!("platform/v1/accounts/{id}");
        AccountClient { id, client: Client::new(&self.base, &path, Arc::clone(&self.transport)) }
    }
}

/// A client of one account, by a platform key: its records, and what the operator does for it.
///
/// # Examples
///
/// ```no_run
/// use svc_client::platform::prelude::*;
///
/// # async fn example(platform: Platform, id: TenantId) -> Result<(), Box<dyn std::error::Error>> {
/// let account = platform.account(id);
/// let key = account.keys().create(&ApiKeyCreate::new(true)).await?;
/// println!("{}", key.key);
/// let stay = AnyObject::new(&serde_json::json!({ "id": "stay-1", "guest": "Ada Nguyen" }))?;
/// let emitted = account.events().emit(EventKind::StayCreated, stay).await?;
/// println!("{} deliveries", emitted.deliveries.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AccountClient {
    id: TenantId,
    client: Client,
}

impl AccountClient {
    /// Returns the id of the account.
    pub fn id(&self) -> TenantId {
        self.id
    }

    /// Returns the contacts.
    pub fn contacts(&self) -> Collection<Contact, Platform> {
        self.any()
    }

    /// Returns the invoices, with the steps of the back office.
    pub fn invoices(&self) -> Collection<Invoice, Platform> {
        self.any()
    }

    /// Returns the bookings.
    pub fn bookings(&self) -> Collection<Booking, Platform> {
        self.any()
    }

    /// Returns the quotes, which can also be accepted and declined.
    pub fn quotes(&self) -> Collection<Quote, Platform> {
        self.any()
    }

    /// Returns the jobs.
    pub fn jobs(&self) -> Collection<Job, Platform> {
        self.any()
    }

    /// Returns the webhook subscriptions, with their secrets, tests and statistics.
    pub fn webhooks(&self) -> Collection<WebhookSubscription, Platform> {
        self.any()
    }

    /// Returns the collection of any kind of record.
    pub fn collection<R: Record + Resource>(&self) -> Collection<R, Platform> {
        self.any()
    }

    /// Returns the API keys.
    pub fn keys(&self) -> Collection<ApiKey, Platform> {
        self.any()
    }

    /// Returns the members: the people who sign in to the dashboard of the account.
    pub fn members(&self) -> Collection<Member, Platform> {
        self.any()
    }

    /// Returns the events, which can be emitted and read.
    pub fn events(&self) -> Collection<Event, Platform> {
        self.any()
    }

    /// Returns the deliveries of events to webhook subscriptions.
    pub fn deliveries(&self) -> Collection<Delivery, Platform> {
        self.any()
    }

    /// Returns the bulk replays.
    pub fn replays(&self) -> Collection<Replay, Platform> {
        self.any()
    }

    /// Returns the audit log, which can be listed.
    pub fn audit_log(&self) -> Collection<AuditEntry, Platform> {
        self.any()
    }

    /// Returns the log of requests with API keys, which can be listed.
    pub fn requests(&self) -> Collection<ApiRequest, Platform> {
        self.any()
    }

    /// Returns the attempts of the last 24 hours at all endpoints of the account, by hour.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn statistics(&self) -> Result<Statistics> {
        self.call(&operations::GET_STATISTICS, &()).await
    }

    /// Creates a link that signs a person in to the dashboard of the account, once, within ten minutes.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use svc_client::platform::prelude::*;
    ///
    /// # async fn example(account: AccountClient) -> Result<(), Error> {
    /// let link = account.create_dashboard_link(&DashboardLinkCreate::new(Role::Owner)).await?;
    /// println!("https://svc.example.com{}", link.path);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn create_dashboard_link(&self, link: &DashboardLinkCreate) -> Result<DashboardLink> {
        self.call(&operations::CREATE_DASHBOARD_LINK, link).await
    }

    /// Returns the address at which calendar programs subscribe to the bookings and planned jobs of the account. It is made if there
    /// is none; with `renew`, one that there is ends, and another one is made.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn share_calendar(&self, input: &SharedAddressCreate) -> Result<SharedAddress> {
        self.call(&operations::SHARE_CALENDAR, input).await
    }

    /// Ends the address of the calendar, if there is one.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn unshare_calendar(&self) -> Result<()> {
        self.call(&operations::UNSHARE_CALENDAR, &()).await
    }

    /// Calls an operation on the account.
    async fn call<I, O>(&self, operation: &Operation<TenantId, I, O>, input: &I) -> Result<O>
    where
        I: Input + ToBody + Clone,
        O: DeserializeOwned + Send,
    {
        self.client.output(operation, &self.client.send(operation, None, input, None).await?)
    }

    fn any<R: Record>(&self) -> Collection<R, Platform> {
        Collection::new(self.client.clone())
    }
}

impl fmt::Debug for AccountClient {
    /// Shows no credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountClient").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The imports of most programs of the operator: the clients, the records, their inputs and their filters.
pub mod prelude {
    pub use svc_core::accounts::limits::CappedCollection;
    pub use svc_core::accounts::members::{Member, MemberId};
    pub use svc_core::accounts::sessions::Role;
    pub use svc_core::accounts::tenants::DeveloperAccess;
    pub use svc_core::imports::{ContactImport, ImportRecord, ImportRow, InvoiceImport};
    pub use svc_core::platform::*;
    pub use svc_core::resources::conversions::{JobInvoicing, QuoteConversion};
    pub use svc_core::resources::invoices::{BookedPayment, InvoiceCreate, InvoiceUpdate, PaymentCreate};
    pub use svc_core::resources::kinds::AccountRecord;
    pub use svc_core::values::RecordKind;
    pub use svc_core::values::{EventKind, Id, TenantId};
    pub use svc_core::webhooks::deliveries::DeliveryStatus;

    pub use crate::prelude::*;
    pub use crate::{AccountClient, Platform};
}
