//! Messages of assistants (MCP): who sends them, and how they are counted.
//!
//! A message is authenticated as a request of the API is, before its body is read. If it calls an operation, the request that it
//! becomes is counted, logged and checked once more, so the message itself is not.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use svc_core::accounts::keys::Scope;
use svc_core::error::Issue;
use svc_core::values::TenantId;
use tokio::sync::watch;

use super::{About, Mcp, Message, Permits, Posted, Refusal, Session, ToolsPath};
use crate::kernel::access::AccessRecord;
use crate::kernel::auth::{Credentials, Principal};
use crate::kernel::body::{self, ArrivingBody, MAX_BODY};
use crate::kernel::listener::Arrived;
use crate::kernel::problem::Problem;
use crate::kernel::response::Outcome;
use crate::kernel::response_memory::{Holder, MemoryPermit, ToolMemory};

/// The memory that the list of all tools is made in, in records.
const TOOLS_MEMORY: u32 = 6;

/// The size of the responses of a batch, in bytes. A result that would pass it is refused, and so are messages after it was passed
/// by changes.
const MAX_BATCH_RESPONSES: usize = 1024 * 1024;

/// The error of JSON-RPC of a message in a batch that HTTP would refuse with a status.
const REFUSED: i32 = -32000;

/// The context for handling a message.
struct Handling<'a> {
    parts: &'a Parts,
    /// The permits of the batch that the message is in. By itself it waits for its own.
    permits: Option<Arc<Permits>>,
}

impl Mcp {
    /// Responds to what a client posts for the tools of a path. Each message of a client counts once: as the request that it
    /// becomes, or else by itself.
    pub(super) async fn respond(&self, tools: ToolsPath<'_>, request: Arrived<'_>) -> Result<Outcome, Problem> {
        let Arrived { parts, body, peer, access } = request;
        access.is_message = true;
        let client = self.sender(&tools, parts, peer, access).await?;
        // It is dropped with this future when the client is gone.
        let (_client, waiting) = watch::channel(());
        let session = Session {
            operations: Arc::clone(&self.operations),
            peer,
            client: client.clone(),
            base: tools.version.path(),
            account: tools.account.map(str::to_owned),
            is_read_only: tools.is_read_only,
            headers: parts.headers.clone(),
            is_counted: Arc::default(),
            memory: ToolMemory::default(),
            waiting,
        };
        let received = match self.receive(&client, parts, body).await {
            Ok(received) => received,
            Err(problem) => {
                self.count_message(&client, access).await?;
                return Err(problem);
            }
        };
        let posted = match &received {
            Some(body) => Posted::read(body, &parts.headers).map(Some).map_err(|it| Box::new(it.to_response())),
            None => Ok(None),
        };
        let posted = match Self::check_headers(parts).and(posted) {
            Ok(posted) => posted,
            Err(response) => {
                self.count_message(&client, access).await?;
                return Ok(Outcome::Http((*response).map(Into::into)));
            }
        };
        let handling = Handling { parts, permits: None };
        let (response, memory) = match posted {
            Some(Posted::Batch(messages)) => self.respond_to_batch(handling, &session, messages, access).await?,
            Some(Posted::Message(message)) => {
                self.respond_to_message(&handling, session, Some(&message), access).await?
            }
            None => self.respond_to_message(&handling, session, None, access).await?,
        };
        Ok(Outcome::Http(response.map(|body| memory.hold(body, parts.extensions.get()).into())))
    }

    /// Reads the body of a POST, after what can be refused without it.
    async fn receive(
        &self,
        client: &Principal,
        parts: &Parts,
        body: ArrivingBody<'_>,
    ) -> Result<Option<Bytes>, Problem> {
        // 403 and 404
        client.require_account()?;
        if let Principal::Key(caller) = client {
            caller.require(Scope::Read)?;
        }
        let received = match parts.method {
            Method::POST => Some(body.read(MAX_BODY).await?),
            _ => None,
        };
        body::check_charset(&parts.headers)?;
        Ok(received)
    }

    /// Responds to the messages of a batch, in their order. Few batches are handled at a time, so what their responses take
    /// until they are complete is bounded, and none keeps a part of the memory while it waits for more.
    async fn respond_to_batch(
        &self,
        handling: Handling<'_>,
        session: &Session,
        messages: Vec<Result<Message, Refusal>>,
        access: &mut AccessRecord,
    ) -> Result<(Response<Bytes>, MemoryPermit), Problem> {
        let permits = self.admit_batch(Holder::of(session.client.account())).await?;
        let handling = Handling { permits: Some(Arc::new(permits)), ..handling };
        // What the response takes counts once it is complete, without waiting.
        let memory = self.kernel.responses.nothing(Holder::of(session.client.account()));
        let mut all: Vec<Bytes> = Vec::new();
        for message in messages {
            let message = match message {
                Ok(message) => message,
                Err(refusal) => {
                    let counted = self.count_message(&session.client, access).await;
                    let response =
                        counted.map_or_else(|problem| refused(&Value::Null, &problem), |()| refusal.to_message());
                    all.push(response.to_string().into());
                    continue;
                }
            };
            let session = Session { is_counted: Arc::default(), memory: ToolMemory::default(), ..session.clone() };
            let changes = match self.about(&message, session.is_read_only) {
                About::Operation(operation) => operation.writes(),
                About::Other => false,
            };
            let taken = all.iter().map(Bytes::len).sum::<usize>();
            let mut result = match taken > MAX_BATCH_RESPONSES {
                true => Err(Problem::BatchTooLarge),
                false => self.respond_to_message(&handling, session, Some(&message), access).await,
            };
            // Nobody has memory for a large response until the batch is complete. That to a change is small, and has to be known.
            if let Ok((response, _)) = &result
                && !changes
                && taken + response.body().len() > MAX_BATCH_RESPONSES
            {
                result = Err(Problem::BatchTooLarge);
            }
            match (result, message.id) {
                // The host or the origin, which are those of all messages, and nothing was done.
                (Ok((response, memory)), _) if response.status() == StatusCode::FORBIDDEN => {
                    return Ok((response, memory));
                }
                (Ok((response, _)), Some(_)) => all.push(response.into_body()),
                (Err(problem), Some(id)) => all.push(refused(&id, &problem).to_string().into()),
                (_, None) => {}
            }
        }
        let mut response = Response::new(Bytes::new());
        if all.is_empty() {
            *response.status_mut() = StatusCode::ACCEPTED;
            return Ok((response, memory));
        }
        let mut body = Vec::with_capacity(all.iter().map(|one| one.len() + 1).sum::<usize>() + 1);
        for (position, one) in all.into_iter().enumerate() {
            body.push(if position == 0 { b'[' } else { b',' });
            body.extend_from_slice(&one);
        }
        body.push(b']');
        *response.body_mut() = body.into();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok((response, memory))
    }

    /// Responds to a message, and counts it unless it has become a request, which was counted.
    async fn respond_to_message(
        &self,
        handling: &Handling<'_>,
        session: Session,
        message: Option<&Message>,
        access: &mut AccessRecord,
    ) -> Result<(Response<Bytes>, MemoryPermit), Problem> {
        let (client, is_counted) = (session.client.clone(), Arc::clone(&session.is_counted));
        let result = self.handle_message(handling, session, message, access).await;
        if is_counted.load(Ordering::Relaxed) {
            let window = self.kernel.limit_key(&client, None);
            access.status = Some(self.kernel.limits.status(window, self.kernel.now()));
        } else {
            self.count_message(&client, access).await?;
        }
        result
    }

    async fn handle_message(
        &self,
        handling: &Handling<'_>,
        session: Session,
        message: Option<&Message>,
        access: &mut AccessRecord,
    ) -> Result<(Response<Bytes>, MemoryPermit), Problem> {
        let Handling { parts, permits } = handling;
        let (client, responses) = (&session.client, &self.kernel.responses);
        let holder = Holder::of(client.account());
        let kind = message.map_or(About::Other, |message| self.about(message, session.is_read_only));
        let memory_needed = match kind {
            About::Operation(operation) => {
                client.require(operation.about).inspect_err(|_| {
                    // It is a request that was refused, as its client sees in the log.
                    access.is_message = false;
                })?;
                // The request that the call becomes takes memory for the result as well.
                0
            }
            About::Other => {
                session.is_counted.store(true, Ordering::Relaxed);
                self.count_message(client, access).await?;
                TOOLS_MEMORY
            }
        };
        let body = message.map(|message| message.bytes.clone()).unwrap_or_default();
        let permits = match permits {
            Some(permits) => Arc::clone(permits),
            None => Arc::new(self.admit(holder, body.len()).await?),
        };
        let memory = responses.acquire(holder, memory_needed).await?;
        let of_call = session.memory.clone();
        let mut request = Request::from_parts((*parts).clone(), Full::new(body));
        request.extensions_mut().insert(session);
        // They belong to the call, which goes on without its client if it changes something.
        request.extensions_mut().insert(permits);
        let response = self.pass_on(message, request).await;
        Ok((response, of_call.take().unwrap_or(memory)))
    }

    /// Returns who sends a message. A message without a valid key counts against its address.
    async fn sender(
        &self,
        tools: &ToolsPath<'_>,
        parts: &Parts,
        peer: IpAddr,
        access: &mut AccessRecord,
    ) -> Result<Principal, Problem> {
        let credentials = match tools.account {
            Some(account) => account
                .parse::<TenantId>()
                .map_err(|issue: Issue| issue.on("account_id").into())
                .and_then(|account| Credentials::of_platform(&parts.headers, Some(account))),
            None => Credentials::of_account(&parts.headers, tools.version.path(), self.kernel.apps.is_some()),
        };
        Ok(self.kernel.authenticate(credentials, peer, access).await?.0)
    }

    async fn count_message(&self, client: &Principal, access: &mut AccessRecord) -> Result<(), Problem> {
        self.kernel.record_use(client);
        self.kernel.count(self.kernel.limit_key(client, None), access).await
    }
}

/// Returns the message for a request in a batch that HTTP would refuse with a status.
fn refused(id: &Value, problem: &Problem) -> Value {
    let data: Value = serde_json::from_slice(&problem.body()).unwrap_or_default();
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": REFUSED, "message": data["error"], "data": data } })
}
