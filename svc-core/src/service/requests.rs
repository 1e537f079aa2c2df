//! The request log of an account.

use super::Account;
use crate::error::Error;
use crate::requests::{self, ApiRequest, ApiRequestId, RequestFilter};
use crate::webhooks::events::Event;

/// The API requests of an account: its newest 1,000 of the last 24 hours.
#[derive(Clone, Copy)]
pub struct Requests<'e> {
    account: Account<'e>,
}

impl<'e> Requests<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { account }
    }

    /// Returns the requests that a filter selects, newest first. A request appears some seconds after its response.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::requests::RequestFilter;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let failed = RequestFilter { status: Some(400..=599), ..RequestFilter::default() };
    /// assert_eq!(svc.account(tenant).requests().list(failed).await?, []);
    /// # Ok(()) });
    /// ```
    pub async fn list(self, filter: RequestFilter) -> Result<Vec<ApiRequest>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read("svc.requests.list", (tenant, filter), async |tx, (tenant, filter)| {
                requests::list(tx, *tenant, filter).await
            })
            .await
    }

    /// Returns the newest requests, at most `limit`, newest first.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn newest(self, limit: u32) -> Result<Vec<ApiRequest>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read("svc.requests.newest", (tenant, limit), async |tx, &(tenant, limit)| {
                requests::newest(tx, tenant, limit).await
            })
            .await
    }

    /// Returns one request, by the id of its entry.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the log does not have it, or no longer.
    pub async fn get(self, id: ApiRequestId) -> Result<ApiRequest, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .on(id)
            .read("svc.requests.get", (tenant, id), async |tx, &(tenant, id)| requests::get(tx, tenant, id).await)
            .await
    }

    /// Returns the first events that a request wrote, at most `limit`.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the log does not have the request, or no longer.
    pub async fn events(self, id: ApiRequestId, limit: u32) -> Result<Vec<Event>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read("svc.requests.events", (tenant, id, limit), async |tx, &(tenant, id, limit)| {
                let request = requests::get(tx, tenant, id).await?;
                requests::events(tx, &request, limit).await
            })
            .await
    }
}
