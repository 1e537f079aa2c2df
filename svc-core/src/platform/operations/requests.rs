//! The request log.

use super::logs::Position;
use super::memory::REQUEST_LOG;
use crate::accounts::platform_keys::Area;
use crate::operation::Listing;
use crate::operation::{Method, Operation};
use crate::pages::Page;
use crate::platform::{ApiRequest, LogParams, RequestListFilter};
use crate::requests::{self, RequestFilter};
use crate::values::{TenantId, Text};

/// Lists the requests of the log, the newest first. Requests of the same time are never on two pages.
pub const LIST_REQUESTS: Operation<TenantId, Listing<LogParams, RequestListFilter>, Page<ApiRequest>> =
    Operation::new("listRequests", Method::Get, "requests", "", &async |tx,
                                                                        account,
                                                                        input: &Listing<
        LogParams,
        RequestListFilter,
    >| {
        let sent = &input.filter;
        let position = Position::of(tx, account, "requests", &input.page, &sent.scope())?;
        let filter = RequestFilter {
            key_id: sent.key_id,
            method: sent.method.as_ref().map(Text::to_string),
            path: sent.path.as_ref().map(Text::to_string),
            status: sent.status.map(|status| status.range()),
            since: sent.since.map(|since| since.0),
            until: position.before,
            ..RequestFilter::default()
        };
        let mut found = requests::list(tx, account, &filter).await?;
        let limit = position.limit as usize;
        let last = found.get(limit.saturating_sub(1)).map(|last| last.started_at);
        let length = found.iter().take_while(|request| last.is_none_or(|last| request.started_at >= last)).count();
        let next = last.filter(|_| length < found.len());
        found.truncate(length);
        Ok(position.page(tx, found, next))
    })
    .unwrapped()
    .in_area(Area::Audit)
    .reading(|input| REQUEST_LOG.max(input.page.limit.unwrap_or_default().get()))
    .described(
        "List the request log",
        "Returns a page of the requests with API keys of the account, the newest first, without their bodies. The log \
         has the newest 1,000 requests of the last 24 hours. A request appears in it a few seconds after its response. \
         Requests made at the same time stay on one page.",
        "A page of requests.",
    );
