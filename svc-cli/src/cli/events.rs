//! Events on their way: `svc delivery`, `svc event` and `svc listen`.

use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};
use hyper::{StatusCode, Uri};
use svc_core::values::EventKind;
use svc_core::values::{Secret, TenantId, parse_uuid};
use svc_core::webhooks::deliveries::DeliveryStatus;
use uuid::Uuid;

use crate::values::{self, Since};

/// `svc delivery …`
#[derive(Clone, Debug, Subcommand)]
pub enum DeliveryCommand {
    /// List the deliveries of a tenant, newest first.
    #[command(after_help = "Examples:\n  svc delivery list --tenant 0195a3c8-0000-7000-8000-000000000001\n  \
                      svc delivery list --tenant 0195a3c8-0000-7000-8000-000000000001 \\\n    \
                      --status failed --event invoice.paid --since 7d")]
    List {
        /// Id of the tenant.
        #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
        tenant: TenantId,
        /// Only those to the webhook with this id.
        #[arg(long, value_parser = parse_uuid, value_name = "ID")]
        subscription: Option<Uuid>,
        /// Only those in this state.
        #[arg(long, value_parser = values::delivery_states())]
        status: Option<DeliveryStatus>,
        /// Only those of events of this kind.
        #[arg(long, value_parser = values::event_kinds(), value_name = "KIND")]
        event: Option<EventKind>,
        /// Only those of events since then: a time such as 2026-03-14T15:09:26Z, or back from now such as 2h or 7d.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
        since: Option<Since>,
        /// At most so many.
        #[arg(long, value_parser = value_parser!(u32).range(1..), default_value = "50", value_name = "N")]
        limit: u32,
        /// Print a line whenever one comes or gets on, from now or --since on, until Ctrl-C; with --json a document a
        /// line.
        #[arg(long, short, conflicts_with = "limit")]
        follow: bool,
    },
    /// Show a delivery, the log of its attempts and its body.
    ///
    /// The body is that of its last attempt: each attempt says in `delivered_at` when it was made, and is signed
    /// afresh.
    #[command(after_help = "Example:\n  svc delivery show 0195a3c8-0000-7000-8000-000000000006")]
    Show {
        /// Id of the delivery, which each attempt carries as X-SVC-Delivery.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
    /// Send a delivery again, or many of one webhook.
    ///
    /// The ids stay and attempts go on counting, but retries start anew. The server makes the attempts, at once
    /// if it is running. Whatever came of a delivery, it can be sent again, as long as its webhook is enabled and
    /// no attempt is being made. With --subscription the server works through all that is asked for, at the pace
    /// of the endpoint, also across a restart.
    #[command(after_help = "Examples:\n  svc delivery replay 0195a3c8-0000-7000-8000-000000000006\n  \
                      svc delivery replay --subscription 0195a3c8-0000-7000-8000-000000000005 --since 2d\n  \
                      svc delivery replay --subscription 0195a3c8-0000-7000-8000-000000000005 \\\n    \
                      --since 2026-03-01T00:00:00Z --until 2026-03-02T00:00:00Z --status failed,held --missed --wait")]
    Replay {
        /// Id of one delivery.
        #[arg(value_parser = parse_uuid, required_unless_present = "subscription", conflicts_with = "subscription")]
        id: Option<Uuid>,
        /// Instead: all of this webhook.
        #[arg(long, value_parser = parse_uuid, value_name = "ID", requires = "since")]
        subscription: Option<Uuid>,
        /// Those of events since then: a time such as 2026-03-14T15:09:26Z, or back from now such as 2h or 7d.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME", requires = "subscription")]
        since: Option<Since>,
        /// Those of events before then; now when left out.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME", requires = "subscription")]
        until: Option<Since>,
        /// Those in these states; failed and held when left out.
        #[arg(long, value_parser = values::delivery_states(), value_delimiter = ',', value_name = "STATE", requires = "subscription")]
        status: Vec<DeliveryStatus>,
        /// Also events that matched while the webhook was disabled or did not exist yet.
        #[arg(long, requires = "subscription")]
        missed: bool,
        /// Wait until the server has worked through them: then all are on their way, at the pace of the endpoint.
        /// Ctrl-C ends the waiting, not the replay.
        #[arg(long, requires = "subscription")]
        wait: bool,
    },
    /// List the replays of many deliveries that were asked for, newest first, and how far each has come.
    ///
    /// One that is finished below 100 % was broken off, since its webhook was disabled or paused meanwhile, or a
    /// delivery cannot be read; what it had not come to stays as it is.
    #[command(after_help = "Example:\n  svc delivery replays --tenant 0195a3c8-0000-7000-8000-000000000001")]
    Replays {
        /// Id of the tenant.
        #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
        tenant: TenantId,
        /// At most so many.
        #[arg(long, value_parser = value_parser!(u32).range(1..), default_value = "50", value_name = "N")]
        limit: u32,
    },
}

/// `svc event …`
#[derive(Clone, Debug, Subcommand)]
pub enum EventCommand {
    /// Emit an event of a stay or a cohort.
    ///
    /// It goes out to the tenant's webhooks that want its kind. Events of all other kinds are fired by the
    /// operations that they tell of.
    #[command(after_help = "Examples:\n  svc event emit --tenant 0195a3c8-0000-7000-8000-000000000001 \\\n    \
                      --kind stay.created --data stay.json\n  \
                      echo '{\"id\": \"stay-1\"}' | svc event emit \\\n    \
                      --tenant 0195a3c8-0000-7000-8000-000000000001 --kind stay.checked_in --data -")]
    Emit {
        /// Id of the tenant.
        #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
        tenant: TenantId,
        /// What happened.
        #[arg(long, value_parser = values::KindToEmit)]
        kind: EventKind,
        /// File with the record it happened to, or - for stdin: a JSON object with an `id`, of at most 1 MiB.
        #[arg(long, value_name = "FILE|-")]
        data: PathBuf,
    },
}

/// `svc listen`
#[derive(Args, Clone, Debug)]
pub struct Listen {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 9000)]
    pub port: u16,
    /// The webhook's whole secret, whsec_ included; twice while it is rotated.
    #[arg(
        long = "secret",
        env = "SVC_WEBHOOK_SECRET",
        hide_env_values = true,
        required = true,
        value_parser = values::secret,
        value_name = "whsec_…"
    )]
    pub secrets: Vec<Secret>,
    /// Answer everything with this status, from 300 to 599.
    #[arg(long, value_parser = values::failing_status, conflicts_with = "forward_to", value_name = "STATUS")]
    pub fail: Option<StatusCode>,
    /// Pass every POST on to this http URL, whether it verifies or not, and answer as it does.
    #[arg(long, value_parser = values::http_url, value_name = "URL")]
    pub forward_to: Option<Uri>,
    /// Print one JSON object per line; --json does the same.
    #[arg(long)]
    pub print_json: bool,
}
