//! Bulk replays: their progress.

use serde_json::json;
use svc_core::values::Timestamp;
use svc_core::webhooks::replays::{self, MAX_TOTAL, Replay, ReplayCreate};
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::{Rules, START, time};

/// Returns a replay after this many steps.
fn replay(fixture: &Rules, subscription: &WebhookSubscription, since: &str, steps: usize) -> Replay {
    let (tenant, subscription, since) = (fixture.tenant, subscription.id, time(since));
    let input = ReplayCreate { subscription, since, until: None, statuses: Vec::new(), missed: false };
    fixture
        .write((tenant, input, steps), async |tx, (tenant, input, steps)| {
            let replay = replays::create(tx, *tenant, input.clone()).await?;
            for _ in 0..*steps {
                replays::step(tx, *tenant).await?;
            }
            Ok(tx.replay(*tenant, replay.id).await?.unwrap())
        })
        .unwrap()
}

#[test]
fn a_replay_reports_its_progress() {
    let fixture = Rules::new();
    let hook: WebhookSubscription = fixture.create(json!({ "url": "https://example.com", "events": ["*"] })).unwrap();
    let fresh = replay(&fixture, &hook, "2026-03-13T15:09:26Z", 0);
    assert_eq!((fresh.percent(), fresh.broken_off()), (0, false));
    assert_eq!((fresh.total, fresh.done), (0, 0), "there is nothing to replay");
    let (since, span) = (fresh.since.as_micros(), fresh.until.as_micros() - fresh.since.as_micros());
    for (done, want) in [(0, 0), (span / 2, 49), (span / 2 + 1, 50), (span - 1, 99), (span, 100), (span * 2, 100)] {
        let position = Timestamp::from_micros(since + done);
        for total in [0, MAX_TOTAL] {
            assert_eq!(Replay { position, total, ..fresh.clone() }.percent(), want, "{done} of {span}");
        }
    }
    // The share is one of what there is to go through, wherever in the time span that is.
    for (done, want) in [(0, 0), (1_234, 21), (5_677, 99), (5_678, 99), (6_000, 99)] {
        let running = Replay { total: 5_678, done, ..fresh.clone() };
        assert_eq!(running.percent(), want, "{done}");
        assert_eq!(Replay { position: fresh.until, ..running }.percent(), 100);
    }
    for (total, done, want) in [
        (0, 0, "50%"),
        (900, 1, "1 of 900 (0%)"),
        (5_678, 1_234, "1,234 of 5,678 (21%)"),
        (5_678, 6_000, "6,000 of 6,000 (99%)"),
        (MAX_TOTAL, 1_234_567, "1,234,567 of 10,000+ (50%)"),
    ] {
        let position = Timestamp::from_micros(since + span / 2 + 1);
        assert_eq!(Replay { total, done, position, ..fresh.clone() }.progress(), want);
    }
    // There is no event in this range.
    assert_eq!(Replay { until: fresh.since, ..fresh.clone() }.percent(), 100);
    assert_eq!(Replay { since: fresh.until, position: fresh.until, until: fresh.since, ..fresh }.percent(), 100);
}

#[test]
fn a_finished_replay_has_reached_the_end_of_its_range() {
    let fixture = Rules::new();
    let hook: WebhookSubscription = fixture.create(json!({ "url": "https://example.com", "events": ["*"] })).unwrap();
    fixture.contact();
    let done = replay(&fixture, &hook, "2026-03-13T15:09:26Z", 1);
    assert_eq!((done.position, done.percent(), done.broken_off()), (done.until, 100, false));
    assert!(done.finished_at.is_some());
    let ahead = replay(&fixture, &hook, "2026-03-15T15:09:26Z", 1);
    assert_eq!((ahead.position, ahead.percent(), ahead.broken_off()), (ahead.since, 100, false));

    let asked = replay(&fixture, &hook, START, 0);
    fixture.replace(WebhookSubscription { enabled: false, ..hook.clone() });
    let tenant = fixture.tenant;
    fixture.write(tenant, async |tx, &tenant| replays::step(tx, tenant).await).unwrap();
    let off =
        fixture.write((tenant, asked.id), async |tx, &(tenant, id)| Ok(tx.replay(tenant, id).await?.unwrap())).unwrap();
    assert!(off.broken_off() && off.percent() < 100 && off.finished_at.is_some());
}
