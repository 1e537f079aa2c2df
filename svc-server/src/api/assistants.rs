//! Messages of assistants (MCP): who sends them, and how they are counted.
//!
//! A message is authenticated as a request of the API is. If it calls an operation, the request that it becomes is counted,
//! logged and checked once more, so the message itself is not.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::request::Parts;
use http::{Method, Request};
use http_body_util::Full;
use svc_core::accounts::keys::Scope;
use svc_core::error::Issue;
use svc_core::values::TenantId;

use crate::api::auth::Principal;
use crate::api::body::Incoming;
use crate::api::problem::Problem;
use crate::api::request_context::{self, AccessRecord};
use crate::api::response::Outcome;
use crate::api::response_memory::ResponseMemory;
use crate::api::routes::Version;
use crate::api::{Api, ListenerKind};
use crate::mcp::{Kind, Mcp, Session, ToolsPath};

/// The memory that the list of all tools can be made in, in records.
const TOOLS_MEMORY: u32 = 2;

impl Api {
    /// Responds to a message for the tools of a place.
    pub(super) async fn respond_to_assistant<B: Incoming>(
        &self,
        mcp: &Mcp,
        place: ToolsPath<'_>,
        parts: &Parts,
        body: B,
        peer: IpAddr,
        access: &mut AccessRecord,
    ) -> Result<Outcome, Problem> {
        let state = &self.state;
        access.is_message = true;
        // 401, 403 and 404, before the body is read
        let client = self.sender(&place, parts, peer, access).await?;
        client.require_account()?;
        if let Principal::Key(caller) = &client {
            caller.require(Scope::Read)?;
        }
        let received = match parts.method {
            Method::POST => Some(state.bodies.read(body, state.settings.body_timeout).await?),
            _ => None,
        };
        let message = received.as_ref().map(|received| received.bytes.clone()).unwrap_or_default();
        let kind = mcp.kind_of(&message, place.is_read_only);
        match &kind {
            Kind::Operation(operation) => {
                if let Err(refused) = client.require_scope(operation.area, operation.scope) {
                    // It is a request that was refused, as its client sees in the log.
                    access.is_message = false;
                    self.count_message(&client, access).await?;
                    return Err(refused.into());
                }
            }
            Kind::Other => self.count_message(&client, access).await?,
        }
        let permits = Arc::new(mcp.admit(message.len()).await?);
        let is_counted = Arc::new(AtomicBool::new(matches!(kind, Kind::Other)));
        let listener = match place.version {
            Version::Platform => ListenerKind::Platform,
            _ => ListenerKind::Assistants,
        };
        let mut request = Request::from_parts(parts.clone(), Full::new(message.clone()));
        request.extensions_mut().insert(Session {
            api: Self { state: Arc::clone(state), listener },
            peer,
            client: client.clone(),
            base: place.version.path(),
            account: place.account.map(str::to_owned),
            is_read_only: place.is_read_only,
            headers: parts.headers.clone(),
            is_counted: Arc::clone(&is_counted),
            _permits: permits,
        });
        // What a call reads has memory of its own until its result is made.
        let mut memory = state.responses.acquire(if matches!(kind, Kind::Other) { TOOLS_MEMORY } else { 0 }).await?;
        let response = mcp.respond(request).await;
        if !is_counted.load(Ordering::Relaxed) {
            self.count_message(&client, access).await?;
        }
        let window = request_context::limit_key(state, None, &client);
        access.status = Some(state.limits.status(window, self.env().now()));
        state.responses.grow(&mut memory, ResponseMemory::records_of(response.body().len() as u64)).await?;
        Ok(Outcome::Page(response.map(|body| memory.hold(body, parts.extensions.get()).into())))
    }

    /// Returns who sends a message. A message without a valid key counts against its address.
    async fn sender(
        &self,
        place: &ToolsPath<'_>,
        parts: &Parts,
        peer: IpAddr,
        access: &mut AccessRecord,
    ) -> Result<Principal, Problem> {
        let state = &self.state;
        let found = async {
            let credentials = match place.account {
                Some(account) => {
                    let account: TenantId = account.parse().map_err(|issue: Issue| issue.on("account_id"))?;
                    request_context::credentials_of_platform(&parts.headers, Some(account))?
                }
                None => request_context::credentials_of_account(&parts.headers, place.version, state.has_apps())?,
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
