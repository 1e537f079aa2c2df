//! Codes and tokens: how long they last, what a repeat gets, how many an app gets in a minute, and what they are for.

use std::time::Duration;

use futures_util::future::join_all;
use http::Method;
use serde_json::json;
use svc_core::accounts::platform_keys::PlatformKeyCreate;
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::error::StoreError;
use svc_core::store::{Access, Store as _};
use svc_server::{Api, Settings};

use super::{Client, HOUR, apps, assert_refused, exchange_of, query, sign_in, text, with_apps, with_token};
use crate::faults::Gate;
use crate::harness::{Call, limited, settings};

/// The response of the server was lost, so the app sends the request again.
#[tokio::test]
async fn a_lost_response_costs_a_public_app_nothing() {
    let server = with_apps(settings());
    let client = Client::new(&server, true).await;
    let tokens = client.connect().await;
    let first = client.refresh(text(&tokens, "refresh_token")).await;
    assert_ne!(first.json()["refresh_token"], tokens["refresh_token"]);
    server.clock.advance(Duration::from_secs(30 * 60));
    let again = client.refresh(text(&tokens, "refresh_token")).await;
    assert_eq!(again.text, first.text);
    // The access token lasts as long as the response says.
    server.clock.advance(Duration::from_secs(59 * 60));
    server.expect(200, with_token(Call::get("/contacts"), &again.json())).await;
    server.clock.advance(Duration::from_secs(60));
    server.expect(401, with_token(Call::get("/contacts"), &again.json())).await;
    assert_eq!(client.refresh(text(&again.json(), "refresh_token")).await.status, 200);
}

#[tokio::test]
async fn a_refresh_token_that_two_hold_ends_the_access() {
    for is_late in [false, true] {
        let server = with_apps(settings());
        let client = Client::new(&server, true).await;
        let tokens = client.connect().await;
        let next = client.refresh(text(&tokens, "refresh_token")).await.json();
        if is_late {
            server.clock.advance(Duration::from_secs(30 * 60 + 1));
        } else {
            assert_eq!(client.refresh(text(&next, "refresh_token")).await.status, 200);
        }
        assert_refused(&client.refresh(text(&tokens, "refresh_token")).await, 400, "invalid_grant");
        assert_eq!(client.grants().await, 0);
        server.expect(401, with_token(Call::get("/contacts"), &next)).await;
        let log = client.svc.account(client.tenant).audit_log().since(crate::seed::start(), 50).await.unwrap();
        assert!(log.iter().any(|entry| entry.action == "revoke" && entry.object_kind == "grant"));
    }
}

#[tokio::test]
async fn a_code_that_comes_again_ends_what_it_gave_and_nothing_else() {
    let server = with_apps(settings());
    let client = Client::new(&server, false).await;
    let other = client.connect().await;
    let code = client.authorize(&[]).await["code"].clone();
    let tokens = client.exchange(&code).await.json();
    assert_refused(&client.exchange(&code).await, 400, "invalid_grant");
    server.expect(401, with_token(Call::get("/contacts"), &tokens)).await;
    assert_refused(&client.refresh(text(&tokens, "refresh_token")).await, 400, "invalid_grant");
    server.expect(200, with_token(Call::get("/contacts"), &other)).await;
    assert_eq!(client.grants().await, 1);
}

#[tokio::test]
async fn codes_and_tokens_expire() {
    let server = with_apps(settings());
    let client = Client::new(&server, false).await;
    let code = client.authorize(&[]).await["code"].clone();
    server.clock.advance(Duration::from_secs(60));
    assert_refused(&client.exchange(&code).await, 400, "invalid_grant");
    let client = Client { cookie: sign_in(&client.svc, client.tenant).await, ..client };
    let tokens = client.connect().await;
    server.clock.advance(HOUR);
    server.expect(401, with_token(Call::get("/contacts"), &tokens)).await;
    assert_eq!(client.refresh(text(&tokens, "refresh_token")).await.status, 200);
    // Each use of a refresh token makes it last for 90 days more.
    for _ in 0..2 {
        server.clock.advance(HOUR * 24 * 90 - Duration::from_micros(1));
        assert_eq!(client.refresh(text(&tokens, "refresh_token")).await.status, 200);
    }
    server.clock.advance(HOUR * 24 * 90);
    assert_refused(&client.refresh(text(&tokens, "refresh_token")).await, 400, "invalid_grant");
    // Upkeep deletes what has expired.
    server.clock.advance(HOUR * 2);
    server.api.jobs().run_housekeeping().await.unwrap();
    let left = server
        .store()
        .write("left", (), async |tx, ()| Ok(tx.delete_expired_tokens(svc_core::values::Timestamp::MAX, 100).await?));
    assert_eq!(left.await.unwrap(), 0);
}

/// A public app has no secret, so anyone can send requests in its name.
#[tokio::test]
async fn revocations_are_limited_by_address_and_what_is_no_token_is_not_written() {
    let (server, gate) = Gate::server_of(apps(), Settings { rate_limit: 3, ..limited() });
    let client = Client::new(&server, true).await;
    gate.fail(Access::Write, StoreError::Unavailable("no writes".to_owned()));
    let revoke = |peer: &str| {
        let form = query(&[("client_id", &client.new.app.client_id), ("token", "svc_ort_unknown")]);
        Call::absolute(Method::POST, "/oauth/revoke").form(form).at_peer(peer)
    };
    for status in [200, 200, 200, 429, 429] {
        let response = server.send(revoke("203.0.113.9")).await;
        assert_eq!(response.status, status, "{}", response.text);
        assert_eq!(response.header("retry-after").is_some(), status == 429);
    }
    assert_eq!(server.send(revoke("203.0.113.10")).await.status, 200, "from another address");
    gate.heal();
}

#[tokio::test]
async fn limits_and_idempotency_keys_are_those_of_the_grant() {
    let server = with_apps(Settings { rate_limit: 3, ..limited() });
    let client = Client::new(&server, false).await;
    let tokens = client.connect().await;
    let refreshed = client.refresh(text(&tokens, "refresh_token")).await.json();
    let create = || Call::post("/contacts", json!({ "email": "grace@example.com" })).header("idempotency-key", "1");
    server.expect(201, create()).await;
    // The same key of the account is another one.
    server.expect(409, with_token(create(), &tokens)).await;
    server.expect(409, with_token(create(), &refreshed)).await;
    server.expect(200, with_token(Call::get("/contacts"), &refreshed)).await;
    server.expect(429, with_token(Call::get("/contacts"), &tokens)).await;
    server.expect(200, Call::get("/contacts")).await;
}

/// What an app may do with a grant is limited, whoever has the account or the app, and holds nothing else up.
#[tokio::test]
async fn requests_for_tokens_are_limited_for_each_grant() {
    let server = with_apps(Settings { rate_limit: 5, ..limited() });
    let (client, other) = (Client::new(&server, true).await, Client::new(&server, false).await);
    let others = other.connect().await;
    let mut tokens = client.connect().await;
    for _ in 1..5 {
        tokens = client.refresh(text(&tokens, "refresh_token")).await.json();
    }
    for _ in 0..2 {
        let refused = client.refresh(text(&tokens, "refresh_token")).await;
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("60")), "{}", refused.text);
    }
    // Parameters of other requests are ignored, and do not choose the grant either.
    let refresh = [("grant_type", "refresh_token"), ("refresh_token", text(&tokens, "refresh_token"))];
    for ignored in [("code", "x"), ("token", text(&others, "access_token"))] {
        assert_eq!(client.token(&[&refresh[..], &[ignored]].concat()).await.status, 429, "with {}", ignored.0);
    }
    server.expect(200, with_token(Call::get("/contacts"), &tokens)).await;
    assert_eq!(other.refresh(text(&others, "refresh_token")).await.status, 200);
    let revoked = [("refresh_token", "x"), ("token", text(&others, "access_token"))];
    for status in [200, 200, 200, 429] {
        assert_eq!(other.revoke(&revoked).await.status, status);
    }
    server.clock.advance(Duration::from_secs(60));
    assert_eq!(client.refresh(text(&tokens, "refresh_token")).await.status, 200);
}

#[tokio::test]
async fn a_token_is_for_its_resource() {
    let server = with_apps(settings());
    let client = Client::new(&server, false).await;
    let resource = ("resource", "https://api.example.com/api/v2");
    let code = client.authorize(&[resource]).await["code"].clone();
    let wrong = [&exchange_of(&code)[..], &[("resource", "https://api.example.com/api/v1")]].concat();
    assert_refused(&client.token(&wrong).await, 400, "invalid_target");
    let tokens = client.token(&[&exchange_of(&code)[..], &[resource]].concat()).await.json();
    server.expect(200, with_token(Call::absolute(Method::GET, "/api/v2/contacts"), &tokens)).await;
    server.expect(401, with_token(Call::get("/contacts"), &tokens)).await;
    assert_eq!(client.authorize(&[("resource", "https://other.example.com/")]).await["error"], "invalid_target");
}

#[tokio::test]
async fn of_many_refreshes_at_once_one_family_comes() {
    let server = with_apps(settings());
    let client = Client::new(&server, true).await;
    let tokens = client.connect().await;
    let second = server.second_store();
    let node = Api::with_surfaces(std::sync::Arc::clone(&second), settings(), apps());
    let parameters = [("grant_type", "refresh_token"), ("refresh_token", text(&tokens, "refresh_token"))];
    let refreshes = (0..100).map(|n| client.token_at(if n % 2 == 0 { &server.api } else { &node }, &parameters));
    let responses = join_all(refreshes).await;
    assert!(responses.iter().all(|response| response.status == 200 && response.text == responses[0].text));
    assert_eq!(client.grants().await, 1);
    second.close().await;
}

#[tokio::test]
async fn of_two_exchanges_of_a_code_at_once_one_gets_tokens() {
    let server = with_apps(settings());
    let client = Client::new(&server, false).await;
    let code = client.authorize(&[]).await["code"].clone();
    let exchanges = join_all((0..2).map(|_| client.exchange(&code))).await;
    let mut statuses: Vec<u16> = exchanges.iter().map(|response| response.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400]);
}

/// A program of the operator asks what a token is (RFC 7662).
#[tokio::test]
async fn a_platform_key_with_the_scope_asks_what_a_token_is() {
    let server = with_apps(settings());
    let client = Client::new(&server, true).await;
    let tokens = client.connect().await;
    let platform = server.api.for_platform();
    let new_key = async |scope: &str| {
        let input = PlatformKeyCreate { name: None, scopes: vec![scope.parse().unwrap()], expires_in: None };
        client.svc.platform_keys().create(input).await.unwrap().text.reveal().to_owned()
    };
    let (key, other) = (new_key("apps:read").await, new_key("keys:read").await);
    let ask = async |key: &str, token: &str| {
        let call = Call::absolute(Method::POST, "/oauth/introspect").form(query(&[("token", token)]));
        server.send_to(&platform, call.header("authorization", &format!("Bearer {key}"))).await
    };
    let (access, refresh) = (text(&tokens, "access_token"), text(&tokens, "refresh_token"));
    let active = ask(&key, access).await;
    let expires_at = server.store().env().now().as_seconds() + 3600;
    let expected = json!({
        "active": true,
        "scope": "read write",
        "client_id": client.new.app.client_id,
        "username": "owner@link",
        "token_type": "Bearer",
        "exp": expires_at,
        "aud": "https://api.example.com",
        "iss": "https://api.example.com",
        "tenant_id": client.tenant,
    });
    assert_eq!((active.status, active.json()), (200, expected));
    assert_eq!(ask(&key, refresh).await.json()["token_type"], "refresh_token");
    // The API refuses the tokens of a suspended account, so they are not active.
    for (access_of_account, active) in [(DeveloperAccess::Suspended, false), (DeveloperAccess::Approved, true)] {
        let change = client.svc.account(client.tenant).change_settings(move |tenant| {
            tenant.developer_access = access_of_account;
        });
        change.await.unwrap();
        for token in [access, refresh] {
            assert_eq!(ask(&key, token).await.json()["active"], active);
        }
    }
    assert_eq!(client.refresh(refresh).await.status, 200);
    for unknown in [refresh, "svc_oat_1", &access.replace("svc_oat_", "svc_ort_"), "x"] {
        assert_eq!(ask(&key, unknown).await.json(), json!({ "active": false }), "{unknown}");
    }
    assert_eq!(ask(&other, access).await.status, 403);
    assert_eq!(ask(access, access).await.status, 401);
    assert_eq!(ask(&key, "").await.status, 400);
    let public = Call::absolute(Method::POST, "/oauth/introspect").form(query(&[("token", access)]));
    assert_eq!(server.send(public).await.status, 404, "it is not on the public listener");
}
