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
use super::change::{Change, Condition, Ticket};
use super::message;
use super::{Account, Answer, Inner};
use crate::api::auth::{self, SignatureHeaders};
use crate::api::handlers::{Prepared, Target, Work};
use crate::api::limits::{Counted, Refused};
use crate::api::problem::Problem;
use crate::api::response::Reply;
use crate::api::routes::Operation;

/// How long a signature is remembered: twice the tolerance, as its timestamp may lie in the future.
const SIGNATURE_MEMORY: Duration = Duration::from_secs(601);

/// Bytes of a body that are parsed at once; the costliest of this size take a few milliseconds.
const LARGE_BODY: usize = 32 * 1024;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// One request on its way to its operation.
pub(super) struct Visit<'a> {
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
    result: Result<Result<Option<Reply>, Problem>, Refused>,
}

impl Visit<'_> {
    fn operation(&self) -> &Operation {
        &self.api.operations[self.position]
    }

    fn now(&self) -> Timestamp {
        self.api.store.env().now()
    }

    fn target<'t>(&'t self, body: &'t [u8]) -> Target<'t> {
        Target { id: self.id, query: self.parts.uri.query().unwrap_or_default(), body, base: &self.base }
    }

    pub(super) async fn read(&self, account: &mut Account) -> Result<Answer, Problem> {
        let prepared = (self.operation().prepare)(&self.target(&[]));
        let (caller, reply) = self.admit(Some(prepared.map(|prepared| prepared.work)), account).await?;
        let reply = reply.ok_or_else(|| StoreError::Fault("a read gave no answer".to_owned()))?;
        let answer = message::unless_none_match(reply, &self.parts.headers);
        if matches!(answer, Answer::NotModified { .. }) {
            account.standing = Some(self.api.limits.refund(self.counted(&caller), self.now()));
        }
        Ok(answer)
    }

    pub(super) async fn write<B: Incoming>(&self, body: B, account: &mut Account) -> Result<Answer, Problem> {
        let (caller, _) = self.admit(None, account).await?;
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
            self.claim(&caller, mac).await?;
        }
        if self.operation().takes_body() {
            message::check_media_type(&self.parts.headers, &body)?;
        }
        let Prepared { work, url } = self.prepare(&body).await?;
        let ticket = self.ticket(&caller, &body)?.map(Arc::new);
        let kept_since = self.now().minus(self.api.settings.idempotency_ttl);
        if let Some(url) = url
            && !self.is_recorded(caller.tenant, ticket.as_ref(), kept_since).await?
        {
            self.check_resolved(&url).await?;
        }
        let (tenant, key) = (caller.tenant, caller.key);
        let change = Change { work, tenant, key, ticket, kept_since, condition: self.condition(&body)? };
        self.run(change).await.map(Answer::Reply)
    }

    /// Parses a request with a body. A large one takes its time, and takes it from nobody: on a thread of its own, one
    /// after the other.
    async fn prepare(&self, body: &Bytes) -> Result<Prepared, Problem> {
        if body.len() <= LARGE_BODY {
            return Ok((self.operation().prepare)(&self.target(body))?);
        }
        let failed = |why: &dyn std::fmt::Display| StoreError::Fault(why.to_string());
        let turn = Arc::clone(&self.api.large_bodies).acquire_owned().await.map_err(|why| failed(&why))?;
        let (prepare, id, body) = (self.operation().prepare, self.id.map(str::to_owned), body.clone());
        let (query, base) = (self.parts.uri.query().unwrap_or_default().to_owned(), self.base.clone());
        let parsed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            prepare(&Target { id: id.as_deref(), query: &query, body: &body, base: &base })
        });
        Ok(parsed.await.map_err(|why| failed(&why))??)
    }

    /// Looks the key up, counts the request and checks what the key may do. `work` follows in the same job.
    async fn admit(
        &self,
        work: Option<Result<Work, Error>>,
        account: &mut Account,
    ) -> Result<(Caller, Option<Reply>), Problem> {
        let hash = match auth::bearer(&self.parts.headers) {
            Ok(hash) => hash,
            Err(error) => return Err(self.stranger(error, account).await),
        };
        let (api, position) = (Arc::clone(self.api), self.position);
        let scope = api.operations[position].scope;
        let name = if work.is_some() { self.operation().id } else { "authenticate" };
        let admitted = self.api.store.read(name, move |tx| {
            let (api, work) = (Arc::clone(&api), work.clone());
            Box::pin(async move {
                let caller = keys::authenticate(tx, hash).await?;
                // A request that will be refused is spared its work.
                let counted = api.limits.of_key(&caller, api.caps[position]);
                let result = match api.limits.check(counted, tx.env().now()) {
                    Err(refused) => Err(refused),
                    Ok(()) => Ok(match caller.require(scope) {
                        Err(error) => Err(error.into()),
                        Ok(()) => perform(tx, &caller, work).await,
                    }),
                };
                Ok(Admitted { caller, result })
            })
        });
        let Admitted { caller, result } = match admitted.await {
            Ok(admitted) => admitted,
            Err(error) => return Err(self.stranger(error, account).await),
        };
        let now = self.now();
        self.api.last_used.note(caller.key, now);
        account.caller = Some(caller.clone());
        let counted = match result {
            Ok(result) => self.api.limits.take(self.counted(&caller), now).await.map(|standing| (standing, result)),
            Err(refused) => Err(refused),
        };
        let (standing, result) = counted.unwrap_or_else(|refused| (refused.standing, Err(self.limited(refused))));
        account.standing = Some(standing);
        Ok((caller, result?))
    }

    /// How the request counts against its key.
    fn counted(&self, caller: &Caller) -> Counted {
        self.api.limits.of_key(caller, self.api.caps[self.position])
    }

    /// A request without a valid key counts against its address.
    async fn stranger(&self, error: Error, account: &mut Account) -> Problem {
        if matches!(error, Error::Store(_)) {
            return error.into();
        }
        let taken = self.api.limits.take(self.api.limits.of_peer(self.peer), self.now()).await;
        let (standing, problem) = match taken {
            Ok(standing) => (standing, error.into()),
            Err(refused) => (refused.standing, self.limited(refused)),
        };
        account.standing = Some(standing);
        problem
    }

    fn limited(&self, refused: Refused) -> Problem {
        self.api.settings.metrics.rate_limited(refused.standing.policy());
        Problem::RateLimited { retry_after: refused.retry_after }
    }

    /// A signature is accepted once, whatever comes of its request.
    async fn claim(&self, caller: &Caller, mac: [u8; 32]) -> Result<(), Problem> {
        let key = caller.key;
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
        ticket: Option<&Arc<Ticket>>,
        kept_since: Timestamp,
    ) -> Result<bool, Problem> {
        let Some(ticket) = ticket.cloned() else { return Ok(false) };
        let recorded = self.api.store.read("idempotency.recorded", move |tx| {
            let ticket = Arc::clone(&ticket);
            Box::pin(async move { Ok(tx.recorded(tenant, &ticket.key, kept_since).await?.is_some()) })
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

    fn ticket(&self, caller: &Caller, body: &[u8]) -> Result<Option<Ticket>, Problem> {
        if self.parts.method != Method::POST {
            return Ok(None);
        }
        let mut values = self.parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else { return Ok(None) };
        // What is no text is as wrong as an empty key, and repeated keys are no key.
        let key = if values.next().is_none() { value.to_str().unwrap_or("\u{fffd}") } else { "\u{fffd}" };
        idempotency::check_key(key)?;
        let path = &self.operation().path;
        Ok(Some(Ticket {
            key: key.to_owned(),
            fingerprint: idempotency::fingerprint(self.parts.method.as_str(), path, body),
            _guard: self.api.in_flight.begin(caller.tenant, key)?,
        }))
    }

    fn condition(&self, body: &[u8]) -> Result<Option<Condition>, Problem> {
        let tags = message::tags(&self.parts.headers, IF_MATCH);
        // A header that names no tag matches none; it does not make the change unconditional.
        match (self.operation().current, self.parts.headers.contains_key(IF_MATCH)) {
            (Some(current), true) => Ok(Some(Condition { tags, current: current(&self.target(body))?.work })),
            _ => Ok(None),
        }
    }

    async fn run(&self, change: Change) -> Result<Reply, Problem> {
        let (tenant, ticket) = (change.tenant, change.ticket.clone());
        let change = Arc::new(change);
        let changed = self.api.store.write(self.operation().id, move |tx| {
            let change = Arc::clone(&change);
            Box::pin(async move { change.run(tx).await })
        });
        let result = changed.await;
        // A conflict changed nothing, so its answer is kept in a transaction of its own.
        if let (Some(ticket), Err(error @ Error::EmailTaken { .. })) = (ticket, &result) {
            let problem = Problem::Core(error.clone());
            let kept = Reply { status: problem.status(), body: problem.body(), ..Reply::no_content() };
            let recorded = self.api.store.write("idempotency.record", move |tx| {
                let (ticket, kept) = (Arc::clone(&ticket), kept.clone());
                Box::pin(async move {
                    let recorded = kept.record(ticket.fingerprint, tx.env().now());
                    Ok(tx.record(tenant, &ticket.key, &recorded).await?)
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
    work: Option<Result<Work, Error>>,
) -> Result<Option<Reply>, Problem> {
    match work {
        None => Ok(None),
        Some(work) => Ok(Some(work?(tx, caller.tenant).await?)),
    }
}
