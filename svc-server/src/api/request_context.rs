//! The path of one request from its route to its operation.
//!
//! [`RequestContext::read`] and [`RequestContext::write`] have the checks of a request in the order of the contract
//! (`docs/contract.md`, "Order of checks"). A read is one transaction, which looks the API key up and runs the operation. A
//! write is two: the first looks the API key up, and the second, once the body has been read, looks it up again, makes the
//! change and stores the response for its idempotency key.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderName, Method, StatusCode};
use svc_core::accounts::actor::Actor;
use svc_core::accounts::idempotency::{self, StoredResponse};
use svc_core::accounts::keys::Caller;
use svc_core::accounts::signing::VerifiedSignature;
use svc_core::error::{Error, Issue, StoreError};
use svc_core::operation::{AnyOperation, Request};
use svc_core::store::Tx;
use svc_core::values::{TenantId, Timestamp, WebhookUrl};
use svc_core::webhooks::addresses;

use crate::api::change::{Change, Condition, IdempotencyClaim, Preview};
use crate::api::run::OperationCall;
use crate::api::{Operations, RoutedOperation};
use crate::kernel::Kernel;
use crate::kernel::access::AccessRecord;
use crate::kernel::auth::{Credentials, Principal, SignatureHeaders};
use crate::kernel::body::{self, ArrivingBody, MAX_BODY};
use crate::kernel::limits::RateLimitKey;
use crate::kernel::problem::Problem;
use crate::kernel::response::{self, ApiResponse};
use crate::kernel::response_memory::{Holder, MemoryPermit};
use crate::kernel::tool_call::ToolCall;
use crate::kernel::versions::Version;

/// How long a used signature is remembered after its timestamp: for the tolerance of the timestamp, and as long again for
/// a clock that runs ahead and is set back, or those of several nodes.
const SIGNATURE_MEMORY: Duration = Duration::from_secs(601);

/// The size of a body, in bytes, over which it is parsed on a thread of its own. The most expensive body of this size
/// takes a few milliseconds.
const LARGE_BODY: usize = 32 * 1024;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request to an operation.
pub(super) struct RequestContext<'a> {
    pub(super) surface: &'a Operations,
    pub(super) parts: &'a Parts,
    /// The address of the client.
    pub(super) peer: IpAddr,
    pub(super) routed: RoutedOperation,
    /// The `{account_id}` of the path.
    pub(super) account: Option<&'a str>,
    /// The `{id}` of the path.
    pub(super) id: Option<&'a str>,
    pub(super) version: Version,
}

impl RequestContext<'_> {
    /// Handles a GET or HEAD request, whose route was found.
    pub(super) async fn read(&self, access: &mut AccessRecord) -> Result<ApiResponse, Problem> {
        let if_none_match = response::tags(&self.parts.headers, IF_NONE_MATCH);
        let call = self.account().and_then(|_| self.parse_as(self.operation(), &[]));
        let records = self.records_needed(call.as_ref().map_or(0, |call| call.parsed.memory));
        let call = call.map(|call| Arc::new(OperationCall { if_none_match: if_none_match.clone(), ..call }));
        let mut waited = None;
        // 401; and if the key is valid, in the same transaction 403, 400 and 404
        let (client, result) = loop {
            let needed = if waited.is_some() { Needed::Acquired } else { Needed::Records(records) };
            let (client, result) = self.authenticate_and_run(call.clone(), needed, access).await?;
            match result.transpose() {
                Some(result) => break (client, result),
                // A request waits outside of the transaction, and only if its key is valid. It counts before it waits, as it
                // does whether there will be memory or not.
                None => {
                    self.count(&client, access).await?;
                    waited = Some(self.wait_for_memory(Holder::of(client.account()), records).await?);
                }
            }
        };
        if waited.is_none() {
            // 429, which comes before what the transaction returned
            self.count(&client, access).await?;
        }
        let (response, memory) = result?;
        let response = response.unless_unmodified(&if_none_match);
        if response.status == StatusCode::NOT_MODIFIED {
            access.status = Some(self.kernel().limits.refund(self.limit_key(&client), self.now()));
        }
        let memory = waited.unwrap_or(memory);
        if let Some(call) = self.tool() {
            call.memory.put(memory);
            return Ok(response);
        }
        let body = memory.hold(response.body, self.parts.extensions.get());
        Ok(ApiResponse { body, ..response })
    }

    /// Returns the memory that a read needs, in records, for what it reads. The result of a tool has its response several times:
    /// as it was made, parsed, as a text, and as the message that has both.
    fn records_needed(&self, records: u32) -> u32 {
        const COPIES: u32 = 4;
        if self.tool().is_some() { records.saturating_mul(COPIES) } else { records }
    }

    /// Waits for memory, as long as the request has none.
    async fn wait_for_memory(&self, holder: Holder, records: u32) -> Result<MemoryPermit, StoreError> {
        if self.tool().is_some_and(|call| call.memory.is_taken()) {
            let reason = "the memory for the calls of one message is used up; send them one by one";
            return Err(StoreError::Unavailable(reason.to_owned()));
        }
        self.kernel().responses.acquire(holder, records).await
    }

    /// Handles a POST, PATCH or DELETE request, whose route was found.
    pub(super) async fn write(
        &self,
        body: ArrivingBody<'_>,
        access: &mut AccessRecord,
    ) -> Result<ApiResponse, Problem> {
        // 401
        let (client, credentials) = self.authenticate(access).await?;
        // 429
        self.count(&client, access).await?;
        // 403
        client.require(self.operation())?;
        // 401 without a signature, 413 and 408, then 401 with a wrong signature
        let signature = self.signature_headers(&client)?;
        let body = self.read_body(body, signature.is_some()).await?;
        let stored_since = self.now().minus(self.kernel().settings.idempotency_ttl);
        if let Some((caller, signature)) = signature
            && !self.use_signature(&signature, caller, &body).await?
        {
            return self.repeat(&client, &body, stored_since).await;
        }
        // 415
        if self.operation().takes_body() {
            body::check_media_type(&self.parts.method, &self.parts.headers, &body)?;
        }
        // 400 for the body, the `Idempotency-Key` and the host of a webhook URL
        let call = OperationCall { base: self.base(), ..self.parse(&body).await? };
        let claim = self.idempotency_claim(&client, &body)?;
        let condition = self.condition()?;
        let preview = self.preview()?;
        if let Some(url) = &call.parsed.outside.webhook {
            self.check_new_webhook_target(url, claim.as_ref(), stored_since).await?;
        }
        // In a transaction: the key again, 404, 400 of the rules, 409, 412
        let change = Change {
            is_dry_run: call.parsed.is_dry_run || preview.is_some(),
            call,
            preview,
            tenant: client.tenant(),
            operation: self.operation(),
            actor: actor(&client, self.tool()),
            credentials,
            claim,
            stored_since,
            condition,
        };
        let (response, written) = change.make(&*self.kernel().store).await?;
        access.written = written;
        let memory = self.kernel().responses.nothing(Holder::of(client.account()));
        let body = memory.hold(response.body, self.parts.extensions.get());
        Ok(ApiResponse { body, ..response })
    }

    fn kernel(&self) -> &Kernel {
        &self.surface.engine.kernel
    }

    fn operation(&self) -> &'static dyn AnyOperation {
        self.routed.operation
    }

    /// Returns what retrieves the record that `If-Match` is about, for operations that take the header.
    fn current(&self) -> Option<&'static dyn AnyOperation> {
        self.operation().current.filter(|_| self.operation().takes_if_match())
    }

    /// Returns the account that the path names, on the platform API.
    fn account(&self) -> Result<Option<TenantId>, Problem> {
        let parsed = self.account.map(str::parse).transpose();
        parsed.map_err(|issue: Issue| issue.on("account_id").into())
    }

    fn now(&self) -> Timestamp {
        self.kernel().now()
    }

    /// Returns the path in front of the paths of the operations.
    fn base(&self) -> String {
        match self.account {
            Some(account) => format!("{}/accounts/{account}", self.version.path()),
            None => format!("{}{}", self.surface.mount, self.version.for_clients().path()),
        }
    }

    /// Parses the request for this operation.
    fn parse_as(&self, operation: &'static dyn AnyOperation, body: &[u8]) -> Result<OperationCall, Problem> {
        let query = self.parts.uri.query().unwrap_or_default();
        let event_kinds = &self.kernel().env().event_kinds;
        OperationCall::parse(operation, self.id, Request { query, body, event_kinds })
    }

    /// Looks up the key of a write.
    async fn authenticate(&self, access: &mut AccessRecord) -> Result<(Principal, Credentials), Problem> {
        let (client, credentials) = self.kernel().authenticate(self.credentials(), self.peer, access).await?;
        self.kernel().record_use(&client);
        Ok((client, credentials))
    }

    /// Looks up the key of a read and runs the operation, in one transaction.
    async fn authenticate_and_run(
        &self,
        call: Result<Arc<OperationCall>, Problem>,
        needed: Needed,
        access: &mut AccessRecord,
    ) -> Result<(Principal, ReadResult), Problem> {
        let read = async {
            let credentials = self.credentials()?;
            let input = (credentials, Arc::clone(&self.surface.engine.kernel), self.routed, call, needed);
            let read = self.kernel().store.read(self.operation().id, input, async |tx, input| {
                let (credentials, kernel, routed, call, needed) = input;
                let client = credentials.authenticate(tx).await?;
                // What an app may see depends on who asks, whatever tool it has called.
                tx.act_as(client.actor());
                let result = authorize_and_run(tx, &client, kernel, *routed, call.clone(), *needed).await;
                Ok((client, result))
            });
            Ok(read.await?)
        };
        match read.await {
            Ok((client, result)) => {
                self.record_client(&client, access);
                Ok((client, result))
            }
            Err(problem) => Err(self.count_anonymous(problem, access).await),
        }
    }

    fn credentials(&self) -> Result<Credentials, Problem> {
        let headers = &self.parts.headers;
        if self.version != Version::Platform {
            return Credentials::of_account(headers, self.version.path(), self.kernel().apps.is_some());
        }
        // A malformed id names no account. It is refused when the request is parsed.
        Credentials::of_platform(headers, self.account().unwrap_or_default())
    }

    fn record_client(&self, client: &Principal, access: &mut AccessRecord) {
        self.kernel().record_use(client);
        access.client = Some(client.clone());
    }

    fn limit_key(&self, client: &Principal) -> RateLimitKey {
        self.kernel().limit_key(client, self.routed.write_limit)
    }

    /// Counts a request with a valid key.
    async fn count(&self, client: &Principal, access: &mut AccessRecord) -> Result<(), Problem> {
        self.kernel().count(self.limit_key(client), access).await
    }

    async fn count_anonymous(&self, problem: Problem, access: &mut AccessRecord) -> Problem {
        self.kernel().count_anonymous(self.peer, problem, access).await
    }

    /// Returns the signature headers if the key signs its writes. Platform keys do not.
    fn signature_headers<'c>(
        &self,
        client: &'c Principal,
    ) -> Result<Option<(&'c Caller, SignatureHeaders<'_>)>, Problem> {
        match client {
            Principal::Key(caller) if caller.signing_secret.is_some() => {
                Ok(Some((caller, SignatureHeaders::from_headers(&self.parts.headers)?)))
            }
            _ => Ok(None),
        }
    }

    /// Reads the body if the operation has one, or if a signature covers it.
    async fn read_body(&self, body: ArrivingBody<'_>, is_signed: bool) -> Result<Bytes, Problem> {
        if self.operation().takes_body() || is_signed { body.read(MAX_BODY).await } else { Ok(Bytes::new()) }
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
            signature.verify(caller, self.parts, &self.kernel().settings.mount, body, self.now())?;
        let key_id = caller.id.key_id();
        let claimed = self.kernel().store.write(
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
    async fn repeat(&self, client: &Principal, body: &[u8], stored_since: Timestamp) -> Result<ApiResponse, Problem> {
        let Ok(Some(key)) = self.idempotency_key() else { return Err(Problem::SignatureReused) };
        match self.stored_response(client.idempotency_scope(), key, stored_since).await? {
            Some(stored) if stored.fingerprint == self.fingerprint(body) => Ok(ApiResponse::from_stored(stored)),
            _ => Err(Problem::SignatureReused),
        }
    }

    /// Parses a write. Large bodies are parsed one at a time on a thread of their own, so that they do not delay other
    /// requests.
    async fn parse(&self, body: &Bytes) -> Result<OperationCall, Problem> {
        self.account()?;
        if body.len() <= LARGE_BODY {
            return self.parse_as(self.operation(), body);
        }
        let failed = |error: &dyn std::fmt::Display| StoreError::Internal(error.to_string());
        let permit =
            Arc::clone(&self.surface.engine.large_body).acquire_owned().await.map_err(|error| failed(&error))?;
        let (operation, id, body) = (self.operation(), self.id.map(str::to_owned), body.clone());
        let query = self.parts.uri.query().unwrap_or_default().to_owned();
        let event_kinds = self.kernel().env().event_kinds.clone();
        let parsed = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let request = Request { query: &query, body: &body, event_kinds: &event_kinds };
            OperationCall::parse(operation, id.as_deref(), request)
        });
        parsed.await.map_err(|error| failed(&error))?
    }

    /// Returns the call of a tool that the request stands for.
    fn tool(&self) -> Option<&ToolCall> {
        self.parts.extensions.get()
    }

    /// Returns what tells what the change would do, if the tool is only tried.
    fn preview(&self) -> Result<Option<Preview>, Problem> {
        if !self.tool().is_some_and(|call| call.is_dry_run) {
            return Ok(None);
        }
        let before = self.current().map(|get| self.parse_as(get, &[])).transpose()?;
        Ok(Some(Preview { before }))
    }

    /// Returns the idempotency key of a POST, or of any write by a tool.
    fn idempotency_key(&self) -> Result<Option<&str>, Problem> {
        let takes_key = match self.tool() {
            Some(call) => !call.is_dry_run,
            None => self.parts.method == Method::POST,
        };
        if !takes_key {
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
        // All versions of the public API have the same operations.
        let path = match self.version {
            Version::Platform => self.parts.uri.path().to_owned(),
            _ => self.operation().path_in_account().replace("{id}", self.id.unwrap_or_default()),
        };
        let operation = format!("{} {path}", self.parts.method);
        idempotency::fingerprint(&operation, body)
    }

    /// Returns the idempotency key of a POST, registered as running.
    fn idempotency_claim(&self, client: &Principal, body: &[u8]) -> Result<Option<IdempotencyClaim>, Problem> {
        let Some(key) = self.idempotency_key()? else { return Ok(None) };
        let scope = client.idempotency_scope();
        let guard = self.surface.engine.in_flight.register(scope, key)?;
        Ok(Some(IdempotencyClaim { scope, key: key.to_owned(), fingerprint: self.fingerprint(body), _guard: guard }))
    }

    /// Returns the response that is stored under an idempotency key.
    async fn stored_response(
        &self,
        scope: TenantId,
        key: &str,
        stored_since: Timestamp,
    ) -> Result<Option<StoredResponse>, Problem> {
        let input = (scope, key.to_owned(), stored_since);
        let stored = self.kernel().store.read("idempotency.recorded", input, async |tx, (scope, key, stored_since)| {
            Ok(tx.stored_response(*scope, key, *stored_since).await?)
        });
        Ok(stored.await?)
    }

    /// Checks the host of a webhook URL before the transaction, which must not wait for a name server.
    async fn check_new_webhook_target(
        &self,
        (field, url): &(&'static str, WebhookUrl),
        claim: Option<&IdempotencyClaim>,
        stored_since: Timestamp,
    ) -> Result<(), Problem> {
        // A stored response is returned whatever the host of the URL resolves to by now.
        if let Some(IdempotencyClaim { scope, key, .. }) = claim
            && self.stored_response(*scope, key, stored_since).await?.is_some()
        {
            return Ok(());
        }
        let (policy, settings) = (self.kernel().store.env().webhook_hosts, &self.kernel().settings);
        let checked = match &settings.egress_proxy {
            Some(proxy) if proxy.resolves() => addresses::check_url(url, policy),
            _ => addresses::check_target(url, policy, &*settings.resolver).await,
        };
        Ok(checked.map_err(|issue| issue.on(field))?)
    }

    /// Returns the `If-Match` condition of operations that take the header.
    fn condition(&self) -> Result<Option<Condition>, Problem> {
        let tags = response::tags(&self.parts.headers, IF_MATCH);
        // A header without a valid tag matches nothing; it does not make the change unconditional.
        match (self.current(), self.parts.headers.contains_key(IF_MATCH)) {
            (Some(get), true) => Ok(Some(Condition { tags, current: self.parse_as(get, &[])? })),
            _ => Ok(None),
        }
    }
}

/// Returns who makes a change, as the audit log names it.
fn actor(client: &Principal, tool: Option<&ToolCall>) -> Actor {
    match tool {
        Some(call) => Actor::Tool { client: Box::new(client.actor()), tool: call.name.clone() },
        None => client.actor(),
    }
}

/// The result of a read whose key is valid: its response with memory for it, or nothing if it has to wait for memory.
type ReadResult = Result<Option<(ApiResponse, MemoryPermit)>, Problem>;

/// The memory that a read needs.
#[derive(Clone, Copy)]
enum Needed {
    /// This number of records, which the transaction takes if there is memory.
    Records(u32),
    /// None any more: the request was counted, and has waited for what it needs.
    Acquired,
}

/// Checks that the client may run a read, and runs it if it could be parsed and there is memory for the response.
async fn authorize_and_run(
    tx: &mut dyn Tx,
    client: &Principal,
    kernel: &Kernel,
    routed: RoutedOperation,
    call: Result<Arc<OperationCall>, Problem>,
    needed: Needed,
) -> ReadResult {
    // The request is counted later, or has been. This saves the work of one that will be refused.
    if matches!(needed, Needed::Records(_))
        && let Err(limited) = kernel.limits.check(kernel.limit_key(client, routed.write_limit), tx.env().now())
    {
        return Err(Problem::RateLimited { retry_after: limited.retry_after });
    }
    client.require(routed.operation)?;
    let call = call?;
    client.require_account()?;
    tx.read_as(client.tenant()).map_err(Error::from)?;
    let records = if let Needed::Records(records) = needed { records } else { 0 };
    let Some(memory) = kernel.responses.try_acquire(Holder::of(client.account()), records) else { return Ok(None) };
    Ok(Some((call.run(tx, client.tenant()).await?, memory)))
}
