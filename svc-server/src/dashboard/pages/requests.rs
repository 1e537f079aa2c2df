//! Requests: what programs asked the API for, and which events came of it.

use std::ops::RangeInclusive;

use svc_core::Svc;
use svc_core::accounts::keys::ApiKey;
use svc_core::error::Error;
use svc_core::prelude::Account;
use svc_core::requests::{ApiRequest, ApiRequestId, RequestFilter};
use svc_core::values::TenantId;
use uuid::Uuid;

use super::apps::ConnectedApps;
use super::event_list::short_path;
use super::records::{self, short};
use super::{event_list, filters, kinds};
use crate::dashboard::live::{self, List as _};
use crate::dashboard::prelude::*;

/// The number of keys in the filter.
const MAX_KEYS: usize = 100;
/// The number of requests on a page.
const PAGE: usize = 100;
/// The filters in the query.
const FILTERS: [&str; 6] = ["id", "key", "method", "path", "status", "within"];
/// The number of events that the page of a request lists.
const MAX_EVENTS: u32 = 100;
/// The classes of statuses: the values of the filter, their texts, and the statuses.
const STATUSES: [(&str, &str, RangeInclusive<u16>); 4] = [
    ("", "All statuses", 0..=u16::MAX),
    ("2xx", "Succeeded", 200..=399),
    ("4xx", "Refused (4xx)", 400..=499),
    ("5xx", "Failed (5xx)", 500..=599),
];

fn status(request: &ApiRequest) -> Markup {
    let tone = match request.status {
        ..=399 => Tone::Good,
        400..=499 => Tone::Warn,
        _ => Tone::Bad,
    };
    badge(tone, &request.status.to_string())
}

/// Returns the record that a path of the API names, with a link to its page.
async fn record(cx: &Context<'_>, account: Account<'_>, path: &str) -> Result<Markup, Error> {
    let mut segments = path.split('/').skip_while(|segment| kinds::of_collection(segment).is_none());
    let kind = segments.next().and_then(kinds::of_collection);
    let id = segments.next().and_then(|segment| segment.parse::<Uuid>().ok());
    let Some((kind, id)) = kind.zip(id) else { return Ok(html! { span.soft { "none" } }) };
    Ok(match records::get(account, kind, id).await {
        Ok(record) => html! { a href=(cx.url(&kind.path(id))) { (short(&records::name(kind, &record))) } },
        Err(Error::NotFound) => html! { span.soft { "not found" } },
        Err(error) => return Err(error),
    })
}

/// Returns a duration with three digits.
fn duration(request: &ApiRequest) -> String {
    let micros = request.duration_us;
    match micros {
        ..=99_999 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => format!("{} ms", number(micros / 1_000)),
    }
}

/// The senders of requests: the keys of the account, and the apps that may work on it.
pub(crate) struct Callers {
    keys: Vec<ApiKey>,
    apps: ConnectedApps,
}

impl Callers {
    async fn of(svc: &Svc, tenant: TenantId) -> Result<Self, Error> {
        let keys = svc.account(tenant).keys().list().await?;
        Ok(Self { keys, apps: ConnectedApps::of(svc, tenant).await? })
    }

    /// Returns what the sender of a request is called. The log has the id of a grant in place of that of a key.
    fn name(&self, request: &ApiRequest) -> Markup {
        let key = self.keys.iter().find(|key| key.id == request.key_id);
        match (key, self.apps.by_grant(request.key_id.uuid())) {
            (Some(key), _) => html! { (key.name.as_deref().unwrap_or(&key.prefix)) },
            (None, Some(app)) => html! { (isolated(app.name.as_str())) div.soft { "app" } },
            // Keys stay when they are revoked.
            (None, None) => html! { span.soft { "no longer connected" } },
        }
    }
}

/// Returns the heading of who sends requests.
fn sender(cx: &Context<'_>) -> &'static str {
    if cx.site.has_apps() { "Key or app" } else { "Key" }
}

/// Requests as a live list.
pub(crate) struct Requests;

impl live::List for Requests {
    type Item = ApiRequest;
    type Names = Callers;
    type Filter = RequestFilter;
    type Scope = ();

    async fn newest(svc: &Svc, tenant: TenantId, (): &()) -> Result<Vec<ApiRequest>, Error> {
        svc.account(tenant).requests().newest(PAGE as u32).await
    }

    async fn names(svc: &Svc, tenant: TenantId, _: &[ApiRequest]) -> Result<Callers, Error> {
        Callers::of(svc, tenant).await
    }

    fn id(request: &ApiRequest) -> Uuid {
        request.id.uuid()
    }

    fn select(_: &ApiRequest) -> Markup {
        html! {}
    }

    fn cells(view: &View<'_>, request: &ApiRequest, callers: &Callers) -> Markup {
        html! {
            th scope="row" {
                a href=(view.url(&format!("/requests/{}", request.id))) title=(request.path) {
                    (request.method) " " (short_path(&request.path))
                }
            }
            td { (status(request)) @if let Some(code) = &request.code { div.soft { (code) } } }
            td { (callers.name(request)) }
            td { (number(u64::from(request.events))) }
            td.fixed { (duration(request)) }
            td { (view.time(request.started_at)) }
        }
    }

    fn matches(filter: &RequestFilter, request: &ApiRequest) -> bool {
        filter.matches(request)
    }
}

/// Returns the filter in the query.
fn filter(cx: &Context<'_>) -> Result<RequestFilter, PageError> {
    let class = STATUSES.iter().find(|(value, ..)| *value == cx.query.text("status"));
    let (class, _, statuses) =
        class.ok_or_else(|| PageError::Invalid("There is no such class of statuses.".to_owned()))?;
    Ok(RequestFilter {
        request_id: cx.query.given("id").map(str::to_owned),
        key_id: filters::value(cx, "key")?,
        method: cx.query.given("method").map(str::to_owned),
        path: cx.query.given("path").map(str::to_owned),
        status: (!class.is_empty()).then(|| statuses.clone()),
        since: filters::begins(cx, cx.query.text("within"))?,
        ..RequestFilter::default()
    })
}

/// Sends the newest requests as they come.
pub(crate) async fn live(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    cx.stream::<Requests>(tenant, (), filter(cx)?)
}

/// Lists requests.
pub(crate) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let account = cx.svc.account(tenant.id);
    let filter = filter(cx)?;
    let requests = account.requests().list(filter).await?;
    let callers = Callers::of(&cx.svc, tenant.id).await?;
    let view = cx.view(tenant);
    let content = html! {
        (heading("Requests", "The newest 1,000 requests to the API of the last 24 hours, without their bodies.", html! {
            (live::switch(&cx.url(&format!("/requests/live?{}", cx.query.encoded(&FILTERS))), PAGE, None))
        }))
        (filters::list(cx, filters::List {
            path: "/requests",
            filters: filter_fields(cx, &callers),
            is_filtered: FILTERS.iter().any(|name| cx.query.given(name).is_some()),
            icon: "request",
            none: ("No requests", "Requests with a key of this account appear here some seconds after their responses, for a day.",
                html! { a.button href=(cx.url("/keys")) { "API keys" } }),
            nothing: "No request of the log meets all filters.",
            rows: (!requests.is_empty()).then(|| html! {
                (table("Requests", &["Request", "Status", sender(cx), "Events", "Duration", "When"], html! {
                    @for request in requests.iter().take(PAGE) {
                        (live::row(Requests::id(request), &Requests::cells(&view, request, &callers)))
                    }
                }))
                @if requests.len() > PAGE {
                    p.hint { "The newest " (PAGE) " of " (number(requests.len() as u64)) ". Filter to find others." }
                }
            }),
        }))
    };
    Ok(layout::page(cx, Some(tenant), "Requests", &content))
}

fn filter_fields(cx: &Context<'_>, callers: &Callers) -> Markup {
    // The newest ones: an account can have had any number.
    let keys = callers
        .keys
        .iter()
        .rev()
        .take(MAX_KEYS)
        .map(|key| (key.id.to_string(), key.name.clone().unwrap_or_else(|| key.prefix.clone())));
    let apps = callers.apps.names().take(MAX_KEYS);
    let apps = apps.map(|(grant, name)| (grant.to_string(), format!("{} (app)", without_bidi_controls(name))));
    let any_sender = if cx.site.has_apps() { "All keys and apps" } else { "All keys" };
    let methods = ["GET", "POST", "PATCH", "DELETE"].map(|method| (method.to_owned(), method.to_owned()));
    let classes = STATUSES.map(|(value, text, _)| (value.to_owned(), text.to_owned()));
    html! {
        (filters::one_of(cx, "method", "Method", "All methods", methods))
        (filters::text(cx, "path", "Path contains"))
        (filters::choice("status", "Status", filters::options(cx.query.text("status"), classes)))
        (filters::one_of(cx, "key", sender(cx), any_sender, keys.chain(apps)))
        (filters::choice("within", "Time", filters::spans_of_day(cx.query.text("within"))))
        (filters::text(cx, "id", "X-Request-Id"))
    }
}

/// Shows a request and the events that it wrote.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let account = cx.svc.account(tenant.id);
    let request = account.requests().get(cx.id::<ApiRequestId>()?).await?;
    let written = account.requests().events(request.id, MAX_EVENTS).await?;
    let callers = Callers::of(&cx.svc, tenant.id).await?;
    let content = html! {
        (heading(&format!("{} {}", request.method, short_path(&request.path)), "", html! {}))
        (section("Request", facts(&[
            ("Path", html! { code { (request.path) } }),
            ("Record", record(cx, account, &request.path).await?),
            ("Status", html! {
                (status(&request))
                @if let Some(code) = &request.code {
                    " " code { (code) }
                    @if let Some(fields) = &request.failing_fields {
                        div { code { (fields) } }
                    }
                    div.soft { "The response says more. It is not kept here, as it may have what was sent." }
                }
            }),
            ("X-Request-Id", html! { code { (request.request_id) } }),
            (sender(cx), callers.name(&request)),
            ("Query", html! {
                @match &request.query { Some(query) => { code { (query) } } None => { span.soft { "none" } } }
            }),
            ("Arrived", exact_time(&tenant.time_zone, request.started_at)),
            ("Duration", html! { (duration(&request)) }),
        ])))
        (section("Events", html! {
            @if written.is_empty() {
                p.soft { "It wrote no events." }
            } @else {
                (table("Events of the request", &["Event", "Record", "When"], html! {
                    @for event in written { (event_list::row(cx, tenant, &event.into())) }
                }))
            }
        }))
    };
    Ok(layout::page(cx, Some(tenant), "Request", &content))
}
