//! The request log: requests are collected in memory beside their responses, and written in batches by the background work.
//!
//! It must cost the API next to nothing, so memory keeps no more than the log itself would: the newest requests of each
//! tenant, and a bounded number of all. Requests that do not fit are dropped and counted.
//!
//! A request is logged with the first and the last event that its transaction wrote. These two name all of them, since the
//! transaction locks the tenant; so the log leads from a request to its events and back, and events store nothing for it.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use http::{Method, StatusCode};
use svc_core::accounts::keys::KeyId;
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::requests::{self, ApiRequest, ApiRequestId, MAX_REQUESTS};
use svc_core::store::Store;
use svc_core::sync::lock;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::events::WrittenEvents;

use super::access::Access;

/// The number of requests of all tenants that wait to be written.
const CAPACITY: usize = 20_000;
/// The number of characters of a path or a query that are logged. Those of valid requests are shorter.
const MAX_TEXT: usize = 500;
/// The parameters of lists whose values are logged. Those of the others are data of the account, or no parameters at all.
const SHOWN_PARAMETERS: [&str; 5] = ["limit", "cursor", "updated_since", "status", "include_deleted"];
const HIDDEN: &str = "***";

/// The requests that wait to be written.
#[derive(Default)]
pub(crate) struct RequestLog(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    by_tenant: HashMap<TenantId, VecDeque<Entry>>,
    count: usize,
}

/// A request that waits. There may be thousands of them, so its texts share one allocation.
struct Entry {
    id: ApiRequestId,
    key_id: KeyId,
    method: Method,
    /// The request id, the path and, if there is one, the query, each on a line. None of them can have a line break.
    texts: Box<str>,
    status: StatusCode,
    code: Option<&'static str>,
    failing_fields: Option<Box<str>>,
    started_at: Timestamp,
    elapsed: Duration,
    written: WrittenEvents,
}

impl RequestLog {
    /// Adds a request. Returns false if it was dropped, as too many wait.
    pub(crate) fn add(&self, env: &Env, (tenant, key): (TenantId, KeyId), access: &Access<'_>) -> bool {
        let entry = Entry::new(env, key, access);
        let mut waiting = lock(&self.0);
        let Waiting { by_tenant, count } = &mut *waiting;
        let requests = by_tenant.entry(tenant).or_default();
        // Of a tenant that has as many as the log keeps, it would not keep the oldest.
        let oldest = if requests.len() == MAX_REQUESTS as usize { requests.pop_front() } else { None };
        if oldest.is_none() {
            if *count == CAPACITY {
                return false;
            }
            *count += 1;
        }
        requests.push_back(entry);
        // Others may go on before the memory of the oldest is free.
        drop(waiting);
        true
    }

    /// Writes the requests that wait. If the store fails, they are lost; returns how many.
    pub(crate) async fn flush(&self, store: &dyn Store) -> Result<(), (Error, usize)> {
        let waiting = std::mem::take(&mut *lock(&self.0));
        if waiting.count == 0 {
            return Ok(());
        }
        let of_tenant =
            |(tenant, entries): (TenantId, VecDeque<Entry>)| entries.into_iter().map(move |entry| entry.logged(tenant));
        let mut entries: Vec<ApiRequest> = waiting.by_tenant.into_iter().flat_map(of_tenant).collect();
        entries.sort_unstable_by_key(|entry| entry.id);
        requests::record(store, &entries).await.map_err(|error| (error, entries.len()))
    }
}

impl Entry {
    fn new(env: &Env, key_id: KeyId, access: &Access<'_>) -> Self {
        let parts = access.parts;
        let request_id = access.request_id.to_str().unwrap_or_default();
        let path = shortened(parts.uri.path());
        let query = parts.uri.query().map(shown);
        let texts = match query.as_deref().map(shortened) {
            Some(query) => [request_id, path, query].join("\n"),
            None => [request_id, path].join("\n"),
        };
        Self {
            id: env.id(access.started_at),
            key_id,
            method: parts.method.clone(),
            texts: texts.into(),
            status: access.status,
            code: access.code,
            failing_fields: failing_fields(access),
            started_at: access.started_at,
            elapsed: access.elapsed,
            written: access.written,
        }
    }

    fn logged(self, tenant_id: TenantId) -> ApiRequest {
        let mut texts = self.texts.split('\n').map(str::to_owned);
        ApiRequest {
            id: self.id,
            tenant_id,
            request_id: texts.next().unwrap_or_default(),
            key_id: self.key_id,
            method: self.method.to_string(),
            path: texts.next().unwrap_or_default(),
            query: texts.next(),
            status: self.status.as_u16(),
            code: self.code.map(str::to_owned),
            failing_fields: self.failing_fields.map(String::from),
            started_at: self.started_at,
            duration_us: u64::try_from(self.elapsed.as_micros()).unwrap_or(u64::MAX),
            events: self.written.count,
            first_event_id: self.written.first,
            last_event_id: self.written.last,
        }
    }
}

/// Returns the fields that failed with their codes, and [`HIDDEN`] in place of what the query does not show either.
fn failing_fields(access: &Access<'_>) -> Option<Box<str>> {
    let bare = access.parts.uri.query().unwrap_or_default().split('&').filter(|part| !part.contains('='));
    let bare: Vec<_> = bare.flat_map(|part| url::form_urlencoded::parse(part.as_bytes())).collect();
    let shown = |(name, code): &(String, &'static str)| {
        let is_hidden = bare.iter().any(|(hidden, _)| hidden == name);
        format!("{} {code}", if is_hidden { HIDDEN } else { name })
    };
    let fields: Vec<String> = access.failing_fields.iter().map(shown).collect();
    (!fields.is_empty()).then(|| shortened(&fields.join(", ")).into())
}

/// Returns a query in which [`HIDDEN`] stands for every value that may be confidential.
fn shown(query: &str) -> String {
    let parameter = |part: &str| match part.split_once('=') {
        Some((name, _)) if SHOWN_PARAMETERS.contains(&name) => part.to_owned(),
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => HIDDEN.to_owned(),
    };
    query.split('&').map(parameter).collect::<Vec<_>>().join("&")
}

fn shortened(text: &str) -> &str {
    // A text has no more characters than bytes, and bytes need no counting.
    let is_short = text.len() <= MAX_TEXT;
    let end = if is_short { None } else { text.char_indices().nth(MAX_TEXT) };
    end.map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use bytes::Bytes;
    use http::{HeaderValue, Request};
    use http_body_util::Full;
    use svc_core::Svc;
    use svc_core::prelude::{KeyCreate, TenantCreate};
    use svc_core::requests::RequestFilter;
    use uuid::Uuid;

    use super::*;
    use crate::{Api, Settings};

    /// An API over a store in memory, with one account and its key.
    struct LoggedApi {
        svc: Svc,
        api: Api,
        tenant: TenantId,
        bearer: String,
    }

    impl LoggedApi {
        async fn new(settings: Settings) -> Self {
            let svc = Svc::in_memory();
            let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
            let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
            let key = svc.account(tenant).keys().create(input).await.unwrap();
            let api = Api::new(Arc::clone(svc.store()), settings);
            Self { svc, api, tenant, bearer: format!("Bearer {}", key.text.reveal()) }
        }

        async fn send(&self, request: http::request::Builder, body: &'static str) -> StatusCode {
            let request = request.header("host", "localhost").header("content-type", "application/json");
            let request = request.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap();
            self.api.call(request, Ipv4Addr::LOCALHOST.into()).await.status()
        }

        async fn requests(&self) -> Vec<ApiRequest> {
            self.api.jobs().flush_request_log().await;
            self.svc.account(self.tenant).requests().list(RequestFilter::default()).await.unwrap()
        }
    }

    #[tokio::test]
    async fn requests_with_a_key_are_logged_with_their_events() {
        let f = LoggedApi::new(Settings::default()).await;
        let email = r#"{"email": "ada@example.com"}"#;
        let post = || Request::post("/api/v1/contacts").header("authorization", &f.bearer);
        assert_eq!(f.send(post().header("x-request-id", "first"), email).await, 201);
        assert_eq!(f.send(post(), email).await, 409);
        let get = Request::get("/api/v1/contacts?limit=5&email=ada%40example.com&svc_live_x");
        assert_eq!(f.send(get.header("authorization", &f.bearer), "").await, 400);
        assert_eq!(f.send(Request::get("/api/v1/contacts"), "").await, 401);
        assert_eq!(f.send(Request::get("/nowhere").header("authorization", &f.bearer), "").await, 404);

        let logged = f.requests().await;
        let lines =
            logged.iter().map(|entry| (entry.method.as_str(), entry.status, entry.code.as_deref(), entry.events));
        let want =
            [("GET", 400, Some("validation_failed"), 0), ("POST", 409, Some("email_taken"), 0), ("POST", 201, None, 1)];
        assert_eq!(
            lines.collect::<Vec<_>>(),
            want,
            "newest first; without a key and without a route there is no account"
        );
        assert_eq!(logged[0].query.as_deref(), Some("limit=5&email=***&***"));
        assert_eq!(logged[0].failing_fields.as_deref(), Some("*** too_short"));
        let texts = |entry: &ApiRequest| (entry.request_id.clone(), entry.path.clone(), entry.query.clone());
        assert_eq!(texts(&logged[2]), ("first".to_owned(), "/api/v1/contacts".to_owned(), None));

        let many = r#"{"email": "ada", "phone": 5, "a\nb": 1, "c": 1, "d": 1, "e": 1}"#;
        assert_eq!(f.send(post(), many).await, 400);
        let fields = "email invalid_format, phone invalid_type, a\nb unknown_field, c unknown_field, d unknown_field";
        assert_eq!(f.requests().await[0].failing_fields.as_deref(), Some(fields), "the first five");

        let account = f.svc.account(f.tenant);
        let events = account.requests().events(logged[2].id, 10).await.unwrap();
        assert_eq!(events.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(), ["contact.created"]);
        let wrote = RequestFilter { event_id: Some(events[0].id), ..RequestFilter::default() };
        assert_eq!(account.requests().list(wrote).await.unwrap(), logged[2..]);
    }

    #[tokio::test]
    async fn the_log_can_be_turned_off() {
        let f = LoggedApi::new(Settings { request_log: false, ..Settings::default() }).await;
        assert_eq!(f.send(Request::get("/api/v1/ping").header("authorization", &f.bearer), "").await, 200);
        assert_eq!(f.requests().await, []);
    }

    #[test]
    fn memory_keeps_the_newest_of_each_tenant_and_a_bounded_number_of_all() {
        let (env, log) = (Env::system(), RequestLog::default());
        let (parts, ()) = Request::get("/api/v1/ping").body(()).unwrap().into_parts();
        let add = |tenant: u128, micros: i64| {
            let access = Access {
                request_id: &HeaderValue::from_static("an-id"),
                parts: &parts,
                peer: Ipv4Addr::LOCALHOST.into(),
                operation: None,
                client: None,
                status: StatusCode::OK,
                code: None,
                failing_fields: Vec::new(),
                started_at: Timestamp::from_micros(micros),
                elapsed: Duration::from_micros(5),
                written: WrittenEvents::default(),
            };
            log.add(&env, (TenantId(Uuid::from_u128(tenant)), Uuid::from_u128(7).into()), &access)
        };
        assert!((0..1_500).all(|micros| add(1, micros)));
        let first = lock(&log.0).by_tenant.values().next().unwrap().front().unwrap().started_at;
        assert_eq!((lock(&log.0).count, first.as_micros()), (1_000, 500));
        assert!((2..=20).all(|tenant| (0..1_000).all(|micros| add(tenant, micros))));
        assert_eq!((add(21, 0), add(1, 2_000), lock(&log.0).count), (false, true, CAPACITY));
    }

    #[test]
    fn long_paths_and_queries_are_shortened() {
        assert_eq!(shortened(&"x".repeat(501)).len(), 500);
        assert_eq!(shown("status=paid&number=7&x"), "status=paid&number=***&***");
    }
}
