//! Rate limits (decisions §8): who is counted, what is told, and what costs nothing.

use std::num::NonZeroU32;
use std::time::Duration;

use http::Method;
use serde_json::json;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::limits::{CappedCollection, RateLimits};
use svc_core::accounts::tenants;
use svc_core::store::Store;
use svc_core::values::TenantId;
use svc_server::Settings;

use crate::harness::{Call, Reply, World, id_name, limited, operations};

/// `X-RateLimit-Limit`, `-Remaining`, `-Reset`.
fn told(reply: &Reply) -> (u32, u32, i64) {
    let number = |name: &str| reply.header(name).unwrap().parse::<i64>().unwrap();
    let small = |name: &str| u32::try_from(number(name)).unwrap();
    (small("x-ratelimit-limit"), small("x-ratelimit-remaining"), number("x-ratelimit-reset"))
}

fn remaining(reply: &Reply) -> u32 {
    told(reply).1
}

fn small(rate_limit: u32) -> World {
    World::with(Settings { rate_limit, ..limited() }, |store| store)
}

fn limit(limit: u32) -> NonZeroU32 {
    NonZeroU32::new(limit).unwrap()
}

/// Sets the limits of a tenant.
async fn set(store: &dyn Store, tenant: TenantId, limits: RateLimits) {
    let set =
        store.write("limits", move |tx| Box::pin(tenants::update(tx, tenant.0, move |tenant| tenant.limits = limits)));
    set.await.unwrap();
}

/// The clock stands at …:26.535897, so a window of it ends at …:26.535897 a minute later: rounded up …:27.
const FIRST_RESET: i64 = 1_773_500_966 + 60 + 1;

#[tokio::test]
async fn sixty_a_minute_and_every_header_exact() {
    let world = World::limited();
    for number in 1..=60 {
        let reply = world.expect(200, Call::get("/contacts")).await;
        assert_eq!(told(&reply), (60, 60 - number, FIRST_RESET));
        assert_eq!(reply.header("ratelimit-policy"), Some("\"default\";q=60;w=60"));
        assert_eq!(reply.header("ratelimit"), Some(format!("\"default\";r={};t=60", 60 - number).as_str()));
    }
    world.clock.advance(Duration::from_micros(10_200_001));
    let reply = world.expect(429, Call::get("/contacts")).await;
    assert_eq!(told(&reply), (60, 0, FIRST_RESET));
    // 49.799999 s are left: a client that waits as told is never early.
    assert_eq!(reply.header("retry-after"), Some("50"));
    assert_eq!(reply.json()["retry_after_ms"], 49_800);
    assert_eq!(reply.header("ratelimit"), Some("\"default\";r=0;t=50"));
}

#[tokio::test]
async fn a_window_begins_with_the_first_request_and_lasts_a_minute() {
    let world = small(2);
    let ping = || Call::get("/ping");
    assert_eq!(remaining(&world.expect(200, ping()).await), 1);
    world.clock.advance(Duration::from_secs(59));
    assert_eq!(remaining(&world.expect(200, ping()).await), 0);
    world.clock.advance(Duration::from_micros(999_999));
    let reply = world.expect(429, ping()).await;
    assert_eq!((reply.header("retry-after"), &reply.json()["retry_after_ms"]), (Some("1"), &json!(1)));
    world.clock.advance(Duration::from_micros(1));
    assert_eq!(told(&world.expect(200, ping()).await), (2, 1, FIRST_RESET + 60));
}

#[tokio::test]
async fn waiting_as_told_is_enough() {
    for wait in ["retry-after", "retry_after_ms"] {
        for offset in [0, 1, 999, 1000, 535_897, 999_999] {
            let world = small(1);
            world.expect(200, Call::get("/ping")).await;
            world.clock.advance(Duration::from_micros(offset));
            let refused = world.expect(429, Call::get("/ping")).await;
            let wait = match wait {
                "retry-after" => Duration::from_secs(refused.header("retry-after").unwrap().parse().unwrap()),
                _ => Duration::from_millis(refused.json()["retry_after_ms"].as_u64().unwrap()),
            };
            world.clock.advance(wait);
            world.expect(200, Call::get("/ping")).await;
        }
    }
}

/// The caps of the table, each on its own: contacts, bookings and jobs 30, quotes and webhooks 20.
#[tokio::test]
async fn every_write_has_its_own_cap() {
    let world = small(10_000);
    let mut count = 0;
    for operation in operations().iter().filter(|operation| operation.scope == Scope::Write) {
        let cap = if matches!(operation.collection, "quotes" | "webhooks") { 20 } else { 30 };
        assert_eq!(operation.default_write_limit().map(|default| default.limit), Some(cap));
        let path = operation.path.replace("{id}", &world.id("unknown_id"));
        let call = || Call::new(operation.method.clone(), &path).raw("{}");
        for number in 1..=cap {
            let reply = world.send(call()).await;
            assert!(matches!(reply.status, 400 | 404), "{}: {}", operation.id, reply.text());
            assert_eq!((told(&reply).0, remaining(&reply)), (cap, cap - number), "{}", operation.id);
            assert_eq!(reply.header("ratelimit-policy"), Some(format!("\"write\";q={cap};w=60").as_str()));
        }
        let reply = world.expect(429, call()).await;
        assert_eq!(told(&reply), (cap, 0, FIRST_RESET), "{}", operation.id);
        // The version is no way around, and reading goes on.
        let mut other = call();
        other.target = other.target.replace("/v1/", "/v2/");
        world.expect(429, other).await;
        world.expect(200, Call::get(&format!("/{}", operation.collection))).await;
        count += 1;
    }
    assert_eq!(count, 12);
}

#[tokio::test]
async fn caps_and_the_limit_can_be_set() {
    let write_rate_limits = std::iter::once((CappedCollection::Quotes, limit(2))).collect();
    let world = World::with(Settings { rate_limit: 5, write_rate_limits, ..limited() }, |store| store);
    let quote = || Call::new(Method::POST, "/quotes").raw("{}");
    for left in [1, 0] {
        assert_eq!(remaining(&world.expect(400, quote()).await), left);
    }
    world.expect(429, quote()).await;
    // Each method has a window of its own, and the general one is the tighter from here on.
    let patch = Call::patch(&format!("/quotes/{}", world.id("quote_id")), json!({ "total": 1 }));
    let reply = world.expect(200, patch).await;
    assert_eq!((told(&reply).0, remaining(&reply)), (2, 1));
    for left in [1, 0] {
        let reply = world.expect(200, Call::get("/quotes")).await;
        assert_eq!((told(&reply).0, remaining(&reply)), (5, left));
    }
    let reply = world.expect(429, Call::new(Method::POST, "/contacts").raw("{}")).await;
    assert_eq!((told(&reply).0, remaining(&reply)), (5, 0));
}

#[tokio::test]
async fn a_refusal_costs_nothing() {
    let write_rate_limits = std::iter::once((CappedCollection::Jobs, limit(1))).collect();
    let world = World::with(Settings { rate_limit: 3, write_rate_limits, ..limited() }, |store| store);
    let job = || Call::new(Method::POST, "/jobs").raw("{}");
    world.expect(400, job()).await;
    for _ in 0..10 {
        world.expect(429, job()).await;
    }
    assert_eq!(remaining(&world.expect(200, Call::get("/jobs")).await), 1);
    assert_eq!(remaining(&world.expect(200, Call::get("/jobs")).await), 0);
    for _ in 0..10 {
        world.expect(429, Call::get("/jobs")).await;
    }
    assert_eq!(world.new_events().await, [""; 0]);
}

#[tokio::test]
async fn a_304_costs_nothing() {
    let world = small(3);
    let path = format!("/contacts/{}", world.id("contact_id"));
    let first = world.expect(200, Call::get(&path)).await;
    assert_eq!(remaining(&first), 2);
    for _ in 0..10 {
        let reply = world.expect(304, Call::get(&path).header("if-none-match", first.etag())).await;
        assert_eq!(told(&reply), (3, 2, FIRST_RESET));
    }
    assert_eq!(remaining(&world.expect(200, Call::get(&path).header("if-none-match", "\"x\"")).await), 1);
}

#[tokio::test]
async fn requests_without_a_key_count_against_their_address() {
    let world = small(2);
    let (peer, other) = ("203.0.113.5", "203.0.113.6");
    let anonymous = |peer: &str| Call::get("/ping").anonymous().at_peer(peer);
    let wrong = |peer: &str| Call::get("/ping").header("authorization", "Bearer svc_live_abc").at_peer(peer);
    let revoked = |world: &World, peer: &str| Call::get("/ping").key(world.key("revoked")).at_peer(peer);
    assert_eq!(remaining(&world.expect(401, anonymous(peer)).await), 1);
    assert_eq!(remaining(&world.expect(401, wrong(peer)).await), 0);
    for call in [anonymous(peer), wrong(peer), revoked(&world, peer)] {
        let reply = world.expect(429, call).await;
        assert_eq!((reply.code().as_str(), told(&reply)), ("rate_limited", (2, 0, FIRST_RESET)));
    }
    // Keys at that address, and other addresses, notice nothing of it.
    assert_eq!(remaining(&world.expect(200, Call::get("/ping").at_peer(peer)).await), 1);
    assert_eq!(remaining(&world.expect(401, anonymous(other)).await), 1);
    // Nor does the address notice a key that is used up.
    world.expect(200, Call::get("/ping").at_peer(other)).await;
    world.expect(429, Call::get("/ping").at_peer(other)).await;
    assert_eq!(remaining(&world.expect(401, anonymous(other)).await), 0);
    world.clock.advance(Duration::from_secs(60));
    world.expect(401, anonymous(peer)).await;
}

#[tokio::test]
async fn each_key_has_its_own_limit_and_both_versions_share_it() {
    let world = small(2);
    world.expect(200, Call::get("/ping")).await;
    world.expect(200, Call::absolute(Method::GET, "/api/v2/ping")).await;
    world.expect(429, Call::get("/ping")).await;
    world.expect(429, Call::absolute(Method::GET, "/api/v2/ping")).await;
    // Also of one tenant.
    world.expect(200, Call::get("/ping").key(world.key("read"))).await;
    world.expect(200, Call::get("/ping").key(world.key("other"))).await;
}

/// Failures count like successes once the key is known.
#[tokio::test]
async fn failures_count() {
    let world = small(60);
    let unknown = world.id("unknown_id");
    let calls = [
        (404, Call::get(&format!("/contacts/{unknown}"))),
        (400, Call::get("/contacts?limit=0")),
        (403, Call::get("/ping").key(world.key("pending"))),
        (200, Call::new(Method::HEAD, "/contacts")),
    ];
    for (status, call) in calls {
        let left = |reply: &Reply| remaining(reply);
        let before = left(&world.send(call.clone()).await);
        assert_eq!(left(&world.expect(status, call).await), before - 1);
    }
}

#[tokio::test]
async fn what_lies_outside_is_not_limited() {
    let world = small(1);
    world.expect(401, Call::get("/ping").anonymous()).await;
    for path in ["/healthz", "/readyz", "/api/v1/openapi.json"] {
        for _ in 0..5 {
            world.expect(200, Call::absolute(Method::GET, path).anonymous()).await;
        }
    }
}

#[tokio::test]
async fn without_limits_nothing_is_refused() {
    let world = World::new();
    for _ in 0..100 {
        let reply = world.expect(200, Call::get("/ping")).await;
        assert_eq!(told(&reply), (60, 60, FIRST_RESET));
    }
    for _ in 0..40 {
        world.expect(401, Call::get("/ping").anonymous()).await;
        let path = format!("/quotes/{}", world.id(&id_name("quotes")));
        world.expect(400, Call::new(Method::PATCH, &path).raw("{}")).await;
    }
}

/// Many at once: exactly as many are let through as the limit says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_once_no_more_get_through() {
    let world = std::sync::Arc::new(small(25));
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let world = std::sync::Arc::clone(&world);
            tokio::spawn(async move { world.send(Call::get("/ping")).await.status })
        })
        .collect();
    let mut passed = 0;
    for task in tasks {
        passed += usize::from(task.await.unwrap() == 200);
    }
    assert_eq!(passed, 25);
}

#[tokio::test]
async fn a_tenant_has_limits_of_its_own_from_the_next_request_on() {
    let world = small(2);
    // As the command line is.
    let beside = world.second_store();
    let set = async |limits| set(&*beside, world.seed.tenant, limits).await;
    let quote = || Call::new(Method::POST, "/quotes").raw("{}");
    for left in [1, 0] {
        assert_eq!(remaining(&world.expect(200, Call::get("/ping")).await), left);
    }
    world.expect(429, Call::get("/ping")).await;
    // The window goes on, and so does what was counted in it.
    let mut limits = RateLimits { rate_limit: Some(limit(6)), ..RateLimits::default() };
    set(limits).await;
    assert_eq!(told(&world.expect(200, Call::get("/ping")).await), (6, 3, FIRST_RESET));
    limits.write_rate_limits.set(CappedCollection::Quotes, Some(limit(1)));
    set(limits).await;
    let reply = world.expect(400, quote()).await;
    assert_eq!((told(&reply), reply.header("ratelimit-policy")), ((1, 0, FIRST_RESET), Some("\"write\";q=1;w=60")));
    assert_eq!(told(&world.expect(429, quote()).await), (1, 0, FIRST_RESET));
    // That of other writes is the server's, and of reads there are two left.
    assert_eq!(told(&world.expect(400, Call::new(Method::POST, "/jobs").raw("{}")).await), (6, 1, FIRST_RESET));
    let path = format!("/quotes/{}", world.id("quote_id"));
    let first = world.expect(200, Call::get(&path)).await;
    assert_eq!(told(&first), (6, 0, FIRST_RESET));
    // Other keys of the tenant have the same limit, other tenants and addresses the server's.
    assert_eq!(told(&world.expect(200, Call::get("/ping").key(world.key("read"))).await), (6, 5, FIRST_RESET));
    assert_eq!(told(&world.expect(200, Call::get("/ping").key(world.key("other"))).await), (2, 1, FIRST_RESET));
    assert_eq!(told(&world.expect(401, Call::get("/ping").anonymous()).await), (2, 1, FIRST_RESET));
    // Lowered below what was used, and taken away: at once, and until the window ends.
    for limits in [RateLimits { rate_limit: Some(limit(1)), ..limits }, RateLimits::default()] {
        set(limits).await;
        let limit = limits.rate_limit.map_or(2, u32::from);
        assert_eq!(told(&world.expect(429, Call::get(&path)).await), (limit, 0, FIRST_RESET));
    }
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(told(&world.expect(200, Call::get("/ping")).await), (2, 1, FIRST_RESET + 60));
}

#[tokio::test]
async fn a_304_costs_nothing_by_a_limit_of_the_tenant() {
    let world = small(1);
    set(&*world.store, world.seed.tenant, RateLimits { rate_limit: Some(limit(3)), ..RateLimits::default() }).await;
    let path = format!("/contacts/{}", world.id("contact_id"));
    let first = world.expect(200, Call::get(&path)).await;
    for _ in 0..5 {
        let reply = world.expect(304, Call::get(&path).header("if-none-match", first.etag())).await;
        assert_eq!(told(&reply), (3, 2, FIRST_RESET));
    }
}

#[tokio::test]
async fn a_limit_of_the_tenant_is_told_where_none_is_enforced() {
    let world = World::new();
    set(&*world.store, world.seed.tenant, RateLimits { rate_limit: Some(limit(3)), ..RateLimits::default() }).await;
    for _ in 0..5 {
        assert_eq!(told(&world.expect(200, Call::get("/ping")).await), (3, 3, FIRST_RESET));
    }
}
