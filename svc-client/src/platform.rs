//! The accounts of a service, for programs of its operator.

use std::sync::Arc;

use http::{HeaderValue, Method};
use serde::de::DeserializeOwned;
use svc_core::env::Env;
use svc_core::values::TenantId;
use url::Url;
use uuid::Uuid;

use crate::client::Client;
use crate::collection::IDEMPOTENCY_KEY;
use crate::error::{Error, Result};
use crate::exchange::{Exchange, Route};
use crate::retry::RetryPolicy;
use crate::transport::{Request, Response, Sleep, Transport};

/// A client of the platform API, with a platform key. It reaches every account.
///
/// # Examples
///
/// ```
/// use svc_client::Client;
/// use svc_client::svc_core::values::TenantId;
///
/// # fn example(account: TenantId) -> Result<(), svc_client::Error> {
/// let platform = Client::builder("http://127.0.0.1:8081", "svc_plat_…").build_platform()?;
/// let contacts = platform.account(account).contacts();
/// # let _ = contacts;
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

    /// Returns a client of a platform API in this process, which is called without a connection and without a key.
    ///
    /// # Errors
    /// None today.
    pub fn in_process(service: impl Exchange) -> Result<Self> {
        let base = Url::parse("http://localhost/").map_err(|error| Error::InvalidArgument(error.to_string()))?;
        let sleep: Sleep = Arc::new(|wait| Box::pin(tokio::time::sleep(wait)));
        let (env, retry) = (Env::system(), RetryPolicy::never());
        let route = Route::InProcess(Box::new(service));
        Ok(Self::new(base, Arc::new(Transport { route, signing_secret: None, retry, env, sleep })))
    }

    /// Calls the operation at a path below `/platform/v1`, such as `/accounts`, and reads its response. This is for what
    /// has no method of its own, such as an operation of a newer service. A POST carries an `Idempotency-Key`.
    ///
    /// # Errors
    /// Any [`Error`].
    pub async fn call<T: DeserializeOwned>(
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
        let env = &self.transport.env;
        let mut request = Request::new(method, url);
        if request.method == Method::POST {
            let key: Uuid = env.id(env.now());
            let key = HeaderValue::from_str(&key.to_string()).map_err(|e| Error::InvalidArgument(e.to_string()))?;
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = self.transport.send(request).await?;
        // A response without a body reads as null.
        let response =
            Response { body: if response.body.is_empty() { "null".into() } else { response.body }, ..response };
        response.json(env)
    }

    /// Returns a client of one account: its collections, with the operations that the public API has for them.
    pub fn account(&self, id: TenantId) -> Client {
        Client::new(&self.base, &format!("platform/v1/accounts/{id}"), Arc::clone(&self.transport))
    }
}
