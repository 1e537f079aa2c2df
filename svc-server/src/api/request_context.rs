//! The path of one request from its route to its operation (`docs/contract.md`, "Order of checks").
//!
//! [`RequestContext::read`] and [`RequestContext::write`] have the order of the checks. A read is one transaction, which
//! looks the API key up and runs the operation; it is repeated if the read has to wait for memory for its response. A
//! write is two: the first looks the API key up, and the second, once the body has been read, looks it up again, makes the
//! change and stores the response for its idempotency key. The first is left out for a key that was looked up a moment ago
//! ([`KnownKeys`](super::known_keys::KnownKeys)).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::IF_MATCH;
use http::request::Parts;
use http::{HeaderName, Method};
use svc_core::accounts::idempotency::{self, StoredResponse};
use svc_core::accounts::keys::{Caller, KEY_PREFIX, KeyHash};
use svc_core::accounts::limits::RateLimits;
use svc_core::accounts::platform_keys::{PLATFORM_KEY_PREFIX, PlatformKeyHash};
use svc_core::accounts::signing::VerifiedSignature;
use svc_core::error::{Error, Issue, StoreError};
use svc_core::store::Tx;
use svc_core::values::{TenantId, Timestamp, WebhookUrl};
use svc_core::webhooks::addresses;
use svc_core::webhooks::events::WrittenEvents;

use crate::api::auth::{self, SignatureHeaders};
use crate::api::body::{Incoming, ReceivedBody};
use crate::api::change::{Change, Changed, Condition, IdempotencyClaim};
use crate::api::client::{Client, Credentials};
use crate::api::handlers::{ParsedRequest, RequestParts};
use crate::api::limits::{RateLimitKey, RateLimitStatus, RateLimited};
use crate::api::message::{self, Outcome};
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;
use crate::api::response_memory::Reservation;
use crate::api::router::RoutedOperation;
use crate::api::routes::Operation;
use crate::api::state::State;

/// How long a used signature is remembered after its timestamp: for the tolerance of the timestamp, and as long again for
/// a clock that runs ahead and is set back, or those of several nodes.
const SIGNATURE_MEMORY: Duration = Duration::from_secs(601);

/// The size of a body, in bytes, over which it is parsed on a thread of its own. The most expensive body of this size
/// takes a few milliseconds.
const LARGE_BODY: usize = 32 * 1024;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request to an operation.
pub(super) struct RequestContext<'a> {
    pub(super) state: &'a Arc<State>,
    pub(super) parts: &'a Parts,
    /// The address of the client.
    pub(super) peer: IpAddr,
    pub(super) routed: &'a Arc<RoutedOperation>,
    /// The `{account_id}` of the path.
    pub(super) account: Option<&'a str>,
    /// The `{id}` of the path.
    pub(super) id: Option<&'a str>,
    /// The path in front of the paths of the operations.
    pub(super) base: String,
}

/// What the logs and the response headers tell about a request, besides its response.
#[derive(Default)]
pub(super) struct AccessRecord {
    pub(super) operation: Option<&'static str>,
    pub(super) client: Option<Client>,
    pub(super) status: Option<RateLimitStatus>,
    pub(super) written: WrittenEvents,
}

/// A read whose API key is valid.
struct AuthenticatedRead {
    client: Client,
    result: ReadResult,
}

enum ReadResult {
    /// A rate limit is used up, so the operation did not run and the request does not count.
    RateLimited(RateLimited),
    /// The key must not run the operation, the request is not valid, or the operation failed. The request counts.
    Failed(Problem),
    /// The request must wait for memory, so the operation did not run and the request does not count.
    NoMemory { records: u32 },
    /// The operation ran, with memory for its response. The request counts.
    Completed(ApiResponse, Reservation),
}

/// A write that was read and parsed.
enum Prepared<'a> {
    Change {
        change: Arc<Change>,
        /// The webhook URL in it, whose host is to be checked.
        webhook_url: Option<WebhookUrl>,
        /// The body, which takes memory until the end of the request.
        memory: Option<ReceivedBody<'a>>,
    },
    /// The response to a signed request that was repeated as it was.
    Repeated(ApiResponse),
}

impl RequestContext<'_> {
    /// Handles a GET or HEAD request.
    pub(super) async fn read(&self, access: &mut AccessRecord) -> Result<Outcome, Problem> {
        let parsed = self.account().and_then(|_| (self.operation().parse)(&self.request_parts(&[])));
        let mut reserved = None;
        let (client, result) = loop {
            let has_memory = reserved.is_some();
            let AuthenticatedRead { client, result } =
                self.authenticate_and_run(parsed.clone(), has_memory, access).await?;
            match result {
                ReadResult::RateLimited(limited) => return Err(self.rate_limited(limited, access)),
                ReadResult::Failed(problem) => break (client, Err(problem)),
                // A request waits outside of the transaction, and only if its key is valid.
                ReadResult::NoMemory { records } => reserved = Some(self.state.responses.reserve(records).await?),
                ReadResult::Completed(response, memory) => {
                    let body = reserved.unwrap_or(memory).hold(response.body, self.parts.extensions.get());
                    break (client, Ok(ApiResponse { body, ..response }));
                }
            }
        };
        self.count(&client, access).await?;
        let outcome = message::check_none_match(result?, &self.parts.headers);
        if matches!(outcome, Outcome::NotModified { .. }) {
            access.status = Some(self.state.limits.refund(self.limit_key(&client), self.now()));
        }
        Ok(outcome)
    }

    /// Handles a POST, PATCH or DELETE request.
    pub(super) async fn write<B: Incoming>(&self, body: B, access: &mut AccessRecord) -> Result<Outcome, Problem> {
        let credentials = self.bearer(access).await?;
        let known = self.known_client(credentials, access).await;
        let is_known = known.is_some();
        let mut client = match known {
            Some(client) => client,
            None => self.admit(credentials, access).await?,
        };
        let prepared = self.prepare(body, &client, credentials).await;
        // What is wrong with a key comes before all other errors, and before a name server is asked.
        if is_known && !matches!(prepared, Ok(Prepared::Change { webhook_url: None, .. })) {
            self.confirm(credentials, access).await?;
        }
        let (change, _memory) = match prepared? {
            Prepared::Repeated(response) => return Ok(Outcome::Response(response)),
            Prepared::Change { change, webhook_url, memory } => {
                if let Some(url) = webhook_url {
                    self.check_new_webhook_target(&url, &change).await?;
                }
                (change, memory)
            }
        };
        let mut counted_for = client.limits().filter(|_| is_known);
        loop {
            match self.run(&change, counted_for).await {
                Ok(Some(Changed { response, written, client })) => {
                    self.keep_key(credentials, &client);
                    self.record_client(&client, access);
                    access.written = written;
                    return Ok(Outcome::Response(response));
                }
                Ok(None) => {
                    self.state.limits.refund(self.limit_key(&client), self.now());
                    client = self.admit(credentials, access).await?;
                    counted_for = None;
                }
                Err(problem) if is_known && !is_of_store(&problem) => {
                    self.confirm(credentials, access).await?;
                    return Err(problem);
                }
                Err(problem) => {
                    self.record_client(&client, access);
                    return Err(problem);
                }
            }
        }
    }

    /// Returns the client of a write whose key was looked up a moment ago and may run the operation, and counts the request.
    /// One that is refused is looked up, as its rate limits may have changed.
    async fn known_client(&self, credentials: Credentials, access: &mut AccessRecord) -> Option<Client> {
        let Credentials::Key(hash) = credentials else { return None };
        let client = Client::Key(self.state.known_keys.get(hash, self.now())?);
        client.require(self.operation()).ok()?;
        access.status = Some(self.state.limits.count(self.limit_key(&client), self.now()).await.ok()?);
        Some(client)
    }

    /// Looks up the key of a write, counts the request, and checks that the key may run the operation.
    async fn admit(&self, credentials: Credentials, access: &mut AccessRecord) -> Result<Client, Problem> {
        let client = self.authenticate(credentials, access).await?;
        self.count(&client, access).await?;
        client.require(self.operation())?;
        Ok(client)
    }

    /// Looks up the key of a write that was known, and checks that it may run the operation.
    async fn confirm(&self, credentials: Credentials, access: &mut AccessRecord) -> Result<(), Problem> {
        Ok(self.authenticate(credentials, access).await?.require(self.operation())?)
    }

    /// Keeps a key that was looked up for the next write with it.
    fn keep_key(&self, credentials: Credentials, client: &Client) {
        if let (Credentials::Key(hash), Client::Key(caller)) = (credentials, client) {
            self.state.known_keys.add(hash, caller, self.now());
        }
    }

    /// Does what a write needs before its transaction.
    async fn prepare<B: Incoming>(
        &self,
        body: B,
        client: &Client,
        credentials: Credentials,
    ) -> Result<Prepared<'_>, Problem> {
        let signature = self.signature_headers(client)?;
        let received = self.read_body(body, signature.is_some()).await?;
        let body = received.as_ref().map(|received| received.bytes.clone()).unwrap_or_default();
        let stored_since = self.now().minus(self.state.settings.idempotency_ttl);
        if let Some((caller, signature)) = signature
            && !self.use_signature(&signature, caller, &body).await?
        {
            return self.repeat(client, &body, stored_since).await.map(Prepared::Repeated);
        }
        if self.operation().takes_body() {
            message::check_media_type(&self.parts.headers, &body)?;
        }
        let ParsedRequest { operation, webhook_url, is_dry_run, .. } = self.parse(&body).await?;
        let change = Arc::new(Change {
            operation,
            is_dry_run,
            tenant: client.tenant(),
            routed: Arc::clone(self.routed),
            actor: client.actor(),
            credentials,
            idempotency_scope: client.idempotency_scope(),
            claim: self.idempotency_claim(client, &body)?.map(Arc::new),
            stored_since,
            condition: self.condition()?,
        });
        Ok(Prepared::Change { change, webhook_url, memory: received })
    }

    fn operation(&self) -> &Operation {
        &self.routed.operation
    }

    /// Returns the account that the path names, on the platform API.
    fn account(&self) -> Result<Option<TenantId>, Problem> {
        let parsed = self.account.map(str::parse).transpose();
        parsed.map_err(|issue: Issue| issue.on("account_id").into())
    }

    fn now(&self) -> Timestamp {
        self.state.store.env().now()
    }

    fn request_parts<'p>(&'p self, body: &'p [u8]) -> RequestParts<'p> {
        RequestParts {
            id: self.id,
            query: self.parts.uri.query().unwrap_or_default(),
            body,
            base: &self.base,
            event_kinds: &self.state.store.env().event_kinds,
        }
    }

    /// Looks up the key of a write.
    async fn authenticate(&self, credentials: Credentials, access: &mut AccessRecord) -> Result<Client, Problem> {
        let client = self
            .state
            .store
            .read("authenticate", credentials, async |tx, credentials| credentials.authenticate(tx).await)
            .await;
        match client {
            Ok(client) => {
                self.keep_key(credentials, &client);
                self.record_client(&client, access);
                Ok(client)
            }
            Err(error) => {
                if let Credentials::Key(hash) = credentials {
                    self.state.known_keys.remove(hash);
                }
                Err(self.count_anonymous(error.into(), access).await)
            }
        }
    }

    /// Looks up the key of a read and runs the operation, in one transaction.
    async fn authenticate_and_run(
        &self,
        parsed: Result<ParsedRequest, Problem>,
        has_memory: bool,
        access: &mut AccessRecord,
    ) -> Result<AuthenticatedRead, Problem> {
        let credentials = self.bearer(access).await?;
        let (state, routed) = (Arc::clone(self.state), Arc::clone(self.routed));
        let read = self.state.store.read(
            self.operation().id,
            (credentials, state, routed, has_memory, parsed),
            async |tx, (credentials, state, routed, has_memory, parsed)| {
                let client = credentials.authenticate(tx).await?;
                let limit_key = limit_key(state, routed, &client);
                // Checked before the operation runs, to save its work when the request will be refused.
                let result = match state.limits.check(limit_key, tx.env().now()) {
                    Err(limited) => ReadResult::RateLimited(limited),
                    Ok(()) => {
                        let reserve = |records| state.responses.try_reserve(if *has_memory { 0 } else { records });
                        let run = authorize_and_run(tx, &client, &routed.operation, parsed.clone(), reserve);
                        run.await.unwrap_or_else(ReadResult::Failed)
                    }
                };
                Ok(AuthenticatedRead { client, result })
            },
        );
        match read.await {
            Ok(read) => {
                self.record_client(&read.client, access);
                Ok(read)
            }
            Err(error) => Err(self.count_anonymous(error.into(), access).await),
        }
    }

    async fn bearer(&self, access: &mut AccessRecord) -> Result<Credentials, Problem> {
        match self.credentials() {
            Ok(credentials) => Ok(credentials),
            Err(problem) => Err(self.count_anonymous(problem, access).await),
        }
    }

    fn credentials(&self) -> Result<Credentials, Problem> {
        let headers = &self.parts.headers;
        if self.operation().area.is_none() {
            return Ok(Credentials::Key(KeyHash::of(auth::bearer(headers, KEY_PREFIX)?)?));
        }
        let hash = PlatformKeyHash::of(auth::bearer(headers, PLATFORM_KEY_PREFIX)?)?;
        // A malformed id names no account. It is refused when the request is parsed.
        Ok(Credentials::Platform { hash, account: self.account().unwrap_or_default() })
    }

    fn record_client(&self, client: &Client, access: &mut AccessRecord) {
        match client {
            Client::Key(caller) => self.state.last_used.record(caller.key_id, self.now()),
            Client::Platform { key, .. } => self.state.last_used.record_platform_key(key.id, self.now()),
        }
        access.client = Some(client.clone());
    }

    fn limit_key(&self, client: &Client) -> RateLimitKey {
        limit_key(self.state, self.routed, client)
    }

    /// Counts a request with a valid key.
    async fn count(&self, client: &Client, access: &mut AccessRecord) -> Result<(), Problem> {
        match self.state.limits.count(self.limit_key(client), self.now()).await {
            Ok(status) => {
                access.status = Some(status);
                Ok(())
            }
            Err(limited) => Err(self.rate_limited(limited, access)),
        }
    }

    /// Counts a request without a valid key against its address, unless the store failed to look the key up.
    async fn count_anonymous(&self, problem: Problem, access: &mut AccessRecord) -> Problem {
        if is_of_store(&problem) {
            return problem;
        }
        match self.state.limits.count(self.state.limits.key_of_peer(self.peer), self.now()).await {
            Ok(status) => {
                access.status = Some(status);
                problem
            }
            Err(limited) => self.rate_limited(limited, access),
        }
    }

    fn rate_limited(&self, limited: RateLimited, access: &mut AccessRecord) -> Problem {
        access.status = Some(limited.status);
        self.state.settings.metrics.rate_limited(limited.status.policy());
        Problem::RateLimited { retry_after: limited.retry_after }
    }

    /// Returns the signature headers if the key signs its writes. Platform keys do not.
    fn signature_headers<'c>(&self, client: &'c Client) -> Result<Option<(&'c Caller, SignatureHeaders<'_>)>, Problem> {
        match client {
            Client::Key(caller) if caller.signing_secret.is_some() => {
                Ok(Some((caller, SignatureHeaders::from_headers(&self.parts.headers)?)))
            }
            _ => Ok(None),
        }
    }

    /// Reads the body if the operation has one, or if a signature covers it.
    async fn read_body<B: Incoming>(&self, body: B, is_signed: bool) -> Result<Option<ReceivedBody<'_>>, Problem> {
        if self.operation().takes_body() || is_signed {
            Ok(Some(self.state.bodies.read(body, self.state.settings.body_timeout).await?))
        } else {
            Ok(None)
        }
    }

    /// Verifies the signature and marks it as used, whatever becomes of the request. Returns `false` if it was used before,
    /// or may have been.
    async fn use_signature(
        &self,
        signature: &SignatureHeaders<'_>,
        caller: &Caller,
        body: &[u8],
    ) -> Result<bool, Problem> {
        let VerifiedSignature { mac, signed_at } =
            signature.verify(caller, self.parts, &self.state.settings.mount, body, self.now())?;
        let key_id = caller.key_id;
        let claimed = self.state.store.write(
            "signature.claim",
            (signed_at, key_id, mac),
            async |tx, &(signed_at, key_id, mac)| {
                let until = signed_at.checked_add(SIGNATURE_MEMORY).unwrap_or(signed_at);
                Ok(tx.claim_signature(key_id, &mac, until).await?)
            },
        );
        Ok(claimed.await?)
    }

    /// Returns the response to a request whose signature was used before: the stored one, if the same request has left one
    /// under its idempotency key. So a client can repeat a request as it was, which changes nothing.
    async fn repeat(&self, client: &Client, body: &[u8], stored_since: Timestamp) -> Result<ApiResponse, Problem> {
        let key = self.idempotency_key().unwrap_or_default();
        match self.stored_response(client.idempotency_scope(), key, stored_since).await? {
            Some(stored) if stored.fingerprint == self.fingerprint(body) => Ok(ApiResponse::from_stored(stored)),
            _ => Err(Problem::SignatureReused),
        }
    }

    /// Parses a write. Large bodies are parsed one at a time on a thread of their own, so that they do not delay other
    /// requests.
    async fn parse(&self, body: &Bytes) -> Result<ParsedRequest, Problem> {
        self.account()?;
        if body.len() <= LARGE_BODY {
            return (self.operation().parse)(&self.request_parts(body));
        }
        let failed = |error: &dyn std::fmt::Display| StoreError::Internal(error.to_string());
        let permit = Arc::clone(&self.state.large_body).acquire_owned().await.map_err(|error| failed(&error))?;
        let (parse, id, body) = (Arc::clone(&self.operation().parse), self.id.map(str::to_owned), body.clone());
        let (query, base) = (self.parts.uri.query().unwrap_or_default().to_owned(), self.base.clone());
        let event_kinds = self.state.store.env().event_kinds.clone();
        let parsed = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let id = id.as_deref();
            parse(&RequestParts { id, query: &query, body: &body, base: &base, event_kinds: &event_kinds })
        });
        parsed.await.map_err(|error| failed(&error))?
    }

    /// Returns the idempotency key of a POST.
    fn idempotency_key(&self) -> Result<Option<&str>, Problem> {
        if self.parts.method != Method::POST {
            return Ok(None);
        }
        let mut values = self.parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else { return Ok(None) };
        // A repeated header and one that is not ASCII are refused like a key with a character that is not allowed.
        let key = if values.next().is_none() { value.to_str().unwrap_or("\u{fffd}") } else { "\u{fffd}" };
        idempotency::check_key(key).map_err(|issue| issue.on("Idempotency-Key"))?;
        Ok(Some(key))
    }

    /// Returns what tells one request under an idempotency key from another.
    fn fingerprint(&self, body: &[u8]) -> [u8; 32] {
        // A path of the public API that takes a POST has no ids. Both of its versions have the same operations.
        let is_public = self.operation().area.is_none();
        let path = if is_public { self.operation().path.as_str() } else { self.parts.uri.path() };
        let operation = format!("{} {path}", self.parts.method);
        idempotency::fingerprint(&operation, body)
    }

    /// Returns the idempotency key of a POST, registered as running.
    fn idempotency_claim(&self, client: &Client, body: &[u8]) -> Result<Option<IdempotencyClaim>, Problem> {
        let Some(key) = self.idempotency_key()? else { return Ok(None) };
        Ok(Some(IdempotencyClaim {
            key: key.to_owned(),
            fingerprint: self.fingerprint(body),
            _guard: self.state.in_flight.register(client.idempotency_scope(), key)?,
        }))
    }

    /// Returns the response that is stored under an idempotency key.
    async fn stored_response(
        &self,
        scope: TenantId,
        key: Option<&str>,
        stored_since: Timestamp,
    ) -> Result<Option<StoredResponse>, Problem> {
        let Some(key) = key.map(Arc::<str>::from) else { return Ok(None) };
        let stored = self.state.store.read(
            "idempotency.recorded",
            (scope, key, stored_since),
            async |tx, (scope, key, stored_since)| Ok(tx.stored_response(*scope, key, *stored_since).await?),
        );
        Ok(stored.await?)
    }

    /// Checks the host of a webhook URL before the transaction, which must not wait for a name server.
    async fn check_new_webhook_target(&self, url: &WebhookUrl, change: &Change) -> Result<(), Problem> {
        // A stored response is returned whatever the host of the URL resolves to by now.
        let key = change.claim.as_ref().map(|claim| claim.key.as_str());
        if self.stored_response(change.idempotency_scope, key, change.stored_since).await?.is_some() {
            return Ok(());
        }
        let policy = self.state.store.env().webhook_hosts;
        let checked = addresses::check_target(url, policy, &*self.state.settings.resolver).await;
        Ok(checked.map_err(|issue| issue.on("url"))?)
    }

    /// Returns the `If-Match` condition of operations that take the header.
    fn condition(&self) -> Result<Option<Condition>, Problem> {
        let tags = message::tags(&self.parts.headers, IF_MATCH);
        // A header without a valid tag matches nothing; it does not make the change unconditional.
        match (&self.operation().current, self.parts.headers.contains_key(IF_MATCH)) {
            (Some(parse), true) => Ok(Some(Condition { tags, current: parse(&self.request_parts(&[]))?.operation })),
            _ => Ok(None),
        }
    }

    /// Makes the change in a transaction, as [`Change::run`] does.
    async fn run(&self, change: &Arc<Change>, counted_for: Option<RateLimits>) -> Result<Option<Changed>, Problem> {
        let (scope, claim, stored_since) = (change.idempotency_scope, change.claim.clone(), change.stored_since);
        let (name, change) = (self.operation().id, Arc::clone(change));
        if change.is_dry_run {
            let tried = self.state.store.dry_run(name, (change, counted_for), async |tx, (change, counted_for)| {
                change.run(tx, *counted_for).await
            });
            return Ok(tried.await?);
        }
        let changed = self
            .state
            .store
            .write(name, (change, counted_for), async |tx, (change, counted_for)| change.run(tx, *counted_for).await);
        let result = changed.await.map_err(Problem::from);
        // A conflict rolled the transaction back, so its response is stored in another one.
        if let (Some(claim), Err(problem @ Problem::Core(Error::EmailTaken { .. } | Error::LimitReached { .. }))) =
            (claim, &result)
        {
            let response = ApiResponse { status: problem.status(), body: problem.body(), ..ApiResponse::no_content() };
            let stored = self.state.store.write(
                "idempotency.record",
                (scope, claim, stored_since, response),
                async |tx, (scope, claim, stored_since, response)| {
                    // Another node may have run a request with the same key meanwhile, whose response is then kept.
                    if !tx.claim_idempotency(*scope, &claim.key).await?
                        || tx.stored_response(*scope, &claim.key, *stored_since).await?.is_some()
                    {
                        return Ok(());
                    }
                    let stored = response.to_stored(claim.fingerprint, tx.env().now());
                    Ok(tx.store_response(*scope, &claim.key, &stored).await?)
                },
            );
            stored.await?;
        }
        result
    }
}

/// Returns whether the store failed, so that nothing is known of the key.
fn is_of_store(problem: &Problem) -> bool {
    matches!(problem, Problem::Core(Error::Store(_)))
}

/// Returns the windows that a request with a valid key counts in.
fn limit_key(state: &State, routed: &RoutedOperation, client: &Client) -> RateLimitKey {
    match client {
        Client::Key(caller) => state.limits.key_of_caller(caller, routed.write_limit),
        Client::Platform { key, account, .. } => {
            state.limits.key_of_platform_key(key.id, account.as_deref(), routed.write_limit)
        }
    }
}

/// Checks that the client may run a read, and runs it if it could be parsed and there is memory for its response.
async fn authorize_and_run(
    tx: &mut dyn Tx,
    client: &Client,
    operation: &Operation,
    parsed: Result<ParsedRequest, Problem>,
    reserve: impl FnOnce(u32) -> Option<Reservation>,
) -> Result<ReadResult, Problem> {
    client.require(operation)?;
    let ParsedRequest { operation, records, .. } = parsed?;
    client.require_account()?;
    let Some(memory) = reserve(records) else { return Ok(ReadResult::NoMemory { records }) };
    Ok(ReadResult::Completed(operation(tx, client.tenant()).await?, memory))
}
