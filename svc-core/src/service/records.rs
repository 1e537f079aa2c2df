//! The generic operations behind the accessors of each resource.

use std::marker::PhantomData;

use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};

use super::executor::{Operation, Runner};
use crate::error::Error;
use crate::pages::{Limit, ListParams, MAX_LIMIT, Page, SentCursor, Since};
use crate::resources::{Create, Delete, Resource, Update, crud};
use crate::values::{Id, TenantId, Timestamp};

/// The records of one resource and one account.
pub(super) struct Records<'e, R> {
    pub(super) runner: Runner<'e>,
    pub(super) tenant: TenantId,
    resource: PhantomData<fn() -> R>,
}

impl<R> Clone for Records<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Records<'_, R> {}

impl<'e, R: Resource> Records<'e, R> {
    pub(super) fn new(runner: Runner<'e>, tenant: TenantId) -> Self {
        Self { runner, tenant, resource: PhantomData }
    }

    pub(super) async fn get(self, operation: Operation, id: Id<R>) -> Result<R, Error> {
        let tenant = self.tenant;
        self.runner
            .read(operation.on(id), (tenant, id), async |tx, &(tenant, id)| crud::get(tx, tenant, id).await)
            .await
    }

    pub(super) async fn list(
        self,
        operation: Operation,
        filter: R::Filter,
        params: ListParams,
    ) -> Result<Page<R>, Error>
    where
        R::Filter: Send + Sync + 'static,
    {
        let tenant = self.tenant;
        let list = self.runner.read(operation, (tenant, params, filter), async |tx, (tenant, params, filter)| {
            crud::list(tx, *tenant, params, filter).await
        });
        list.await
    }

    /// Reads page after page, each in a transaction of its own, and keeps one in memory.
    pub(super) fn stream(
        self,
        operation: Operation,
        filter: R::Filter,
        since: Option<Timestamp>,
    ) -> BoxStream<'e, Result<R, Error>>
    where
        R::Filter: Send + Sync + 'static,
    {
        let first = ListParams { limit: Limit::new(MAX_LIMIT), cursor: None, updated_since: since.map(Since) };
        let pages = stream::try_unfold(Some(first), move |params| {
            let filter = filter.clone();
            async move {
                let Some(params) = params else { return Ok::<_, Error>(None) };
                let page = self.list(operation, filter, params.clone()).await?;
                let next =
                    page.next_cursor.map(|cursor| ListParams { cursor: Some(SentCursor::from(cursor)), ..params });
                Ok(Some((page.data, next)))
            }
        });
        pages.map_ok(|records| stream::iter(records.into_iter().map(Ok))).try_flatten().boxed()
    }

    pub(super) async fn create(self, operation: Operation, input: R::Input) -> Result<R, Error>
    where
        R: Create<Input: Clone + Send + Sync + 'static>,
    {
        let tenant = self.tenant;
        self.runner
            .write(operation, (tenant, input), async |tx, (tenant, input)| {
                crud::create(tx, *tenant, input.clone()).await
            })
            .await
    }

    pub(super) async fn update(self, operation: Operation, id: Id<R>, change: <R as Update>::Input) -> Result<R, Error>
    where
        R: Update<Input: Send + Sync + 'static>,
    {
        let tenant = self.tenant;
        self.runner
            .write(operation.on(id), (tenant, id, change), async |tx, (tenant, id, change)| {
                crud::update(tx, *tenant, *id, change.clone()).await
            })
            .await
    }

    pub(super) async fn delete(self, operation: Operation, id: Id<R>) -> Result<(), Error>
    where
        R: Delete,
    {
        let tenant = self.tenant;
        self.runner
            .write(operation.on(id), (tenant, id), async |tx, &(tenant, id)| crud::delete::<R>(tx, tenant, id).await)
            .await
    }
}
