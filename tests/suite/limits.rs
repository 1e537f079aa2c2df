//! Rate limits (docs/contract.md, "Rate limits"): what each request counts against, the headers, and the requests
//! that do not count.

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

use crate::harness::{Call, Response, SeededServer, id_name, limited, operations};
use svc_server::kernel::versions::{default_write_limit, method_of};

/// Returns `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
fn rate_limit_headers(response: &Response) -> (u32, u32, i64) {
    let number = |name: &str| response.header(name).unwrap().parse::<i64>().unwrap();
    let small = |name: &str| u32::try_from(number(name)).unwrap();
    (small("x-ratelimit-limit"), small("x-ratelimit-remaining"), number("x-ratelimit-reset"))
}

fn remaining(response: &Response) -> u32 {
    rate_limit_headers(response).1
}

fn server_with_limit(rate_limit: u32) -> SeededServer {
    SeededServer::with(Settings { rate_limit, ..limited() })
}

fn limit(limit: u32) -> NonZeroU32 {
    NonZeroU32::new(limit).unwrap()
}

/// Sets a tenant's own limits.
async fn set(store: &dyn Store, tenant: TenantId, limits: RateLimits) {
    let set = store.write("limits", (tenant, limits), async |tx, &(tenant, limits)| {
        tenants::update(tx, tenant.0, move |tenant| tenant.limits = limits).await
    });
    set.await.unwrap();
}

/// The clock stands at …:26.535897, so a window that starts now ends at …:26.535897 a minute later. The header rounds
/// up to …:27.
const FIRST_RESET: i64 = 1_773_500_966 + 60 + 1;

#[tokio::test]
async fn sixty_requests_a_minute_are_allowed_with_exact_headers() {
    let server = SeededServer::limited();
    for number in 1..=60 {
        let response = server.expect(200, Call::get("/contacts")).await;
        assert_eq!(rate_limit_headers(&response), (60, 60 - number, FIRST_RESET));
        assert_eq!(response.header("ratelimit-policy"), Some("\"default\";q=60;w=60"));
        assert_eq!(response.header("ratelimit"), Some(format!("\"default\";r={};t=60", 60 - number).as_str()));
    }
    server.clock.advance(Duration::from_micros(10_200_001));
    let response = server.expect(429, Call::get("/contacts")).await;
    assert_eq!(rate_limit_headers(&response), (60, 0, FIRST_RESET));
    // 49.799999 s are left. The header rounds up, so that a client which waits for that time is never early.
    assert_eq!(response.header("retry-after"), Some("50"));
    assert_eq!(response.json()["retry_after_ms"], 49_800);
    assert_eq!(response.header("ratelimit"), Some("\"default\";r=0;t=50"));
}

#[tokio::test]
async fn a_window_starts_with_the_first_request_and_lasts_a_minute() {
    let server = server_with_limit(2);
    let ping = || Call::get("/ping");
    assert_eq!(remaining(&server.expect(200, ping()).await), 1);
    server.clock.advance(Duration::from_secs(59));
    assert_eq!(remaining(&server.expect(200, ping()).await), 0);
    server.clock.advance(Duration::from_micros(999_999));
    let response = server.expect(429, ping()).await;
    assert_eq!((response.header("retry-after"), &response.json()["retry_after_ms"]), (Some("1"), &json!(1)));
    server.clock.advance(Duration::from_micros(1));
    assert_eq!(rate_limit_headers(&server.expect(200, ping()).await), (2, 1, FIRST_RESET + 60));
}

#[tokio::test]
async fn a_request_after_retry_after_is_accepted() {
    for wait in ["retry-after", "retry_after_ms"] {
        for offset in [0, 1, 999, 1000, 535_897, 999_999] {
            let server = server_with_limit(1);
            server.expect(200, Call::get("/ping")).await;
            server.clock.advance(Duration::from_micros(offset));
            let refused = server.expect(429, Call::get("/ping")).await;
            let wait = match wait {
                "retry-after" => Duration::from_secs(refused.header("retry-after").unwrap().parse().unwrap()),
                _ => Duration::from_millis(refused.json()["retry_after_ms"].as_u64().unwrap()),
            };
            server.clock.advance(wait);
            server.expect(200, Call::get("/ping")).await;
        }
    }
}

/// Each kind of write has its own limit: 30 for contacts, bookings and jobs, 20 for quotes and webhooks.
#[tokio::test]
async fn every_write_operation_has_its_own_limit() {
    let server = server_with_limit(10_000);
    let mut count = 0;
    for operation in operations().iter().filter(|operation| operation.scope() == Scope::Write) {
        let cap = if matches!(operation.tag, "quotes" | "webhooks") { 20 } else { 30 };
        assert_eq!(default_write_limit(operation).map(|default| default.limit), Some(cap));
        let path = operation.path_in_account().replace("{id}", &server.id("unknown_id"));
        let call = || Call::new(method_of(operation), &path).raw("{}");
        for number in 1..=cap {
            let response = server.send(call()).await;
            assert!(matches!(response.status, 400 | 404), "{}: {}", operation.id, response.text);
            assert_eq!(
                (rate_limit_headers(&response).0, remaining(&response)),
                (cap, cap - number),
                "{}",
                operation.id
            );
            assert_eq!(response.header("ratelimit-policy"), Some(format!("\"write\";q={cap};w=60").as_str()));
        }
        let response = server.expect(429, call()).await;
        assert_eq!(rate_limit_headers(&response), (cap, 0, FIRST_RESET), "{}", operation.id);
        // The other API version shares the limit, and reads are not affected.
        let mut other = call();
        other.target = other.target.replace("/v1/", "/v2/");
        server.expect(429, other).await;
        server.expect(200, Call::get(&format!("/{}", operation.tag))).await;
        count += 1;
    }
    assert_eq!(count, 12);
}

#[tokio::test]
async fn the_general_and_the_write_limits_can_be_configured() {
    let write_rate_limits = std::iter::once((CappedCollection::Quotes, limit(2))).collect();
    let server = SeededServer::with(Settings { rate_limit: 5, write_rate_limits, ..limited() });
    let quote = || Call::new(Method::POST, "/quotes").raw("{}");
    for left in [1, 0] {
        assert_eq!(remaining(&server.expect(400, quote()).await), left);
    }
    server.expect(429, quote()).await;
    // Each method has its own window. From here on the general limit has fewer requests left.
    let patch = Call::patch(&format!("/quotes/{}", server.id("quote_id")), json!({ "total": 1 }));
    let response = server.expect(200, patch).await;
    assert_eq!((rate_limit_headers(&response).0, remaining(&response)), (2, 1));
    for left in [1, 0] {
        let response = server.expect(200, Call::get("/quotes")).await;
        assert_eq!((rate_limit_headers(&response).0, remaining(&response)), (5, left));
    }
    let response = server.expect(429, Call::new(Method::POST, "/contacts").raw("{}")).await;
    assert_eq!((rate_limit_headers(&response).0, remaining(&response)), (5, 0));
}

#[tokio::test]
async fn a_refused_request_does_not_count() {
    let write_rate_limits = std::iter::once((CappedCollection::Jobs, limit(1))).collect();
    let server = SeededServer::with(Settings { rate_limit: 3, write_rate_limits, ..limited() });
    let job = || Call::new(Method::POST, "/jobs").raw("{}");
    server.expect(400, job()).await;
    for _ in 0..10 {
        server.expect(429, job()).await;
    }
    assert_eq!(remaining(&server.expect(200, Call::get("/jobs")).await), 1);
    assert_eq!(remaining(&server.expect(200, Call::get("/jobs")).await), 0);
    for _ in 0..10 {
        server.expect(429, Call::get("/jobs")).await;
    }
    assert_eq!(server.new_events().await, [""; 0]);
}

#[tokio::test]
async fn a_304_does_not_count() {
    let server = server_with_limit(3);
    let path = format!("/contacts/{}", server.id("contact_id"));
    let first = server.expect(200, Call::get(&path)).await;
    assert_eq!(remaining(&first), 2);
    for _ in 0..10 {
        let response = server.expect(304, Call::get(&path).header("if-none-match", first.etag())).await;
        assert_eq!(rate_limit_headers(&response), (3, 2, FIRST_RESET));
    }
    assert_eq!(remaining(&server.expect(200, Call::get(&path).header("if-none-match", "\"x\"")).await), 1);
}

#[tokio::test]
async fn requests_without_a_key_count_against_their_address() {
    let server = server_with_limit(2);
    let (peer, other) = ("203.0.113.5", "203.0.113.6");
    let anonymous = |peer: &str| Call::get("/ping").anonymous().at_peer(peer);
    let wrong = |peer: &str| Call::get("/ping").header("authorization", "Bearer svc_live_abc").at_peer(peer);
    let revoked = |server: &SeededServer, peer: &str| Call::get("/ping").key(server.key("revoked")).at_peer(peer);
    assert_eq!(remaining(&server.expect(401, anonymous(peer)).await), 1);
    assert_eq!(remaining(&server.expect(401, wrong(peer)).await), 0);
    for call in [anonymous(peer), wrong(peer), revoked(&server, peer)] {
        let response = server.expect(429, call).await;
        assert_eq!((response.code().as_str(), rate_limit_headers(&response)), ("rate_limited", (2, 0, FIRST_RESET)));
    }
    // Requests with a key from that address, and requests from other addresses, are not affected.
    assert_eq!(remaining(&server.expect(200, Call::get("/ping").at_peer(peer)).await), 1);
    assert_eq!(remaining(&server.expect(401, anonymous(other)).await), 1);
    // An exhausted key does not affect its address either.
    server.expect(200, Call::get("/ping").at_peer(other)).await;
    server.expect(429, Call::get("/ping").at_peer(other)).await;
    assert_eq!(remaining(&server.expect(401, anonymous(other)).await), 0);
    server.clock.advance(Duration::from_secs(60));
    server.expect(401, anonymous(peer)).await;
}

#[tokio::test]
async fn each_key_has_its_own_limit_and_both_versions_share_it() {
    let server = server_with_limit(2);
    server.expect(200, Call::get("/ping")).await;
    server.expect(200, Call::absolute(Method::GET, "/api/v2/ping")).await;
    server.expect(429, Call::get("/ping")).await;
    server.expect(429, Call::absolute(Method::GET, "/api/v2/ping")).await;
    // Two keys of one tenant have separate windows too.
    server.expect(200, Call::get("/ping").key(server.key("read"))).await;
    server.expect(200, Call::get("/ping").key(server.key("other"))).await;
}

/// Once the key is known, failed requests count like successful ones.
#[tokio::test]
async fn failed_requests_count() {
    let server = server_with_limit(60);
    let unknown = server.id("unknown_id");
    let calls = [
        (404, Call::get(&format!("/contacts/{unknown}"))),
        (400, Call::get("/contacts?limit=0")),
        (403, Call::get("/ping").key(server.key("pending"))),
        (200, Call::new(Method::HEAD, "/contacts")),
    ];
    for (status, call) in calls {
        let left = |response: &Response| remaining(response);
        let before = left(&server.send(call.clone()).await);
        assert_eq!(left(&server.expect(status, call).await), before - 1);
    }
}

#[tokio::test]
async fn endpoints_outside_the_api_are_not_limited() {
    let server = server_with_limit(1);
    server.expect(401, Call::get("/ping").anonymous()).await;
    for path in ["/healthz", "/readyz", "/api/v1/openapi.json"] {
        for _ in 0..5 {
            server.expect(200, Call::absolute(Method::GET, path).anonymous()).await;
        }
    }
}

#[tokio::test]
async fn nothing_is_refused_when_limits_are_off() {
    let server = SeededServer::new();
    for _ in 0..100 {
        let response = server.expect(200, Call::get("/ping")).await;
        assert_eq!(rate_limit_headers(&response), (60, 60, FIRST_RESET));
    }
    for _ in 0..40 {
        server.expect(401, Call::get("/ping").anonymous()).await;
        let path = format!("/quotes/{}", server.id(&id_name("quotes")));
        server.expect(400, Call::new(Method::PATCH, &path).raw("{}")).await;
    }
}

/// Of many concurrent requests exactly as many succeed as the limit allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_do_not_exceed_the_limit() {
    let server = std::sync::Arc::new(server_with_limit(25));
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let server = std::sync::Arc::clone(&server);
            tokio::spawn(async move { server.send(Call::get("/ping")).await.status })
        })
        .collect();
    let mut passed = 0;
    for task in tasks {
        passed += usize::from(task.await.unwrap() == 200);
    }
    assert_eq!(passed, 25);
}

#[tokio::test]
async fn limits_of_a_tenant_take_effect_at_the_next_request() {
    let server = server_with_limit(2);
    // Another process changes them, as the command line does.
    let other = server.second_store();
    let set = async |limits| set(&*other, server.tenant, limits).await;
    let quote = || Call::new(Method::POST, "/quotes").raw("{}");
    for left in [1, 0] {
        assert_eq!(remaining(&server.expect(200, Call::get("/ping")).await), left);
    }
    server.expect(429, Call::get("/ping")).await;
    // The window continues with what was counted in it.
    let mut limits = RateLimits { rate_limit: Some(limit(6)), ..RateLimits::default() };
    set(limits).await;
    assert_eq!(rate_limit_headers(&server.expect(200, Call::get("/ping")).await), (6, 3, FIRST_RESET));
    limits.write_rate_limits.set(CappedCollection::Quotes, Some(limit(1)));
    set(limits).await;
    let response = server.expect(400, quote()).await;
    assert_eq!(
        (rate_limit_headers(&response), response.header("ratelimit-policy")),
        ((1, 0, FIRST_RESET), Some("\"write\";q=1;w=60"))
    );
    assert_eq!(rate_limit_headers(&server.expect(429, quote()).await), (1, 0, FIRST_RESET));
    // Other writes keep the server's limits, and two reads are left.
    assert_eq!(
        rate_limit_headers(&server.expect(400, Call::new(Method::POST, "/jobs").raw("{}")).await),
        (6, 1, FIRST_RESET)
    );
    let path = format!("/quotes/{}", server.id("quote_id"));
    let first = server.expect(200, Call::get(&path)).await;
    assert_eq!(rate_limit_headers(&first), (6, 0, FIRST_RESET));
    // Other keys of the tenant have the tenant's limit. Other tenants and addresses have the server's.
    assert_eq!(
        rate_limit_headers(&server.expect(200, Call::get("/ping").key(server.key("read"))).await),
        (6, 5, FIRST_RESET)
    );
    assert_eq!(
        rate_limit_headers(&server.expect(200, Call::get("/ping").key(server.key("other"))).await),
        (2, 1, FIRST_RESET)
    );
    assert_eq!(rate_limit_headers(&server.expect(401, Call::get("/ping").anonymous()).await), (2, 1, FIRST_RESET));
    // A limit that is lowered below the count, and one that is removed, refuse requests at once until the window
    // ends.
    for limits in [RateLimits { rate_limit: Some(limit(1)), ..limits }, RateLimits::default()] {
        set(limits).await;
        let limit = limits.rate_limit.map_or(2, u32::from);
        assert_eq!(rate_limit_headers(&server.expect(429, Call::get(&path)).await), (limit, 0, FIRST_RESET));
    }
    server.clock.advance(Duration::from_secs(60));
    assert_eq!(rate_limit_headers(&server.expect(200, Call::get("/ping")).await), (2, 1, FIRST_RESET + 60));
}

#[tokio::test]
async fn a_304_does_not_count_against_a_limit_of_the_tenant() {
    let server = server_with_limit(1);
    set(&**server.store(), server.tenant, RateLimits { rate_limit: Some(limit(3)), ..RateLimits::default() }).await;
    let path = format!("/contacts/{}", server.id("contact_id"));
    let first = server.expect(200, Call::get(&path)).await;
    for _ in 0..5 {
        let response = server.expect(304, Call::get(&path).header("if-none-match", first.etag())).await;
        assert_eq!(rate_limit_headers(&response), (3, 2, FIRST_RESET));
    }
}

#[tokio::test]
async fn a_limit_of_the_tenant_is_reported_when_limits_are_off() {
    let server = SeededServer::new();
    set(&**server.store(), server.tenant, RateLimits { rate_limit: Some(limit(3)), ..RateLimits::default() }).await;
    for _ in 0..5 {
        assert_eq!(rate_limit_headers(&server.expect(200, Call::get("/ping")).await), (3, 3, FIRST_RESET));
    }
}
