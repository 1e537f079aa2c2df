//! Messages of assistants (MCP): who sends them, and how they are counted.
//!
//! A message is authenticated as a request of the API is, before its body is read. If it calls an operation, the request that it
//! becomes is counted, logged and checked once more, so the message itself is not.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request};
use http_body_util::Full;
use svc_core::accounts::keys::Scope;
use svc_core::error::Issue;
use svc_core::values::TenantId;

use crate::api::auth::Principal;
use crate::api::body::{self, ArrivingBody, MAX_BODY};
use crate::api::problem::Problem;
use crate::api::request_context::{self, AccessRecord};
use crate::api::response::Outcome;
use crate::api::response_memory::ResponseMemory;
use crate::api::routes::Version;
use crate::api::state::State;
use crate::api::{Api, ListenerKind};
use crate::mcp::{Kind, Mcp, Session, ToolsPath};

/// The memory that the list of all tools can be made in, in records.
const TOOLS_MEMORY: u32 = 2;

impl Api {
    /// Responds to a message for the tools of a path. Each message of a client counts once: as the request that it becomes, or
    /// else by itself.
    pub(super) async fn respond_to_assistant(
        &self,
        mcp: &Mcp,
        tools: ToolsPath<'_>,
        parts: &Parts,
        body: ArrivingBody<'_>,
        peer: IpAddr,
        access: &mut AccessRecord,
    ) -> Result<Outcome, Problem> {
        access.is_message = true;
        let client = self.sender(&tools, parts, peer, access).await?;
        let listener = match tools.version {
            Version::Platform => ListenerKind::Platform,
            _ => ListenerKind::Assistants,
        };
        let is_counted = Arc::new(AtomicBool::new(false));
        let session = Session {
            api: Self { state: Arc::clone(&self.state), listener },
            peer,
            client: client.clone(),
            base: tools.version.path(),
            account: tools.account.map(str::to_owned),
            is_read_only: tools.is_read_only,
            headers: parts.headers.clone(),
            is_counted: Arc::clone(&is_counted),
        };
        let result = self.handle_message(mcp, session, parts, body, access).await;
        if is_counted.load(Ordering::Relaxed) {
            let window = request_context::limit_key(&self.state, None, &client);
            access.status = Some(self.state.limits.status(window, self.env().now()));
        } else {
            self.count_message(&client, access).await?;
        }
        result
    }

    async fn handle_message(
        &self,
        mcp: &Mcp,
        session: Session,
        parts: &Parts,
        body: ArrivingBody<'_>,
        access: &mut AccessRecord,
    ) -> Result<Outcome, Problem> {
        let State { responses, .. } = &*self.state;
        let client = &session.client;
        // 403 and 404, before the body is read
        client.require_account()?;
        if let Principal::Key(caller) = client {
            caller.require(Scope::Read)?;
        }
        let message = match parts.method {
            Method::POST => body.read(MAX_BODY).await?,
            _ => Bytes::new(),
        };
        body::check_charset(&parts.headers)?;
        let memory_needed = match mcp.kind_of(&message, session.is_read_only) {
            Kind::Operation(operation) => {
                client.require_scope(operation.area, operation.scope).inspect_err(|_| {
                    // It is a request that was refused, as its client sees in the log.
                    access.is_message = false;
                })?;
                // What a call reads has memory of its own until its result is made.
                0
            }
            Kind::Other => {
                session.is_counted.store(true, Ordering::Relaxed);
                self.count_message(client, access).await?;
                TOOLS_MEMORY
            }
        };
        let permits = Arc::new(mcp.admit(message.len()).await?);
        let mut memory = responses.acquire(memory_needed).await?;
        let mut request = Request::from_parts(parts.clone(), Full::new(message));
        request.extensions_mut().insert(session);
        // They belong to the call, which goes on without its client.
        request.extensions_mut().insert(permits);
        let response = mcp.respond(request).await;
        responses.grow(&mut memory, ResponseMemory::records_of(response.body().len() as u64)).await?;
        Ok(Outcome::Page(response.map(|body| memory.hold(body, parts.extensions.get()).into())))
    }

    /// Returns who sends a message. A message without a valid key counts against its address.
    async fn sender(
        &self,
        tools: &ToolsPath<'_>,
        parts: &Parts,
        peer: IpAddr,
        access: &mut AccessRecord,
    ) -> Result<Principal, Problem> {
        let state = &self.state;
        let found = async {
            let credentials = match tools.account {
                Some(account) => {
                    let account: TenantId = account.parse().map_err(|issue: Issue| issue.on("account_id"))?;
                    request_context::credentials_of_platform(&parts.headers, Some(account))?
                }
                None => request_context::credentials_of_account(&parts.headers, tools.version, state.has_apps())?,
            };
            let client = state.store.read("authenticate", credentials, async |tx, key| key.authenticate(tx).await);
            Ok(client.await?)
        };
        match found.await {
            Ok(client) => {
                access.client = Some(client.clone());
                Ok(client)
            }
            Err(problem) => Err(request_context::count_anonymous(state, peer, problem, access).await),
        }
    }

    async fn count_message(&self, client: &Principal, access: &mut AccessRecord) -> Result<(), Problem> {
        let state = &self.state;
        request_context::record_use(state, client);
        match state.limits.count(request_context::limit_key(state, None, client), self.env().now()).await {
            Ok(status) => {
                access.status = Some(status);
                Ok(())
            }
            Err(limited) => Err(request_context::rate_limited(state, limited, access)),
        }
    }
}
