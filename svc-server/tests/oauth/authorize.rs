//! Every parameter of `/oauth/authorize`.

use http::header::LOCATION;
use http::{Method, StatusCode};
use svc_core::accounts::apps::{AppCreate, AppUpdate};

use super::harness::Change::{None as Unchanged, Repeated, With, Without};
use super::harness::{AppResponse as _, CALLBACK, Change, ISSUER, STATE, Server, pairs, target, value};

/// What a request leads to.
enum Outcome {
    /// The page of consent.
    Asked,
    /// A page that says why, and sends the browser nowhere.
    Page(&'static str),
    /// A return to the app with this error, its description, and the state that it sent.
    Return(&'static str, &'static str),
}

use Outcome::{Asked, Page, Return};

const REPEATED: Outcome = Return("invalid_request", "A parameter is repeated.");
const CHALLENGE: Outcome =
    Return("invalid_request", "code_challenge must be the base64url of 32 bytes, which has 43 characters.");
const SCOPE: Outcome = Return("invalid_scope", "scope has read, write and offline_access, and no others.");
const TARGET: Outcome = Return("invalid_target", "resource must be the URL of an API of this service.");
const PROMPT: Outcome = Return("invalid_request", "prompt must be none alone, or consent, login and select_account.");
const UNREGISTERED: Outcome = Page("The redirect_uri of the link is none of those that the app has registered.");

#[tokio::test]
async fn a_request_is_put_to_the_owner_or_refused_by_the_first_parameter_that_is_wrong() {
    let server = Server::start().await;
    let long = "a".repeat(4096);
    let longest = "a".repeat(2048);
    for (change, outcome) in [
        (Unchanged, Asked),
        // Without knowing the app and where it is, the browser is sent nowhere.
        (Without("client_id"), Page("The link of the app has no client_id, or more than one.")),
        (With("client_id", ""), Page("The link of the app has no client_id, or more than one.")),
        (Repeated("client_id"), Page("The link of the app has no client_id, or more than one.")),
        (With("client_id", "svcapp_unknown"), Page("There is no app with this client_id.")),
        (With("client_id", "svcapp_' OR 1=1"), Page("There is no app with this client_id.")),
        (With("client_id", &long), Page("There is no app with this client_id.")),
        (Without("redirect_uri"), Asked),
        (With("redirect_uri", ""), Asked),
        (Repeated("redirect_uri"), Page("The link of the app has more than one redirect_uri.")),
        (With("redirect_uri", "https://evil.example/callback"), UNREGISTERED),
        (With("redirect_uri", "https://app.example.com/callback/"), UNREGISTERED),
        (With("redirect_uri", "https://app.example.com/callback?a=1"), UNREGISTERED),
        (With("redirect_uri", "https://app.example.com/callback#a"), UNREGISTERED),
        (With("redirect_uri", "https://app.example.com/callback/../evil"), UNREGISTERED),
        (With("redirect_uri", "https://app.example.com@evil.example/callback"), UNREGISTERED),
        (With("redirect_uri", "https://app.example.com\\.evil.example/callback"), UNREGISTERED),
        (With("redirect_uri", "HTTPS://app.example.com/callback"), UNREGISTERED),
        (With("redirect_uri", "https://app.example.com:443/callback"), UNREGISTERED),
        (With("redirect_uri", "http://app.example.com/callback"), UNREGISTERED),
        (With("redirect_uri", "//app.example.com/callback"), UNREGISTERED),
        (With("redirect_uri", "javascript:alert(1)"), UNREGISTERED),
        (With("redirect_uri", &long), UNREGISTERED),
        // From here on the app is told.
        (Without("response_type"), Return("invalid_request", "response_type is missing; it must be code.")),
        (With("response_type", ""), Return("invalid_request", "response_type is missing; it must be code.")),
        (Repeated("response_type"), REPEATED),
        (With("response_type", "token"), Return("unsupported_response_type", "response_type must be code.")),
        (With("response_type", "code id_token"), Return("unsupported_response_type", "response_type must be code.")),
        (With("response_type", "CODE"), Return("unsupported_response_type", "response_type must be code.")),
        (With("response_mode", "query"), Asked),
        (With("response_mode", "fragment"), Return("invalid_request", "response_mode must be query, or left out.")),
        (With("response_mode", "form_post"), Return("invalid_request", "response_mode must be query, or left out.")),
        (
            Without("code_challenge"),
            Return("invalid_request", "code_challenge is missing; PKCE is required (RFC 7636)."),
        ),
        (Repeated("code_challenge"), REPEATED),
        (With("code_challenge", "short"), CHALLENGE),
        (With("code_challenge", &longest), CHALLENGE),
        (With("code_challenge", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), CHALLENGE),
        (With("code_challenge", "+/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), CHALLENGE),
        (Without("code_challenge_method"), Return("invalid_request", "code_challenge_method must be S256.")),
        (With("code_challenge_method", "plain"), Return("invalid_request", "code_challenge_method must be S256.")),
        (With("code_challenge_method", "s256"), Return("invalid_request", "code_challenge_method must be S256.")),
        (Repeated("code_challenge_method"), REPEATED),
        (Without("scope"), Asked),
        (With("scope", ""), Asked),
        (With("scope", "write"), Asked),
        (With("scope", "  write   read offline_access read "), Asked),
        (With("scope", "admin"), SCOPE),
        (With("scope", "read write admin"), SCOPE),
        (With("scope", "READ"), SCOPE),
        (With("scope", "read,write"), SCOPE),
        (With("scope", "read\twrite"), SCOPE),
        (With("scope", &long), SCOPE),
        (Repeated("scope"), REPEATED),
        (With("resource", "https://api.example.com"), Asked),
        (With("resource", "https://api.example.com/"), Asked),
        (With("resource", "https://api.example.com/api/v1"), Asked),
        (With("resource", "https://api.example.com/api/v2/"), Asked),
        (With("resource", "https://api.example.com/api/v3"), TARGET),
        (With("resource", "https://api.example.com.evil.example/api/v1"), TARGET),
        (With("resource", "https://api.example.com/api/v1?a=1"), TARGET),
        (With("resource", "https://api.example.com/api/v1#a"), TARGET),
        (With("resource", "https://api.example.com//api/v1"), TARGET),
        (With("resource", "/api/v1"), TARGET),
        (With("resource", "http://api.example.com/api/v1"), TARGET),
        (With("resource", &long), TARGET),
        (With("prompt", "consent"), Asked),
        (With("prompt", "login"), Asked),
        (With("prompt", "select_account"), Asked),
        (With("prompt", "none"), Return("consent_required", "An owner has to be asked.")),
        (With("prompt", "login consent"), Asked),
        (With("prompt", "consent select_account"), Asked),
        (With("prompt", "select_account  login consent"), Asked),
        (With("prompt", "none consent"), PROMPT),
        (With("prompt", "login none"), PROMPT),
        (With("prompt", "none none"), PROMPT),
        (With("prompt", "create"), PROMPT),
        (With("prompt", "consent create"), PROMPT),
        (With("prompt", "Consent"), PROMPT),
        // What is not known is ignored (RFC 6749 §3.1).
        (With("nonce", &longest), Asked),
        (With("request", "eyJhbGciOiJub25lIn0.e30."), Asked),
        (With("request_uri", "https://evil.example/request"), Asked),
        (With("code", "svc_oac_x"), Asked),
    ] {
        check(&server, change, &outcome, STATE).await;
    }
    // Without consent nothing is granted.
    assert!(server.svc.account(server.tenant).grants().list().await.unwrap().is_empty());
}

async fn check(server: &Server, change: Change<'_>, outcome: &Outcome, state: &str) {
    let response = server.authorize(&change.of(&server.request(&server.confidential))).await;
    assert_eq!(response.header("cache-control"), Some("no-store"), "{change:?}");
    assert_eq!(response.header("referrer-policy"), Some("same-origin"), "{change:?}");
    match outcome {
        Asked => {
            assert_eq!(response.status, StatusCode::OK, "{change:?}: {}", response.text);
            let names = ["Route Planner", "It asks for access to <b>Harbour Plumbing</b>"];
            assert!(names.iter().all(|name| response.text.contains(name)), "{change:?}: {}", response.text);
        }
        Page(reason) => {
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{change:?}");
            assert!(response.text.contains(reason), "{change:?}: {}", response.text);
            assert!(!response.headers.contains_key(LOCATION), "{change:?}");
        }
        Return(error, description) => {
            let mut expected = pairs(&[("error", error), ("error_description", description)]);
            expected.extend(Some(("state".to_owned(), state.to_owned())).filter(|_| !state.is_empty()));
            expected.extend(pairs(&[("iss", ISSUER)]));
            assert_eq!(response.returned(), expected, "{change:?}");
        }
    }
}

#[tokio::test]
async fn a_state_comes_back_as_it_was_sent() {
    let server = Server::start().await;
    let mut deny = server.request(&server.confidential);
    deny.extend(pairs(&[("prompt", "none")]));
    let longest = "é".repeat(1024);
    for state in [
        "x",
        "a b",
        "a+b",
        "%0d%0aSet-Cookie: a=b",
        "\r\nSet-Cookie: a=b",
        "\0",
        "\"><script>",
        "&error=",
        "#",
        &longest,
    ] {
        let returned = server.authorize(&With("state", state).of(&deny)).await;
        assert!(!returned.headers.contains_key("set-cookie"), "{state}");
        let expected = [("error", "consent_required"), ("error_description", "An owner has to be asked.")];
        let expected = [&expected[..], &[("state", state), ("iss", ISSUER)]].concat();
        assert_eq!(returned.returned(), pairs(&expected));
    }
    let too_long = Return("invalid_request", "state has at most 2048 bytes.");
    let longer = format!("{longest}a");
    check(&server, With("state", &longer), &too_long, &longer).await;
    check(&server, Repeated("state"), &REPEATED, "").await;
    check(&server, Without("state"), &Asked, "").await;
    check(&server, With("state", ""), &Asked, "").await;
}

/// Whatever is asked for can be kept in the browser while its owner signs in.
#[tokio::test]
async fn what_is_too_long_to_survive_a_sign_in_is_refused_at_once() {
    let server = Server::start().await;
    let uri = format!("{CALLBACK}?a={}", "b".repeat(1000));
    let uris = vec![uri.parse().unwrap()];
    let app = server.svc.apps().create(AppCreate::new("Long".parse().unwrap(), uris)).await.unwrap();
    let state = "\"".repeat(1700);
    let mut request = With("redirect_uri", &uri).of(&server.request(&app));
    assert_eq!(server.authorize(&request).await.status, StatusCode::OK);
    request = With("state", &state).of(&request);
    for cookies in [true, false] {
        let refused = match cookies {
            true => server.authorize(&request).await,
            false => server.send(Method::GET, &target(&request), &[], "").await,
        };
        assert_eq!(value(&refused.returned(), "error"), "invalid_request");
        assert_eq!(value(&refused.returned(), "state"), state);
        assert!(value(&refused.returned(), "error_description").contains("at most 2800 bytes"));
    }
}

#[tokio::test]
async fn an_app_asks_for_no_more_than_it_was_registered_for() {
    let server = Server::start().await;
    let mut request = server.request(&server.reader);
    assert_eq!(server.authorize(&request).await.status, StatusCode::OK);
    request = With("scope", "read write").of(&request);
    let refused = [("error", "invalid_scope"), ("error_description", "The app may not ask for the scope write.")];
    let refused = [&refused[..], &[("state", STATE), ("iss", ISSUER)]].concat();
    assert_eq!(server.authorize(&request).await.returned(), pairs(&refused));
}

#[tokio::test]
async fn an_app_that_is_disabled_or_has_several_redirect_uris_must_name_what_is_valid() {
    let server = Server::start().await;
    let uris = vec![CALLBACK.parse().unwrap(), "https://app.example.com/other".parse().unwrap()];
    let app = server.svc.apps().create(AppCreate::new("Several".parse().unwrap(), uris)).await.unwrap();
    let request = server.request(&app);
    assert_eq!(server.authorize(&request).await.status, StatusCode::OK);
    let unnamed = server.authorize(&Without("redirect_uri").of(&request)).await;
    assert_eq!(unnamed.status, StatusCode::BAD_REQUEST);
    let disable = AppUpdate { disabled: Some(true), ..AppUpdate::default() };
    server.svc.apps().update(app.app.id, disable).await.unwrap();
    let disabled = server.authorize(&request).await;
    assert!(disabled.status == StatusCode::BAD_REQUEST && disabled.text.contains("The app is disabled."));
}

#[tokio::test]
async fn without_a_session_the_browser_signs_in_first_or_the_app_is_told() {
    let server = Server::start().await;
    let request = server.request(&server.confidential);
    let first = server.send(Method::GET, &target(&request), &[], "").await;
    assert_eq!((first.status, first.header("location")), (303, Some("/dashboard/sign-in")));
    let silent = server.send(Method::GET, &target(&With("prompt", "none").of(&request)), &[], "").await;
    let expected = [("error", "login_required"), ("error_description", "Nobody is signed in.")];
    assert_eq!(silent.returned(), pairs(&[&expected[..], &[("state", STATE), ("iss", ISSUER)]].concat()));
}

#[tokio::test]
async fn a_request_that_is_too_long_or_has_another_method_is_refused() {
    let server = Server::start().await;
    let request = With("nonce", &"a".repeat(9000)).of(&server.request(&server.confidential));
    assert_eq!(server.authorize(&request).await.status, StatusCode::URI_TOO_LONG);
    for method in [Method::PUT, Method::DELETE, Method::PATCH] {
        let response = server.send(method.clone(), &target(&server.request(&server.confidential)), &[], "").await;
        assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
}
