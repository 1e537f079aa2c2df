//! `svc mcp`: the tools of a server for assistants, on stdin and stdout.
//!
//! Each line is a message, which goes to the server in a request of its own. So the tools, their checks and their limits are
//! those of the server, and nothing of them is here.

use std::io::{self, Write as _};
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use svc_client::{Error, Mcp as Tools};
use svc_core::accounts::platform_keys::PLATFORM_KEY_PREFIX;
use svc_core::env::Env;
use svc_core::values::{Secret, TenantId};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::task::JoinSet;

use super::lookup;
use crate::backend::{Backend, BackendArgs};
use crate::exit::{Exit, Failure};
use crate::ids::{IdArg, InAccount};
use crate::output::{Outcome, warning};
use crate::server::Server;
use crate::service::Service;
use crate::session::Session;

/// Serve the tools of a server to an assistant on this machine, on stdin and stdout (Model Context Protocol).
///
/// The server needs `svc-server --mcp on`. The tools work on the account of the API key in SVC_KEY, at the server of SVC_URL,
/// or on that of the profile. With a platform key, they work on --account.
///
/// An assistant starts the command itself: name it in the settings of the program. Give it a key with the scope `read`, or
/// --read-only, unless it is to change records.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc mcp --profile ironbark\n  \
                  SVC_URL=https://api.example.com SVC_KEY=svc_live_… svc mcp --read-only")]
pub(crate) struct Mcp {
    /// Offer only tools that change nothing.
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    account: InAccount,
}

/// The most messages that wait for their answers at a time.
const MAX_WAITING: usize = 16;

/// The variables of the public API, which `svc-server --demo` and `svc init` print.
const URL: &str = "SVC_URL";
const KEY: &str = "SVC_KEY";

pub(crate) async fn run(session: &Session, options: Mcp) -> Result<Outcome, Failure> {
    session.refuse_csv("`svc mcp`, which prints messages; omit it")?;
    let (server, ca_file) = (server(&session.backend)?, session.backend.ca_file.as_deref());
    let tools = if server.key.reveal().starts_with(PLATFORM_KEY_PREFIX) {
        let platform = server.client(ca_file)?;
        let service = Service::of_server(platform.clone(), Env::system());
        // Only a lookup needs a key that may read accounts.
        let account = match options.account.account {
            Some(IdArg::Whole(id)) => TenantId(id),
            _ => lookup::account(&service, &options.account).await?.id,
        };
        platform.mcp(account, options.read_only)
    } else {
        server.account_client(ca_file)?.mcp(options.read_only)
    };
    pass_on(Arc::new(tools))
        .await
        .map_err(|error| Failure::new(Exit::Failed, format!("stdin or stdout failed: {error}.")))?;
    Ok(Outcome::nothing())
}

/// Returns the server that the options name: those on the command line, or else the variables of the public API, or else those
/// of a server or a profile.
fn server(options: &BackendArgs) -> Result<Server, Failure> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    if let (false, Some(url), Some(key)) = (options.is_on_command_line(), variable(URL), variable(KEY)) {
        return Ok(Server { url, key: Secret::new(key.trim()) });
    }
    match options.backend(true)? {
        Backend::Server(server) => Ok(server),
        Backend::Database(_) => {
            let reason = format!(
                "The tools are those of a server. Set {URL} to its URL and {KEY} to an API key, or give the profile of a server \
                 with --profile."
            );
            Err(Failure::new(Exit::Usage, reason))
        }
    }
}

/// Sends each line to the server, and prints each response as a line. Responses come in the order in which they arrive.
async fn pass_on(tools: Arc<Tools>) -> io::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut waiting = JoinSet::new();
    loop {
        tokio::select! {
            Some(response) = waiting.join_next() => print(response.ok().flatten())?,
            line = lines.next_line(), if waiting.len() < MAX_WAITING => {
                let Some(line) = line? else { break };
                if !line.trim().is_empty() {
                    let tools = Arc::clone(&tools);
                    waiting.spawn(async move { respond(&tools, line).await });
                }
            }
        }
    }
    while let Some(response) = waiting.join_next().await {
        print(response.ok().flatten())?;
    }
    Ok(())
}

fn print(response: Option<Value>) -> io::Result<()> {
    let Some(response) = response else { return Ok(()) };
    let mut out = io::stdout().lock();
    writeln!(out, "{response}").and_then(|()| out.flush())
}

/// Returns the response to a message. A failure is a response as well, unless the message wants none.
async fn respond(tools: &Tools, line: String) -> Option<Value> {
    let message: Value = match serde_json::from_str(&line) {
        Ok(message) => message,
        Err(error) => return Some(failure(Value::Null, -32700, &format!("The line is no JSON: {error}."))),
    };
    let error = match tools.send(line.into_bytes()).await.map(|body| body.map(|body| serde_json::from_slice(&body))) {
        Ok(None) => return None,
        // A message that was refused before it was read gets a response that does not know its id.
        Ok(Some(Ok::<Value, _>(response))) if response.get("id").is_some_and(Value::is_null) => {
            return Some(to_each_request(&message, &response).unwrap_or(response));
        }
        Ok(Some(Ok(response))) => return Some(response),
        Ok(Some(Err(error))) => format!("The server responded with something else than a message: {error}."),
        Err(error) => explained(&error),
    };
    let response = to_each_request(&message, &failure(Value::Null, -32603, &error));
    if response.is_none() {
        warning(&error);
    }
    response
}

/// Returns a response with the id of a request, or with those of all requests of a batch, so that none stays open; `None` if
/// nothing of the message wants a response.
fn to_each_request(message: &Value, response: &Value) -> Option<Value> {
    let to = |request: &Value| {
        let mut response = response.clone();
        response["id"] = request.get("id")?.clone();
        Some(response)
    };
    match message {
        Value::Array(batch) => {
            let responses: Vec<Value> = batch.iter().filter_map(to).collect();
            if responses.is_empty() { None } else { Some(responses.into()) }
        }
        request => to(request),
    }
}

fn explained(error: &Error) -> String {
    match error.code() {
        Some("route_not_found") => {
            "The server has no tools for assistants. The operator can start it with `svc-server --mcp on`.".to_owned()
        }
        _ => format!("{error}."),
    }
}

fn failure(id: Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
