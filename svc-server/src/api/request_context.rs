//! One request on its way to its operation: key, limit, scope, signature, body, and then the job.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::IF_MATCH;
use http::request::Parts;
use http::{HeaderName, Method};
use svc_core::accounts::idempotency;
use svc_core::accounts::keys::{self, Caller};
use svc_core::error::{Error, StoreError};
use svc_core::store::Tx;
use svc_core::values::{HostPolicy, TenantId, Timestamp, WebhookUrl};
use svc_core::webhooks::addresses;

use super::body::Incoming;
use super::change::{Change, Condition, IdempotencyClaim};
use super::message;
use super::{AccessRecord, Answer, Inner};
use crate::api::auth::{self, SignatureHeaders};
use crate::api::handlers::{OperationFn, ParsedRequest, RequestParts};
use crate::api::limits::{RateLimitKey, RateLimited};
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;
use crate::api::routes::Operation;

/// How long a signature is remembered: twice the tolerance, as its timestamp may lie in the future.
const SIGNATURE_MEMORY: Duration = Duration::from_secs(601);

/// Bytes of a body that are parsed at once; the costliest of this size take a few milliseconds.
const LARGE_BODY: usize = 32 * 1024;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// One request on its way to its operation.
pub(super) struct RequestContext<'a> {
    pub(super) api: &'a Arc<Inner>,
    pub(super) parts: &'a Parts,
    pub(super) peer: IpAddr,
    pub(super) position: usize,
    pub(super) id: Option<&'a str>,
    pub(super) base: String,
}

/// What admitting a key comes to. What fails after the key was found still counts against it.
struct Admitted {
    caller: Caller,
    /// The outer failure is that a window is used up.
    result: Result<Result<Option<ApiResponse>, Problem>, RateLimited>,
}

impl RequestContext<'_> {
    fn operation(&self) -> &Operation {
        &self.api.operations[self.position]
    }

    fn now(&self) -> Timestamp {
        self.api.store.env().now()
    }

    fn target<'t>(&'t self, body: &'t [u8]) -> RequestParts<'t> {
        RequestParts { id: self.id, query: self.parts.uri.query().unwrap_or_default(), body, base: &self.base }
    }

    pub(super) async fn read(&self, access: &mut AccessRecord) -> Result<Answer, Problem> {
        let parsed = (self.operation().parse)(&self.target(&[]));
        let (caller, response) = self.admit(Some(parsed.map(|parsed| parsed.run)), access).await?;
        let response = response.ok_or_else(|| StoreError::Internal("a read gave no answer".to_owned()))?;
        let answer = message::unless_none_match(response, &self.parts.headers);
        if matches!(answer, Answer::NotModified { .. }) {
            access.status = Some(self.api.limits.refund(self.limit_key(&caller), self.now()));
        }
        Ok(answer)
    }

    pub(super) async fn write<B: Incoming>(&self, body: B, access: &mut AccessRecord) -> Result<Answer, Problem> {
        let (caller, _) = self.admit(None, access).await?;
        let signature = match caller.signing_secret {
            Some(_) => Some(SignatureHeaders::find(&self.parts.headers)?),
            None => None,
        };
        let arrived = if self.operation().takes_body() || signature.is_some() {
            Some(self.api.bodies.read(body, self.api.settings.body_timeout).await?)
        } else {
            None
        };
        let body = arrived.as_ref().map(|arrived| arrived.bytes.clone()).unwrap_or_default();
        if let Some(signature) = signature {
            let mac = signature.verify(&caller, self.parts, &self.api.settings.mount, &body, self.now())?;
            self.claim_signature(&caller, mac).await?;
        }
        if self.operation().takes_body() {
            message::check_media_type(&self.parts.headers, &body)?;
        }
        let ParsedRequest { run, url } = self.parse(&body).await?;
        let claim = self.idempotency_claim(&caller, &body)?.map(Arc::new);
        let kept_since = self.now().minus(self.api.settings.idempotency_ttl);
        if let Some(url) = url
            && !self.is_recorded(caller.tenant_id, claim.as_ref(), kept_since).await?
        {
            self.check_resolved(&url).await?;
        }
        let (tenant, key) = (caller.tenant_id, caller.key_id);
        let change = Change { run, tenant, key, claim, kept_since, condition: self.condition(&body)? };
        self.run(change).await.map(Answer::ApiResponse)
    }

    /// Parses a request with a body. A large one takes its time, and takes it from nobody: on a thread of its own, one
    /// after the other.
    async fn parse(&self, body: &Bytes) -> Result<ParsedRequest, Problem> {
        if body.len() <= LARGE_BODY {
            return Ok((self.operation().parse)(&self.target(body))?);
        }
        let failed = |error: &dyn std::fmt::Display| StoreError::Internal(error.to_string());
        let turn = Arc::clone(&self.api.large_bodies).acquire_owned().await.map_err(|error| failed(&error))?;
        let (parse, id, body) = (self.operation().parse, self.id.map(str::to_owned), body.clone());
        let (query, base) = (self.parts.uri.query().unwrap_or_default().to_owned(), self.base.clone());
        let parsed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            parse(&RequestParts { id: id.as_deref(), query: &query, body: &body, base: &base })
        });
        Ok(parsed.await.map_err(|error| failed(&error))??)
    }

    /// Looks the key up, counts the request and checks what the key may do. `run` follows in the same job.
    async fn admit(
        &self,
        run: Option<Result<OperationFn, Error>>,
        access: &mut AccessRecord,
    ) -> Result<(Caller, Option<ApiResponse>), Problem> {
        let hash = match auth::bearer(&self.parts.headers) {
            Ok(hash) => hash,
            Err(error) => return Err(self.anonymous_client(error, access).await),
        };
        let (api, position) = (Arc::clone(self.api), self.position);
        let scope = api.operations[position].scope;
        let name = if run.is_some() { self.operation().id } else { "authenticate" };
        let admitted = self.api.store.read(name, move |tx| {
            let (api, run) = (Arc::clone(&api), run.clone());
            Box::pin(async move {
                let caller = keys::authenticate(tx, hash).await?;
                // A request that will be refused is spared its work.
                let limit_key = api.limits.of_key(&caller, api.caps[position]);
                let result = match api.limits.check(limit_key, tx.env().now()) {
                    Err(refused) => Err(refused),
                    Ok(()) => Ok(match caller.require(scope) {
                        Err(error) => Err(error.into()),
                        Ok(()) => perform(tx, &caller, run).await,
                    }),
                };
                Ok(Admitted { caller, result })
            })
        });
        let Admitted { caller, result } = match admitted.await {
            Ok(admitted) => admitted,
            Err(error) => return Err(self.anonymous_client(error, access).await),
        };
        let now = self.now();
        self.api.last_used.note(caller.key_id, now);
        access.caller = Some(caller.clone());
        let limit_key = match result {
            Ok(result) => self.api.limits.take(self.limit_key(&caller), now).await.map(|status| (status, result)),
            Err(refused) => Err(refused),
        };
        let (status, result) = limit_key.unwrap_or_else(|refused| (refused.status, Err(self.limited(refused))));
        access.status = Some(status);
        Ok((caller, result?))
    }

    /// How the request counts against its key.
    fn limit_key(&self, caller: &Caller) -> RateLimitKey {
        self.api.limits.of_key(caller, self.api.caps[self.position])
    }

    /// A request without a valid key counts against its address.
    async fn anonymous_client(&self, error: Error, access: &mut AccessRecord) -> Problem {
        if matches!(error, Error::Store(_)) {
            return error.into();
        }
        let taken = self.api.limits.take(self.api.limits.of_peer(self.peer), self.now()).await;
        let (status, problem) = match taken {
            Ok(status) => (status, error.into()),
            Err(refused) => (refused.status, self.limited(refused)),
        };
        access.status = Some(status);
        problem
    }

    fn limited(&self, refused: RateLimited) -> Problem {
        self.api.settings.metrics.rate_limited(refused.status.policy());
        Problem::RateLimited { retry_after: refused.retry_after }
    }

    /// A signature is accepted once, whatever comes of its request.
    async fn claim_signature(&self, caller: &Caller, mac: [u8; 32]) -> Result<(), Problem> {
        let key = caller.key_id;
        let fresh = self.api.store.write("signature.claim", move |tx| {
            Box::pin(async move {
                let now = tx.env().now();
                let until = now.checked_add(SIGNATURE_MEMORY).unwrap_or(now);
                Ok(tx.claim_signature(key, &mac, until).await?)
            })
        });
        if fresh.await? {
            return Ok(());
        }
        Err(Error::SignatureInvalid("This signature was used before; sign each request with the time of its sending.")
            .into())
    }

    /// Whether the answer is known already, whatever the host resolves to by now.
    async fn is_recorded(
        &self,
        tenant: TenantId,
        claim: Option<&Arc<IdempotencyClaim>>,
        kept_since: Timestamp,
    ) -> Result<bool, Problem> {
        let Some(claim) = claim.cloned() else { return Ok(false) };
        let recorded = self.api.store.read("idempotency.recorded", move |tx| {
            let claim = Arc::clone(&claim);
            Box::pin(async move { Ok(tx.stored_response(tenant, &claim.key, kept_since).await?.is_some()) })
        });
        Ok(recorded.await?)
    }

    /// A name that resolves to an address that is not public is refused; one that does not resolve is not.
    async fn check_resolved(&self, url: &WebhookUrl) -> Result<(), Problem> {
        if self.api.store.env().webhook_hosts == HostPolicy::AllowPrivate {
            return Ok(());
        }
        addresses::check_url(url, HostPolicy::Public).map_err(|issue| issue.on("url"))?;
        let Some(name) = url.domain() else { return Ok(()) };
        let addresses = self.api.settings.resolver.resolve(name).await;
        Ok(addresses::check_addresses(&addresses).map_err(|issue| issue.on("url"))?)
    }

    fn idempotency_claim(&self, caller: &Caller, body: &[u8]) -> Result<Option<IdempotencyClaim>, Problem> {
        if self.parts.method != Method::POST {
            return Ok(None);
        }
        let mut values = self.parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else { return Ok(None) };
        // What is no text is as wrong as an empty key, and repeated keys are no key.
        let key = if values.next().is_none() { value.to_str().unwrap_or("\u{fffd}") } else { "\u{fffd}" };
        idempotency::check_key(key)?;
        let path = &self.operation().path;
        Ok(Some(IdempotencyClaim {
            key: key.to_owned(),
            fingerprint: idempotency::fingerprint(self.parts.method.as_str(), path, body),
            _guard: self.api.in_flight.begin(caller.tenant_id, key)?,
        }))
    }

    fn condition(&self, body: &[u8]) -> Result<Option<Condition>, Problem> {
        let tags = message::tags(&self.parts.headers, IF_MATCH);
        // A header that names no tag matches none; it does not make the change unconditional.
        match (self.operation().current, self.parts.headers.contains_key(IF_MATCH)) {
            (Some(current), true) => Ok(Some(Condition { tags, current: current(&self.target(body))?.run })),
            _ => Ok(None),
        }
    }

    async fn run(&self, change: Change) -> Result<ApiResponse, Problem> {
        let (tenant, claim) = (change.tenant, change.claim.clone());
        let change = Arc::new(change);
        let changed = self.api.store.write(self.operation().id, move |tx| {
            let change = Arc::clone(&change);
            Box::pin(async move { change.run(tx).await })
        });
        let result = changed.await;
        // A conflict changed nothing, so its answer is kept in a transaction of its own.
        if let (Some(claim), Err(error @ Error::EmailTaken { .. })) = (claim, &result) {
            let problem = Problem::Core(error.clone());
            let kept = ApiResponse { status: problem.status(), body: problem.body(), ..ApiResponse::no_content() };
            let recorded = self.api.store.write("idempotency.record", move |tx| {
                let (claim, kept) = (Arc::clone(&claim), kept.clone());
                Box::pin(async move {
                    let recorded = kept.record(claim.fingerprint, tx.env().now());
                    Ok(tx.store_response(tenant, &claim.key, &recorded).await?)
                })
            });
            recorded.await?;
        }
        Ok(result?)
    }
}

async fn perform(
    tx: &mut dyn Tx,
    caller: &Caller,
    run: Option<Result<OperationFn, Error>>,
) -> Result<Option<ApiResponse>, Problem> {
    match run {
        None => Ok(None),
        Some(run) => Ok(Some(run?(tx, caller.tenant_id).await?)),
    }
}
