//! `svc request`.

use std::collections::HashSet;
use std::time::Duration;

use clap::{Args, Subcommand, value_parser};
use svc_core::pages::Since;
use svc_core::platform::operations::{LIST_KEYS, LIST_REQUESTS};
use svc_core::platform::{ApiKey, ApiRequest, RequestListFilter, StatusFilter};
use svc_core::values::{TenantId, Text};

use super::follow::follow;
use super::lookup;
use crate::exit::Failure;
use crate::ids::{IdArg, InAccount};
use crate::output::{Outcome, Table, or_dash, plain_json, plain_line, verdict};
use crate::service::{Service, cut};
use crate::session::Session;
use crate::times::{self, precise};
use crate::values::{self, TimeArg};

/// Inspect the requests that programs make with API keys.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc request list --follow")]
pub(crate) enum RequestCommand {
    /// List the requests with API keys of an account, newest first, or follow them.
    ///
    /// The log has the newest 1,000 requests of the last 24 hours, without their bodies. A request appears in it a few seconds
    /// after its response.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  svc request list --status 4xx --since 1h\n  svc request list --follow\n  \
                      svc request list --follow --json --method POST --path /contacts"
    )]
    List(ListRequests),
}

/// `svc request list`
#[derive(Args, Clone, Debug)]
pub(crate) struct ListRequests {
    #[command(flatten)]
    account: InAccount,
    /// List only requests whose response has this status, such as 404, or one of a class, such as 4xx.
    #[arg(long, value_name = "STATUS")]
    status: Option<StatusFilter>,
    /// List only requests with this method, such as POST.
    #[arg(long, value_parser = Text::<20>::parse, value_name = "METHOD")]
    method: Option<Text<20>>,
    /// List only requests whose path contains this text.
    #[arg(long, value_parser = Text::<500>::parse, value_name = "TEXT")]
    path: Option<Text<500>>,
    /// List only requests with this API key.
    #[arg(long, value_name = "ID")]
    key: Option<IdArg>,
    /// List only requests since this time, such as '2026-03-14 15:09' in the account's time zone, or this long ago, such as
    /// 2h. A date is its start.
    #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
    since: Option<TimeArg>,
    /// Maximum number of requests to list.
    #[arg(long, value_parser = value_parser!(u32).range(1..), default_value = "50", value_name = "N")]
    limit: u32,
    /// Print a line for each request, until Ctrl-C.
    ///
    /// Starts now, or at --since. With --json, each line is a JSON document.
    #[arg(long, short, conflicts_with = "limit")]
    follow: bool,
}

/// The number of requests that are followed, which is that of the log.
const MAX_FOLLOWED: u32 = 1_000;
/// How long after its start a request may appear in the log.
const DELAY: Duration = Duration::from_secs(120);

pub(crate) async fn run(session: &Session, command: RequestCommand) -> Result<Outcome, Failure> {
    let RequestCommand::List(options) = command;
    let ListRequests { account, status, method, path, key, since, limit, follow } = options;
    if follow {
        session.refuse_csv("--follow; use --output json, or omit it")?;
    }
    let service = &session.service().await?;
    let account = lookup::account_with::<ApiKey>(service, &account, key.as_ref()).await?.id;
    let key_id = lookup::optional_id::<ApiKey>(service, account, key).await?;
    let since = times::since(since.as_ref())?;
    let filter = RequestListFilter { since, method, path, status, key_id };
    if follow {
        let since = since.or(Some(Since(service.now())));
        return follow_requests(service, account, RequestListFilter { since, ..filter }, session.is_json()).await;
    }
    // One request more than the limit tells whether there are more.
    let (mut requests, _) = service.newest(&LIST_REQUESTS, account, &filter, limit.saturating_add(1)).await?;
    let more = cut(&mut requests, limit);
    let names = if session.is_for_people() { key_names(service, account).await } else { Vec::new() };
    let heading = ["STARTED", "STATUS", "METHOD", "PATH", "KEY", "DURATION", "ERROR"];
    let table = Table::new(heading, &requests, |request| {
        [
            precise(request.started_at),
            verdict(request.status < 400, &request.status.to_string()),
            request.method.clone(),
            target(request),
            key_name(&names, request),
            duration(request),
            or_dash(request.code.as_ref()),
        ]
    });
    let note = more.then(|| "There are more requests; raise --limit to see them.".to_owned());
    Ok(Outcome::list(&requests, &table, "No requests match.")?.with_note(note))
}

/// Prints a line for each request, until Ctrl-C.
async fn follow_requests(
    service: &Service,
    account: TenantId,
    mut filter: RequestListFilter,
    is_json: bool,
) -> Result<Outcome, Failure> {
    let (mut seen, mut names) = (HashSet::new(), key_names(service, account).await);
    let poll = async || {
        let (mut listed, _) = service.newest(&LIST_REQUESTS, account, &filter, MAX_FOLLOWED).await?;
        listed.reverse();
        let new: Vec<&ApiRequest> = listed.iter().filter(|request| !seen.contains(&request.id)).collect();
        if new.iter().any(|request| !names.iter().any(|key| key.id == request.key_id)) {
            names = key_names(service, account).await;
        }
        let text = |request: &ApiRequest| if is_json { json(request) } else { line(request, &names) };
        let lines = new.into_iter().map(text).collect();
        // What is older than the delay has been listed.
        if let Some(last) = listed.last() {
            let listed_since = last.started_at.minus(DELAY);
            filter.since = filter.since.map(|since| Since(since.0.max(listed_since)));
        }
        seen = listed.iter().map(|request| request.id).collect();
        Ok(lines)
    };
    follow(service, poll).await
}

/// Returns the keys of an account, or none if they cannot be read: a platform key may be allowed to read the log alone.
async fn key_names(service: &Service, account: TenantId) -> Vec<ApiKey> {
    service.call(&LIST_KEYS, account, ()).await.map_or_else(|_| Vec::new(), |keys| keys.data)
}

/// Returns what the key of a request is called.
fn key_name(keys: &[ApiKey], request: &ApiRequest) -> String {
    match keys.iter().find(|key| key.id == request.key_id) {
        Some(key) => key.name.clone().unwrap_or_else(|| key.prefix.clone()),
        None => request.key_id.to_string(),
    }
}

/// Returns the path of a request with its query.
fn target(request: &ApiRequest) -> String {
    match &request.query {
        Some(query) => format!("{}?{query}", request.path),
        None => request.path.clone(),
    }
}

/// Formats the duration of a request in milliseconds, with a tenth below 100 ms.
fn duration(request: &ApiRequest) -> String {
    match request.duration_us {
        micros @ ..100_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        micros => format!("{} ms", micros / 1_000),
    }
}

/// Formats a request as one line of JSON.
fn json(request: &ApiRequest) -> String {
    serde_json::to_string(request).map_or_else(|error| error.to_string(), plain_json)
}

/// Formats a request as one line for people.
fn line(request: &ApiRequest, keys: &[ApiKey]) -> String {
    let fields = request.failing_fields.as_ref().map(|fields| format!(" ({fields})")).unwrap_or_default();
    let code = request.code.as_ref().map(|code| format!("  {code}{fields}")).unwrap_or_default();
    plain_line(&format!(
        "{}  {}  {:<6}  {}  {}  {}{code}",
        precise(request.started_at),
        request.status,
        request.method,
        target(request),
        key_name(keys, request),
        duration(request),
    ))
}
