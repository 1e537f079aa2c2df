//! Bulk replays: creating a replay of many deliveries, waiting for it, and listing the progress of replays.

use std::time::Duration;

use serde_json::Value;
use svc_core::pages::{Limit, MAX_LIMIT};
use svc_core::platform::{NewestParams, Replay, ReplayCreate, operations};
use svc_core::values::{TenantId, grouped};
use tokio::time::sleep;

use crate::exit::{Exit, Failure};
use crate::output::{Outcome, Table, progress_bar};
use crate::record::json_without;
use crate::service::{CallResult, Service, cut};
use crate::times::{full, full_or_dash, moment};

/// The interval at which the progress of a replay is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The interval of a server elsewhere, which has rate limits.
const POLL_INTERVAL_OF_SERVER: Duration = Duration::from_secs(2);
/// The number that stands for this many or more.
const MAX_TOTAL: u32 = 10_000;

/// Formats a replay as JSON. `percent` is last.
fn view(replay: &Replay) -> Value {
    let mut json = json_without(replay, &["percent", "broken_off"]);
    json["percent"] = replay.percent.into();
    json
}

/// Formats the progress of a replay, such as `1,234 of 5,678 (21%)`.
fn progress(replay: &Replay) -> String {
    let Replay { total, done, percent, .. } = *replay;
    let total = match total {
        0 => return format!("{percent}%"),
        MAX_TOTAL.. => format!("{}+", grouped(MAX_TOTAL.into())),
        // More can fail after the replay was requested.
        total => grouped(total.max(done).into()),
    };
    format!("{} of {total} ({percent}%)", grouped(done.into()))
}

/// Creates a replay and, if `wait` is set, waits until it is finished.
pub(super) async fn replay(
    service: &Service,
    account: TenantId,
    input: ReplayCreate,
    wait: bool,
) -> Result<Outcome, Failure> {
    let id = input.subscription_id;
    let replay = service.call(&operations::CREATE_REPLAY, account, input).await?;
    if !wait {
        let text = format!(
            "The server replays the deliveries of webhook {id} for events between {} and {}. \
             Run `svc delivery replays --account {}` to see the progress: {}.",
            moment(replay.since),
            moment(replay.until),
            replay.tenant_id,
            progress(&replay)
        );
        return Outcome::new(&view(&replay), text);
    }
    let replay = wait_until_finished(service, replay).await?;
    let deliveries = match replay.replayed {
        1 => "1 delivery".to_owned(),
        many => format!("{many} deliveries"),
    };
    let text = format!(
        "Replayed {deliveries} of webhook {id} for events between {} and {}.",
        moment(replay.since),
        moment(replay.until)
    );
    let failure = replay.broken_off.then(|| {
        let reason = format!(
            "The replay stopped early: the webhook was disabled or paused meanwhile, or a delivery cannot be read. \
             Deliveries of events from {} on are unchanged.",
            moment(replay.position)
        );
        Failure::new(Exit::Failed, reason)
    });
    Ok(Outcome::new(&view(&replay), text)?.with_failure(failure))
}

/// Polls the replay until it is finished. Shows a progress bar if stderr is a terminal.
async fn wait_until_finished(service: &Service, mut replay: Replay) -> CallResult<Replay> {
    let bar = progress_bar(Some(100), "{bar:40} {msg}");
    let target = (replay.tenant_id, replay.id);
    let interval = if service.is_server() { POLL_INTERVAL_OF_SERVER } else { POLL_INTERVAL };
    while replay.finished_at.is_none() {
        bar.set_position(replay.percent.into());
        bar.set_message(match replay.replayed {
            0 if replay.position == replay.since => format!("{}, waiting for a server", progress(&replay)),
            _ => format!("{}, events before {} processed", progress(&replay), moment(replay.position)),
        });
        sleep(interval).await;
        replay = service.call(&operations::GET_REPLAY, target, ()).await?;
    }
    bar.finish_and_clear();
    Ok(replay)
}

/// Lists the replays of an account, newest first.
pub(super) async fn list(service: &Service, account: TenantId, limit: u32) -> Result<Outcome, Failure> {
    // One replay more than the limit tells whether there are more. The service lists the newest 200.
    let newest = NewestParams { limit: Limit::new(limit.saturating_add(1).min(MAX_LIMIT)) };
    let mut replays = service.call(&operations::LIST_REPLAYS, account, newest).await?.data;
    let more = cut(&mut replays, limit);

    let heading = ["ID", "PROGRESS", "REPLAYED", "CREATED", "FINISHED", "WEBHOOK", "SINCE", "UNTIL"];
    let table = Table::new(heading, &replays, |replay| {
        [
            replay.id.to_string(),
            progress(replay),
            replay.replayed.to_string(),
            full(replay.created_at),
            full_or_dash(replay.finished_at),
            replay.subscription_id.to_string(),
            full(replay.since),
            full(replay.until),
        ]
    });
    let note = more.then(|| "There are more replays; raise --limit to see them.".to_owned());
    Ok(Outcome::list(&replays.iter().map(view).collect::<Vec<Value>>(), &table, "The account has no bulk replays.")?
        .with_note(note))
}
