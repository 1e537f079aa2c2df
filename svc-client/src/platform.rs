//! The accounts of a service, for programs of its operator.

use std::sync::Arc;

use svc_core::values::TenantId;
use url::Url;

use crate::client::Client;
use crate::transport::Transport;

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

    /// Returns a client of one account: its collections, with the operations that the public API has for them.
    pub fn account(&self, id: TenantId) -> Client {
        Client::new(&self.base, &format!("platform/v1/accounts/{id}"), Arc::clone(&self.transport))
    }
}
