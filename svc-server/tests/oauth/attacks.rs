//! What attackers try, as RFC 6819 and RFC 9700 list it.

use std::time::Duration;

use http::header::{COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use http::{Method, StatusCode};
use serde_json::json;
use svc_core::accounts::apps::AppCreate;
use svc_core::accounts::sessions::Role;

use super::harness::Change::{With, Without};
use super::harness::{AppResponse as _, CALLBACK, ISSUER, Server, VERIFIER, basic, exchange, pairs, target, value};

const INVALID_GRANT: (u16, &str) = (400, "invalid_grant");

fn is(found: &(u16, String), expected: (u16, &str)) -> bool {
    (found.0, found.1.as_str()) == expected
}

#[tokio::test]
async fn mix_up_the_app_learns_in_each_response_who_answers() {
    let server = Server::start().await;
    let metadata = server.send(Method::GET, "/.well-known/oauth-authorization-server", &[], "").await.json();
    assert_eq!(metadata["issuer"], ISSUER);
    assert_eq!(metadata["authorization_response_iss_parameter_supported"], true);
    let page = server.authorize(&server.request(&server.confidential)).await;
    for (decision, result) in [("allow", "code"), ("deny", "error")] {
        let returned = server.decide(&page, decision).await.returned();
        assert_eq!((value(&returned, "iss"), value(&returned, result).is_empty()), (ISSUER, false));
    }
}

/// The issuer is what the operator has set, whatever a request says of the host.
#[tokio::test]
async fn mix_up_no_header_changes_the_issuer() {
    let server = Server::start().await;
    let plain = server.send(Method::GET, "/.well-known/oauth-authorization-server", &[], "").await.json();
    for header in ["x-forwarded-host", "x-forwarded-proto", "forwarded", "x-original-host"] {
        let headers = [(header, "evil.example")];
        let response = server.send(Method::GET, "/.well-known/oauth-authorization-server", &headers, "").await;
        assert_eq!(response.json(), plain, "{header}");
    }
}

#[tokio::test]
async fn csrf_a_form_of_another_site_grants_nothing() {
    let server = Server::start().await;
    let page = server.authorize(&server.request(&server.confidential)).await;
    let own = server.sign_in(Role::Owner).await;
    let (cookie, origin) = ((COOKIE.as_str(), own.as_str()), (ORIGIN.as_str(), ISSUER));
    // The token of the page belongs to another session than the cookie.
    let refused = server.submit(&page, &[cookie, origin], "allow").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    let page = server.send(Method::GET, &target(&server.request(&server.confidential)), &[cookie], "").await;
    for headers in [
        vec![cookie],
        vec![cookie, (ORIGIN.as_str(), "https://evil.example")],
        vec![cookie, (ORIGIN.as_str(), "null")],
        vec![cookie, ("sec-fetch-site", "cross-site")],
        vec![cookie, origin, ("sec-fetch-site", "same-site")],
    ] {
        let refused = server.submit(&page, &headers, "allow").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{headers:?}");
    }
    let unsigned = target(&server.request(&server.confidential));
    let unsigned = server.send(Method::POST, &unsigned, &[cookie, origin], "decision=allow").await;
    assert_eq!(unsigned.status, StatusCode::FORBIDDEN);
    // A browser in which nobody is signed in is asked to, and its form is forgotten.
    let anonymous = server.submit(&page, &[origin], "allow").await;
    assert_eq!((anonymous.status, anonymous.header("location")), (303, Some("/dashboard/sign-in")));
    assert!(server.svc.account(server.tenant).grants().list().await.unwrap().is_empty());
    // Where the same form of the same site is enough.
    let returned = server.submit(&page, &[cookie, origin], "allow").await.returned();
    assert!(value(&returned, "code").starts_with("svc_oac_"));
}

#[tokio::test]
async fn nobody_but_an_owner_grants_anything() {
    let server = Server::start().await;
    for role in [Role::Developer, Role::Viewer] {
        let cookie = server.sign_in(role).await;
        let headers = [(COOKIE.as_str(), cookie.as_str()), (ORIGIN.as_str(), ISSUER)];
        let page = server.send(Method::GET, &target(&server.request(&server.confidential)), &headers[..1], "").await;
        assert!(page.text.contains("Only an owner can connect an app"), "{role:?}: {}", page.text);
        let refused = server.submit(&page, &headers, "allow").await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{role:?}");
        assert!(!refused.headers.contains_key(LOCATION), "{role:?}");
    }
    assert!(server.svc.account(server.tenant).grants().list().await.unwrap().is_empty());
}

#[tokio::test]
async fn code_injection_a_code_is_worth_nothing_to_another_app_or_verifier() {
    let server = Server::start().await;
    let code = server.code(&server.request(&server.confidential)).await;
    for thief in [&server.reader, &server.public] {
        let stolen = server.post("/oauth/token", &basic(thief), &exchange(&code)).await.error();
        assert!(is(&stolen, INVALID_GRANT), "{stolen:?}");
    }
    // The code of a public app needs the verifier, which never was in a browser.
    let public = server.code(&server.request(&server.public)).await;
    let other = VERIFIER.replace("forty", "fifty");
    let guessed = With("code_verifier", &other).of(&exchange(&public));
    assert!(is(&server.post("/oauth/token", &basic(&server.public), &guessed).await.error(), INVALID_GRANT));
    // The apps themselves still get their tokens.
    for (app, code) in [(&server.confidential, &code), (&server.public, &public)] {
        assert_eq!(server.post("/oauth/token", &basic(app), &exchange(code)).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_code_that_comes_again_ends_what_it_gave_and_nothing_else() {
    let server = Server::start().await;
    let app = &server.confidential;
    let kept = server.tokens(app).await;
    let code = server.code(&server.request(app)).await;
    let given = server.post("/oauth/token", &basic(app), &exchange(&code)).await.json();
    // An app that is not the one of the code cannot end anything with it.
    assert!(is(&server.post("/oauth/token", &basic(&server.reader), &exchange(&code)).await.error(), INVALID_GRANT));
    assert_eq!(server.call(&given).await.status, StatusCode::OK);
    assert!(is(&server.post("/oauth/token", &basic(app), &exchange(&code)).await.error(), INVALID_GRANT));
    assert_eq!(server.call(&given).await.status, StatusCode::UNAUTHORIZED);
    let refresh =
        pairs(&[("grant_type", "refresh_token"), ("refresh_token", given["refresh_token"].as_str().unwrap())]);
    assert!(is(&server.post("/oauth/token", &basic(app), &refresh).await.error(), INVALID_GRANT));
    assert_eq!(server.call(&kept).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_code_expires_after_a_minute() {
    let server = Server::start().await;
    for (seconds, status) in [(59, 200), (60, 400)] {
        let code = server.code(&server.request(&server.public)).await;
        server.clock.advance(Duration::from_secs(seconds));
        let response = server.post("/oauth/token", &basic(&server.public), &exchange(&code)).await;
        assert_eq!(response.status, status, "{seconds}: {}", response.text);
    }
}

#[tokio::test]
async fn pkce_cannot_be_left_out_or_made_plain() {
    let server = Server::start().await;
    let request = server.request(&server.public);
    for change in [Without("code_challenge"), With("code_challenge_method", "plain"), Without("code_challenge_method")]
    {
        let returned = server.authorize(&change.of(&request)).await.returned();
        assert_eq!(value(&returned, "error"), "invalid_request", "{change:?}");
    }
    // Whoever has seen the request knows the challenge; it is not taken for the verifier.
    let code = server.code(&request).await;
    let plain = With("code_verifier", value(&request, "code_challenge")).of(&exchange(&code));
    assert!(is(&server.post("/oauth/token", &basic(&server.public), &plain).await.error(), INVALID_GRANT));
    let without = Without("code_verifier").of(&exchange(&code));
    assert!(is(&server.post("/oauth/token", &basic(&server.public), &without).await.error(), (400, "invalid_request")));
}

#[tokio::test]
async fn a_token_of_one_resource_is_refused_at_another() {
    let server = Server::start().await;
    let app = &server.confidential;
    let one = With("resource", "https://api.example.com/api/v1").of(&server.request(app));
    let code = server.code(&one).await;
    let more = With("resource", "https://api.example.com/api/v2").of(&exchange(&code));
    assert!(is(&server.post("/oauth/token", &basic(app), &more).await.error(), (400, "invalid_target")));
    let tokens = server.post("/oauth/token", &basic(app), &exchange(&code)).await.json();
    assert_eq!(server.call_at("/api/v1/contacts", &tokens).await.status, StatusCode::OK);
    let refused = server.call_at("/api/v2/contacts", &tokens).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        refused.header("www-authenticate"),
        Some(
            "Bearer error=\"invalid_token\", \
             resource_metadata=\"https://api.example.com/.well-known/oauth-protected-resource/api/v2\""
        )
    );
    let refresh = pairs(&[
        ("grant_type", "refresh_token"),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
        ("resource", "https://api.example.com/api/v2"),
    ]);
    assert!(is(&server.post("/oauth/token", &basic(app), &refresh).await.error(), (400, "invalid_target")));
}

#[tokio::test]
async fn nothing_but_an_access_token_in_the_header_opens_the_api() {
    let server = Server::start().await;
    let app = &server.confidential;
    let code = server.code(&server.request(app)).await;
    let tokens = server.post("/oauth/token", &basic(app), &exchange(&code)).await.json();
    let secret = app.secret.as_ref().unwrap().reveal();
    for wrong in [code.as_str(), tokens["refresh_token"].as_str().unwrap(), secret, &app.app.client_id] {
        let response = server.call(&json!({ "access_token": wrong })).await;
        assert_eq!(response.status, StatusCode::UNAUTHORIZED, "{wrong}");
        assert!(response.header("www-authenticate").unwrap().contains("resource_metadata=\""), "{wrong}");
    }
    let access = tokens["access_token"].as_str().unwrap();
    let query = server.send(Method::GET, &format!("/api/v1/contacts?access_token={access}"), &[], "").await;
    assert_eq!(query.status, StatusCode::UNAUTHORIZED);
    let cookie = format!("svc_session={access}");
    let page = server.send(Method::GET, "/dashboard/contacts", &[(COOKIE.as_str(), &cookie)], "").await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn clickjacking_no_page_of_the_endpoint_is_shown_in_a_frame() {
    let server = Server::start().await;
    let right = server.request(&server.confidential);
    for parameters in
        [right.clone(), Without("client_id").of(&right), With("redirect_uri", "https://evil.example").of(&right)]
    {
        let page = server.authorize(&parameters).await;
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{policy}");
        assert!(!policy.contains("host.example.com"), "{policy}");
    }
}

#[tokio::test]
async fn an_app_and_a_request_write_nothing_into_the_page() {
    let server = Server::start().await;
    let uris = vec![CALLBACK.parse().unwrap()];
    let name = "<script>alert(1)</script>\" onclick=\"x";
    let app = server.svc.apps().create(AppCreate::new(name.parse().unwrap(), uris)).await.unwrap();
    let state = "\"><script>alert(2)</script>";
    let page = server.authorize(&With("state", state).of(&server.request(&app))).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot; onclick=&quot;x"), "{}", page.text);
    assert!(!page.text.contains("<script>alert"), "{}", page.text);
    let returned = server.decide(&page, "deny").await.returned();
    assert_eq!(value(&returned, "state"), state);
}

/// Over plain HTTP somebody else on the way may set a cookie.
#[tokio::test]
async fn after_signing_in_a_forged_cookie_leads_to_this_service_alone() {
    use base64::Engine as _;
    let server = Server::start().await;
    for query in ["https://evil.example", "//evil.example", "\r\nLocation: https://evil.example", "a#b", "client_id=x"]
    {
        let link =
            server.svc.dashboard().create_link(svc_core::prelude::DashboardLinkCreate::to(server.tenant, Role::Owner));
        let form = format!("token={}", link.await.unwrap().token.reveal());
        let kept = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(query);
        let headers = [(ORIGIN.as_str(), ISSUER), (COOKIE.as_str(), &*format!("svc_authorize={kept}"))];
        let response = server.send(Method::POST, "/dashboard/sign-in", &headers, &form).await;
        assert_eq!(response.status, StatusCode::SEE_OTHER);
        let location = response.header("location").unwrap();
        assert!(location.starts_with("/oauth/authorize?") || location == "/dashboard/", "{query}: {location}");
        assert!(response.headers.get_all(LOCATION).iter().count() == 1 && response.headers.contains_key(SET_COOKIE));
    }
}

#[tokio::test]
async fn a_token_that_is_revoked_is_refused_from_the_next_request_on() {
    let server = Server::start().await;
    let tokens = server.tokens(&server.public).await;
    assert_eq!(server.call(&tokens).await.status, StatusCode::OK);
    let grants = server.svc.account(server.tenant).grants();
    let (grant, _) = grants.list().await.unwrap().remove(0);
    grants.revoke(grant.id).await.unwrap();
    let refused = server.call(&tokens).await;
    assert_eq!((refused.status, refused.json()["code"].as_str()), (401, Some("invalid_token")));
}
