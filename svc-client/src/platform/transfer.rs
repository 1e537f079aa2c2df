//! Exports and imports of records.

use futures_util::stream::{self, Stream, TryStreamExt as _};
use svc_core::pages::{Limit, MAX_LIMIT, Since};
use svc_core::platform::{ExportPage, ExportParams, ImportCreate, ImportReport, operations};
use svc_core::resources::kinds::AccountRecord;
use svc_core::values::Timestamp;

use super::AccountClient;
use crate::error::{Error, Result};

impl AccountClient {
    /// Exports all records of the account, or those that changed at or after a time: contacts, deleted ones included, then
    /// invoices, quotes, bookings and jobs. A record comes after the contact that it refers to.
    ///
    /// The stream ends after the first error. To continue an export that ended early, read its pages with
    /// [`export_page`](Self::export_page).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt as _;
    /// use svc_client::platform::prelude::*;
    ///
    /// # async fn example(account: AccountClient) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut records = std::pin::pin!(account.export(None));
    /// while let Some(record) = records.try_next().await? {
    ///     println!("{}", serde_json::to_string(&record)?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn export(&self, since: Option<Timestamp>) -> impl Stream<Item = Result<AccountRecord>> + Send + use<> {
        let first = ExportParams { since: since.map(Since), limit: Limit::new(MAX_LIMIT), cursor: None };
        let pages = stream::try_unfold(Some((self.clone(), first)), |next| async move {
            let Some((account, params)) = next else { return Ok::<_, Error>(None) };
            let ExportPage { data, next_cursor } = account.export_page(&params).await?;
            let next = next_cursor.map(|cursor| (account, ExportParams { cursor: Some(cursor), ..params }));
            Ok(Some((stream::iter(data.into_iter().map(Ok)), next)))
        });
        pages.try_flatten()
    }

    /// Reads one page of an export. Its `next_cursor` is the `cursor` of the next, and never expires.
    ///
    /// # Errors
    /// `invalid_cursor` for a cursor of another account or with another `since`, and any other [`Error`].
    pub async fn export_page(&self, params: &ExportParams) -> Result<ExportPage> {
        self.call(&operations::EXPORT_RECORDS, params).await
    }

    /// Imports a batch of at most 500 records, in one transaction. The report says of each row what came of it; a row that is
    /// refused is no error of the call. Repeating an import adds nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use svc_client::platform::prelude::*;
    ///
    /// # async fn example(from: AccountClient, to: AccountClient) -> Result<(), Error> {
    /// let mut next = Some(ExportParams::default());
    /// while let Some(params) = next {
    ///     let page = from.export_page(&params).await?;
    ///     let report = to.import(&ImportCreate::all(&page.data)).await?;
    ///     assert!(report.rows.iter().all(|row| row.result == RowOutcome::Added));
    ///     next = page.next_cursor.map(|cursor| ExportParams { cursor: Some(cursor), ..params });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `validation_failed` for too many rows or options that the kind does not have, `body_too_large` for more than 1 MiB,
    /// and any other [`Error`].
    pub async fn import(&self, batch: &ImportCreate) -> Result<ImportReport> {
        self.call(&operations::IMPORT_RECORDS, batch).await
    }
}
