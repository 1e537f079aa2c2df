//! Records that are known by their id alone, or by a part of it.

use http::Method;
use svc_core::input::ToBody as _;
use svc_core::lookup::{IdPart, KindInAccount, KindOfAll, Matches, PartOfId, RecordId};
use svc_core::pages::Page;
use svc_core::platform::Account;
use uuid::Uuid;

use super::{AccountClient, Platform};
use crate::error::Result;
use crate::transport::Request;

impl Platform {
    /// Returns the accounts that have a record with this id: one or none, unless an import gave records of several accounts
    /// the same id.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn find_accounts(&self, kind: KindOfAll, id: Uuid) -> Result<Vec<Account>> {
        let page: Page<Account> =
            self.call(Method::GET, "/find-accounts", &RecordId { kind, id }.to_query(), None).await?;
        Ok(page.data)
    }
}

impl AccountClient {
    /// Returns the ids of the records of one kind that begin with a part, or else those that end with it.
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn find_ids(&self, kind: KindInAccount, part: &IdPart) -> Result<Matches> {
        let mut url = self.client.url(&["find-ids"]);
        url.query_pairs_mut().extend_pairs(PartOfId { kind, part: part.clone() }.to_query());
        let transport = self.client.transport();
        transport.send(Request::new(Method::GET, url)).await?.json(&transport.env)
    }
}
