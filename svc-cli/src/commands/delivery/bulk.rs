//! Replays of many deliveries: asking for one, waiting for it, and listing how far they have come.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use svc_core::accounts::tenants;
use svc_core::error::{Error, StoreError};
use svc_core::store::Store;
use svc_core::values::TenantId;
use svc_core::webhooks::replays::{self, Replay, ReplayCreate};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use tokio::time::sleep;

use crate::commands::{lookup, tenant, webhook};
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::output::{Outcome, Table};
use crate::times::{moment, moment_or_dash};

/// Between two looks at a replay: the server writes down how far it has come, and tells nobody.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A replay as programs see it.
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

/// Asks for a replay and, if wanted, waits for its end.
pub(super) async fn replay(store: &dyn Store, input: ReplayCreate, wait: bool) -> Result<Outcome, Failure> {
    let id = input.subscription;
    let replay = create(store, input).await.or_not_found("webhook", id, webhook::HINT)?;
    if !wait {
        let text = format!(
            "The server sends the deliveries of webhook {id} again whose events lie between {} and {}; \
             `svc delivery replays --tenant {}` tells how far it has come.",
            moment(replay.since),
            moment(replay.until),
            replay.tenant_id
        );
        return Outcome::new(&View::of(&replay), text);
    }
    let done = finished(store, replay).await?;
    let deliveries = match done.replayed {
        1 => "1 delivery".to_owned(),
        many => format!("{many} deliveries"),
    };
    let text = format!(
        "Webhook {id} gets {deliveries} again, of events between {} and {}.",
        moment(done.since),
        moment(done.until)
    );
    let broken_off = done.broken_off().then(|| {
        let reason = format!(
            "The webhook was disabled or paused meanwhile, or a delivery cannot be read; those of events at or after {} \
             stay as they are.",
            moment(done.position)
        );
        Failure::new(Exit::Failed, reason)
    });
    Ok(Outcome::new(&View::of(&done), text)?.with_failure(broken_off))
}

async fn create(store: &dyn Store, input: ReplayCreate) -> Result<Replay, Error> {
    let (tenant, _) = lookup::find::<WebhookSubscription>(store, input.subscription).await?;
    store.write("delivery.replay", move |tx| Box::pin(replays::create(tx, tenant, input.clone()))).await
}

/// The replay once it has come to its end, with a bar on stderr meanwhile if that is a terminal.
async fn finished(store: &dyn Store, mut replay: Replay) -> Result<Replay, Error> {
    let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos:>3} %  {msg}") {
        bar.set_style(style);
    }
    let (tenant, id) = (replay.tenant_id, replay.id);
    while replay.finished_at.is_none() {
        bar.set_position(replay.percent().into());
        bar.set_message(match replay.replayed {
            0 if replay.position == replay.since => "no server has begun with it yet".to_owned(),
            count => format!("{count} replayed, events before {} done", moment(replay.position)),
        });
        sleep(LOOK_EVERY).await;
        let look =
            store.read("delivery.replay.look", move |tx| Box::pin(async move { Ok(tx.replay(tenant, id).await?) }));
        replay = look.await?.ok_or_else(|| StoreError::Internal(format!("replay {id} is gone")))?;
    }
    bar.finish_and_clear();
    Ok(replay)
}

/// What was asked for, newest first.
pub(super) async fn list(store: &dyn Store, tenant: TenantId, limit: u32) -> Result<Outcome, Failure> {
    let listed = store.read("delivery.replays", move |tx| {
        Box::pin(async move {
            tenants::get(tx, tenant).await?;
            // One more tells whether there are more.
            Ok(tx.replays(tenant, limit.saturating_add(1)).await?)
        })
    });
    let mut replays: Vec<Replay> = listed.await.or_not_found("tenant", tenant, tenant::HINT)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = replays.len() > limit;
    replays.truncate(limit);

    let heading = ["ID", "PROGRESS", "REPLAYED", "SINCE", "UNTIL", "CREATED", "FINISHED", "WEBHOOK"];
    let table = Table::new(heading, &replays, |replay| {
        [
            replay.id.to_string(),
            format!("{} %", replay.percent()),
            replay.replayed.to_string(),
            moment(replay.since),
            moment(replay.until),
            moment(replay.created_at),
            moment_or_dash(replay.finished_at),
            replay.subscription_id.to_string(),
        ]
    });
    let views: Vec<View<'_>> = replays.iter().map(View::of).collect();
    let note = more.then(|| "There are more; a higher --limit shows them.".to_owned());
    Ok(Outcome::list(&views, &table, "No replay of many deliveries was asked for.")?.with_note(note))
}
