//! `svc request`, `svc api` and `svc open`.

use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};
use hyper::Method;
use svc_core::platform::StatusFilter;
use svc_core::values::Text;

use super::InAccount;
use crate::ids::IdArg;
use crate::values::{self, TimeArg};

/// `svc request …`
#[derive(Clone, Debug, Subcommand)]
pub enum RequestCommand {
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
pub struct ListRequests {
    /// The account.
    #[command(flatten)]
    pub account: InAccount,
    /// List only requests whose response has this status, such as 404, or one of a class, such as 4xx.
    #[arg(long, value_name = "STATUS")]
    pub status: Option<StatusFilter>,
    /// List only requests with this method, such as POST.
    #[arg(long, value_parser = Text::<20>::parse, value_name = "METHOD")]
    pub method: Option<Text<20>>,
    /// List only requests whose path contains this text.
    #[arg(long, value_parser = Text::<500>::parse, value_name = "TEXT")]
    pub path: Option<Text<500>>,
    /// List only requests with this API key.
    #[arg(long, value_name = "ID")]
    pub key: Option<IdArg>,
    /// List only requests since this time, such as 2026-03-14T15:09:26Z, or this long ago, such as 2h. A date, such as
    /// 2026-03-14, is its start in the account's time zone.
    #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
    pub since: Option<TimeArg>,
    /// Maximum number of requests to list.
    #[arg(long, value_parser = value_parser!(u32).range(1..), default_value = "50", value_name = "N")]
    pub limit: u32,
    /// Print a line for each request, until Ctrl-C.
    ///
    /// Starts now, or at --since. With --json, each line is a JSON document.
    #[arg(long, short, conflicts_with = "limit")]
    pub follow: bool,
}

/// `svc api`
#[derive(Args, Clone, Debug)]
pub struct Api {
    /// Method of the request: GET, POST, PATCH or DELETE.
    #[arg(value_parser = values::method, value_name = "METHOD")]
    pub method: Method,
    /// Path below /platform/v1, with its query. One that does not begin with /accounts is a path of the account.
    #[arg(value_parser = values::api_path, value_name = "PATH")]
    pub path: String,
    /// File with the body, or - for stdin: JSON of at most 1 MiB.
    #[arg(long, short, value_name = "FILE|-")]
    pub data: Option<PathBuf>,
    /// Print the status and the headers of the response before its body.
    #[arg(long, short)]
    pub include: bool,
    /// The account.
    #[command(flatten)]
    pub account: InAccount,
}

/// `svc mcp`
#[derive(Args, Clone, Debug)]
pub struct Mcp {
    /// Offer only tools that change nothing.
    #[arg(long)]
    pub read_only: bool,
    /// The account, with a platform key.
    #[command(flatten)]
    pub account: InAccount,
}

/// `svc open`
#[derive(Args, Clone, Debug)]
pub struct Open {
    /// Id of a record, webhook, event or delivery, or a part of it. The default is the overview of the account.
    pub id: Option<IdArg>,
    /// Open the page in the browser, which is $BROWSER or the one of the desktop.
    #[arg(long)]
    pub browser: bool,
    /// URL at which the browser reaches the server.
    #[arg(long, env = "SVC_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    pub url: String,
    /// The account that owns what has the id.
    #[command(flatten)]
    pub account: InAccount,
}
