//! Bulk replays: creating a replay of many deliveries, waiting for it, and listing the progress of replays.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use svc_core::accounts::tenants;
use svc_core::error::{Error, StoreError};
use svc_core::store::Store;
use svc_core::values::TenantId;
use svc_core::webhooks::replays::{self, Replay, ReplayCreate};
use tokio::time::sleep;

use crate::commands::{tenant, webhook};
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::output::{Outcome, Table};
use crate::times::{full, full_or_dash, moment};

/// The interval at which the progress of a replay is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A replay in JSON output.
#[derive(Serialize)]
struct View<'a> {
    #[serde(flatten)]
    replay: &'a Replay,
    percent: u8,
}

impl<'a> View<'a> {
    fn of(replay: &'a Replay) -> Self {
        Self { replay, percent: replay.percent() }
    }
}

/// Creates a replay and, if `wait` is set, waits until it is finished.
pub(super) async fn replay(
    store: &dyn Store,
    tenant: TenantId,
    input: ReplayCreate,
    wait: bool,
) -> Result<Outcome, Failure> {
    let id = input.subscription;
    let replay = create(store, tenant, input).await.or_not_found("webhook", id, webhook::HINT)?;
    if !wait {
        let text = format!(
            "The server replays the deliveries of webhook {id} for events between {} and {}. \
             Run `svc delivery replays --tenant {}` to see the progress: {}.",
            moment(replay.since),
            moment(replay.until),
            replay.tenant_id,
            replay.progress()
        );
        return Outcome::new(&View::of(&replay), text);
    }
    let replay = wait_until_finished(store, replay).await?;
    let deliveries = match replay.replayed {
        1 => "1 delivery".to_owned(),
        many => format!("{many} deliveries"),
    };
    let text = format!(
        "Replayed {deliveries} of webhook {id} for events between {} and {}.",
        moment(replay.since),
        moment(replay.until)
    );
    let failure = replay.broken_off().then(|| {
        let reason = format!(
            "The replay stopped early: the webhook was disabled or paused meanwhile, or a delivery cannot be read. \
             Deliveries of events from {} on are unchanged.",
            moment(replay.position)
        );
        Failure::new(Exit::Failed, reason)
    });
    Ok(Outcome::new(&View::of(&replay), text)?.with_failure(failure))
}

async fn create(store: &dyn Store, tenant: TenantId, input: ReplayCreate) -> Result<Replay, Error> {
    store.write("delivery.replay", move |tx| Box::pin(replays::create(tx, tenant, input.clone()))).await
}

/// Polls the replay until it is finished. Shows a progress bar if stderr is a terminal.
async fn wait_until_finished(store: &dyn Store, mut replay: Replay) -> Result<Replay, Error> {
    let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {msg}") {
        bar.set_style(style);
    }
    let (tenant, id) = (replay.tenant_id, replay.id);
    while replay.finished_at.is_none() {
        bar.set_position(replay.percent().into());
        bar.set_message(match replay.replayed {
            0 if replay.position == replay.since => format!("{}, waiting for a server", replay.progress()),
            _ => format!("{}, events before {} processed", replay.progress(), moment(replay.position)),
        });
        sleep(POLL_INTERVAL).await;
        let poll =
            store.read("delivery.replay.poll", move |tx| Box::pin(async move { Ok(tx.replay(tenant, id).await?) }));
        replay = poll.await?.ok_or_else(|| StoreError::Internal(format!("replay {id} no longer exists")))?;
    }
    bar.finish_and_clear();
    Ok(replay)
}

/// Lists the replays of a tenant, newest first.
pub(super) async fn list(store: &dyn Store, tenant: TenantId, limit: u32) -> Result<Outcome, Failure> {
    let listed = store.read("delivery.replays", move |tx| {
        Box::pin(async move {
            tenants::get(tx, tenant).await?;
            // One replay more than the limit tells whether there are more.
            Ok(tx.replays(tenant, limit.saturating_add(1)).await?)
        })
    });
    let mut replays: Vec<Replay> = listed.await.or_not_found("tenant", tenant, tenant::HINT)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = replays.len() > limit;
    replays.truncate(limit);

    let heading = ["ID", "PROGRESS", "REPLAYED", "CREATED", "FINISHED", "WEBHOOK", "SINCE", "UNTIL"];
    let table = Table::new(heading, &replays, |replay| {
        [
            replay.id.to_string(),
            replay.progress(),
            replay.replayed.to_string(),
            full(replay.created_at),
            full_or_dash(replay.finished_at),
            replay.subscription_id.to_string(),
            full(replay.since),
            full(replay.until),
        ]
    });
    let views: Vec<View<'_>> = replays.iter().map(View::of).collect();
    let note = more.then(|| "There are more replays; raise --limit to see them.".to_owned());
    Ok(Outcome::list(&views, &table, "The tenant has no bulk replays.")?.with_note(note))
}
