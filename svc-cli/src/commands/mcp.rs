//! `svc mcp`: the tools of a server for assistants, on stdin and stdout.
//!
//! Each line is a message, which goes to the server in a request of its own. So the tools, their checks and their limits are
//! those of the server, and nothing of them is here.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use svc_client::{Error, Mcp as Tools};
use svc_core::accounts::platform_keys::PLATFORM_KEY_PREFIX;
use svc_core::env::Env;
use svc_core::values::{Secret, TenantId};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::task::JoinSet;

use super::lookup;
use crate::backend::{Backend, Server};
use crate::cli::Mcp;
use crate::exit::{Exit, Failure};
use crate::ids::IdArg;
use crate::output::{Outcome, warning};
use crate::service::Service;

/// The most messages that wait for their answers at a time.
const MAX_WAITING: usize = 16;

/// The variables of the public API, which `svc-server --demo` and `svc init` print.
const URL: &str = "SVC_URL";
const KEY: &str = "SVC_KEY";

pub(super) async fn run(
    backend: Result<Backend, Failure>,
    options: Mcp,
    ca_file: Option<&Path>,
) -> Result<Outcome, Failure> {
    let server = server(backend)?;
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

/// Returns the server that the options name, or else the one of the variables of the public API.
fn server(backend: Result<Backend, Failure>) -> Result<Server, Failure> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    match (backend, variable(URL), variable(KEY)) {
        (Ok(Backend::Server(server)), ..) => Ok(server),
        (Ok(Backend::Database(_)), Some(url), Some(key)) => Ok(Server { url, key: Secret::new(key.trim()) }),
        (Ok(Backend::Database(_)), ..) => {
            let reason = format!(
                "The tools are those of a server. Set {URL} to its URL and {KEY} to an API key, or give the profile of a server \
                 with --profile."
            );
            Err(Failure::new(Exit::Usage, reason))
        }
        (Err(failure), ..) => Err(failure),
    }
}

/// Sends each line to the server, and prints each answer as a line. Answers come in the order in which they arrive.
async fn pass_on(tools: Arc<Tools>) -> io::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut waiting = JoinSet::new();
    loop {
        tokio::select! {
            Some(answer) = waiting.join_next() => print(answer.ok().flatten())?,
            line = lines.next_line(), if waiting.len() < MAX_WAITING => {
                let Some(line) = line? else { break };
                if !line.trim().is_empty() {
                    let tools = Arc::clone(&tools);
                    waiting.spawn(async move { answer(&tools, line).await });
                }
            }
        }
    }
    while let Some(answer) = waiting.join_next().await {
        print(answer.ok().flatten())?;
    }
    Ok(())
}

fn print(answer: Option<Vec<u8>>) -> io::Result<()> {
    let Some(mut answer) = answer else { return Ok(()) };
    answer.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&answer).and_then(|()| out.flush())
}

/// Returns the answer to a message. A failure is an answer as well, unless the message wants none.
async fn answer(tools: &Tools, line: String) -> Option<Vec<u8>> {
    let message: Value = match serde_json::from_str(&line) {
        Ok(message) => message,
        Err(error) => return Some(failure(&Value::Null, -32700, &format!("The line is no JSON: {error}."))),
    };
    let error = match tools.send(line.into_bytes()).await {
        Ok(answer) => return answer.map(|answer| answer.trim_ascii().to_vec()),
        Err(error) => explained(&error),
    };
    match message.get("id") {
        Some(id) => Some(failure(id, -32603, &error)),
        None => {
            warning(&error);
            None
        }
    }
}

fn explained(error: &Error) -> String {
    match error.code() {
        Some("route_not_found") => {
            "The server has no tools for assistants. Whoever runs it can start it with `svc-server --mcp on`."
                .to_owned()
        }
        _ => format!("{error}."),
    }
}

fn failure(id: &Value, code: i32, message: &str) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string().into_bytes()
}
