//! Signing in at an identity provider: a provider in this process, whose ID tokens the tests sign and spoil.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{LOCATION, REFRESH, SET_COOKIE};
use http::{Method, StatusCode};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use svc_core::accounts::sessions::Role;
use svc_core::crypto::sha256;
use svc_core::prelude::*;
use svc_server::dashboard::{Authorities, OidcSettings};
use svc_server::{Builder, DashboardSettings, OauthSettings, Surfaces};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, pki_types::PrivateKeyDer};
use url::Url;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::browser::{Browser, Response, Server, authorize};

const OWN: &str = "http://localhost:8080";

/// An identity provider, and a server whose members sign in there.
struct Provider {
    provider: MockServer,
    server: Server,
    /// Of two responses at one path, the provider gives that with the lower priority: the newer one.
    priority: AtomicU8,
}

/// What the browser gets when it begins to sign in.
struct Begun {
    state: String,
    nonce: String,
    challenge: String,
}

/// Returns a key of the provider, which is never the same for another id.
fn key(id: &str) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&sha256(id.as_bytes())).unwrap()
}

/// Returns an ID token that the key with this id has signed.
fn signed(key_id: &str, claims: &Value) -> String {
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let message = format!("{}.{}", part(&json!({ "alg": "EdDSA", "kid": key_id })), part(claims));
    let signature = key(key_id).sign(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn settings(issuer: &str) -> OidcSettings {
    OidcSettings::new(issuer, "svc", Secret::new("the secret of the client")).unwrap()
}

/// Returns a server whose members sign in at a provider.
async fn server_of(provider: OidcSettings) -> Server {
    let server = Server::start().await;
    let oauth = Some(OauthSettings::new("http://localhost:8080".parse().unwrap()));
    let dashboard = Some(DashboardSettings { provider: Some(provider), oauth, ..DashboardSettings::default() });
    let surfaces = Surfaces { dashboard, ..Surfaces::default() };
    let (api, _) = Builder::new(&server.svc).surfaces(surfaces).build();
    server.serving(api)
}

impl Provider {
    async fn start() -> Self {
        let provider = MockServer::start().await;
        let server = server_of(settings(&provider.uri())).await;
        let fixture = Self { provider, server, priority: AtomicU8::new(u8::MAX) };
        fixture.serve_metadata("first").await;
        let ada = "ada@example.com".parse().unwrap();
        fixture.server.svc.account(fixture.server.tenant).members().add(ada, Role::Developer).await.unwrap();
        fixture
    }

    async fn serve(&self, verb: &str, at: &str, status: u16, body: &Value) {
        self.respond(verb, at, ResponseTemplate::new(status).set_body_json(body)).await;
    }

    async fn respond(&self, verb: &str, at: &str, response: ResponseTemplate) {
        let priority = self.priority.fetch_sub(1, Ordering::Relaxed);
        let mock = Mock::given(method(verb)).and(path(at)).respond_with(response);
        mock.with_priority(priority).mount(&self.provider).await;
    }

    async fn serve_metadata(&self, key_id: &str) {
        self.serve_metadata_with(key_id, json!({})).await;
    }

    /// Serves metadata that has further members.
    async fn serve_metadata_with(&self, key_id: &str, more: Value) {
        let issuer = self.provider.uri();
        let mut metadata = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "userinfo_endpoint": format!("{issuer}/me"),
            "jwks_uri": format!("{issuer}/jwks"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["EdDSA", "HS256", "none"],
        });
        let Value::Object(more) = more else { unreachable!() };
        metadata.as_object_mut().unwrap().extend(more);
        self.serve("GET", "/.well-known/openid-configuration", 200, &metadata).await;
        let public = URL_SAFE_NO_PAD.encode(key(key_id).public_key());
        let key = json!({ "kty": "OKP", "crv": "Ed25519", "kid": key_id, "use": "sig", "x": public });
        self.serve("GET", "/jwks", 200, &json!({ "keys": [key] })).await;
    }

    /// Serves an ID token for the next code.
    async fn serve_token(&self, id_token: &str) {
        let token = json!({ "access_token": "access", "token_type": "Bearer", "expires_in": 60, "id_token": id_token });
        self.serve("POST", "/token", 200, &token).await;
    }

    /// Returns the claims of a valid ID token.
    fn claims(&self, begun: &Begun) -> Value {
        let now = self.server.svc.store().env().now().as_micros() / 1_000_000;
        json!({
            "iss": self.provider.uri(),
            "sub": "248289761001",
            "aud": "svc",
            "iat": now,
            "exp": now + 300,
            "nonce": begun.nonce,
            "email": "Ada@example.com",
            "email_verified": true,
        })
    }

    /// Sends the form of the sign-in page, as a browser does that shows it under `origin`.
    async fn begin(&self, browser: &mut Browser<'_>, origin: &str) -> Begun {
        let page = browser.send(Method::POST, "/oidc/start", "", Some(origin)).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        let url = page.headers[REFRESH].to_str().unwrap().strip_prefix("0; url=").unwrap().parse::<Url>().unwrap();
        assert!(url.as_str().starts_with(&format!("{}/authorize?", self.provider.uri())), "{url}");
        let value = |name: &str| url.query_pairs().find(|(known, _)| known == name).unwrap().1.into_owned();
        assert_eq!(value("redirect_uri"), format!("{origin}/dashboard/oidc/callback"));
        assert_eq!((value("response_type"), value("client_id")), ("code".to_owned(), "svc".to_owned()));
        assert_eq!((value("scope"), value("code_challenge_method")), ("openid email".to_owned(), "S256".to_owned()));
        let cookie = page.headers[SET_COOKIE].to_str().unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Lax; Path=/; Max-Age=600"), "{cookie}");
        browser.cookie = Some(cookie.split(';').next().unwrap().to_owned());
        Begun { state: value("state"), nonce: value("nonce"), challenge: value("code_challenge") }
    }

    async fn answer(&self, browser: &Browser<'_>, query: &str) -> Response {
        let response = browser.send(Method::GET, &format!("/oidc/callback?{query}"), "", None).await;
        let cookies = response.headers.get_all(SET_COOKIE).iter().filter_map(|cookie| cookie.to_str().ok());
        assert_eq!(cookies.filter(|cookie| cookie.contains("svc_oidc=;")).count(), 2, "the attempt is forgotten");
        response
    }

    /// Signs in with an ID token of these claims.
    async fn sign_in(&self, spoil: impl FnOnce(&mut Value)) -> Response {
        let mut browser = self.server.browser();
        let begun = self.begin(&mut browser, OWN).await;
        let mut claims = self.claims(&begun);
        spoil(&mut claims);
        self.serve_token(&signed("first", &claims)).await;
        self.answer(&browser, &format!("code=a-code&state={}", begun.state)).await
    }
}

/// Returns the cookie of the session that a response begins.
fn session_cookie(response: &Response) -> Option<String> {
    let cookies = response.headers.get_all(SET_COOKIE).iter().filter_map(|cookie| cookie.to_str().ok());
    let mut sessions = cookies.filter(|cookie| cookie.contains("svc_session="));
    sessions.next().map(|cookie| cookie.split(';').next().unwrap().to_owned())
}

#[tokio::test]
async fn a_member_signs_in_at_the_provider() {
    let fixture = Provider::start().await;
    let page = fixture.server.browser().get("/sign-in").await.text;
    assert!(page.contains("action=\"/dashboard/oidc/start\"") && page.contains("Sign in with 127.0.0.1"), "{page}");
    let mut browser = fixture.server.browser();
    let begun = fixture.begin(&mut browser, OWN).await;
    fixture.serve_token(&signed("first", &fixture.claims(&begun))).await;
    let answer = fixture.answer(&browser, &format!("code=a-code&state={}", begun.state)).await;
    assert_eq!((answer.status, &answer.headers[LOCATION]), (303, &"/dashboard/".parse().unwrap()));
    browser.cookie = session_cookie(&answer);
    let overview = browser.get("/").await.text;
    assert!(overview.contains("Harbour Plumbing") && overview.contains("ada@example.com"), "{overview}");
    assert_eq!(browser.get("/webhooks/new").await.status, StatusCode::OK);
    assert_eq!(browser.get("/keys/new").await.status, StatusCode::FORBIDDEN);
    let log = fixture.server.svc.account(fixture.server.tenant).audit_log().before(None, 10).await.unwrap();
    let entry = log.iter().find(|entry| entry.object_kind == "session").unwrap();
    assert_eq!((entry.action.as_str(), entry.actor.as_str()), ("create", "dashboard:ada@example.com"));

    let requests = fixture.provider.received_requests().await.unwrap();
    let exchange = requests.iter().find(|request| request.url.path() == "/token").unwrap();
    let fields: Vec<(String, String)> = url::form_urlencoded::parse(&exchange.body).into_owned().collect();
    let field = |name: &str| fields.iter().find(|(known, _)| known == name).unwrap().1.as_str();
    assert_eq!(field("code"), "a-code");
    assert_eq!(field("redirect_uri"), "http://localhost:8080/dashboard/oidc/callback");
    assert_eq!(URL_SAFE_NO_PAD.encode(sha256(field("code_verifier").as_bytes())), begun.challenge);
    assert!(exchange.headers["authorization"].to_str().unwrap().starts_with("Basic "));
}

#[tokio::test]
async fn signing_in_at_the_provider_leads_back_to_the_app_that_asks() {
    let fixture = Provider::start().await;
    let app = fixture.server.app(None, "Route Planner").await;
    let request = authorize(&app, &[]);
    let mut browser = fixture.server.browser();
    let sent = browser.send_to(Method::GET, &request, "", None).await;
    let waiting = sent.headers[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    let begun = fixture.begin(&mut browser, OWN).await;
    fixture.serve_token(&signed("first", &fixture.claims(&begun))).await;
    browser.cookie = Some(format!("{}; {waiting}", browser.cookie.unwrap()));
    let answer = fixture.answer(&browser, &format!("code=a-code&state={}", begun.state)).await;
    assert_eq!((answer.status, answer.headers[LOCATION].to_str().unwrap()), (303, request.as_str()));
    browser.cookie = session_cookie(&answer);
    assert_eq!(browser.send_to(Method::GET, &request, "", None).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_token_that_is_not_of_this_attempt_is_refused() {
    let fixture = Provider::start().await;
    let set = |name: &'static str, value: Value| move |claims: &mut Value| claims[name] = value;
    let past = fixture.server.svc.store().env().now().as_micros() / 1_000_000 - 1;
    for (claim, value) in [
        ("nonce", json!("another")),
        ("aud", json!("another-client")),
        ("aud", json!(["svc", "another-client"])),
        ("iss", json!("https://attacker.example")),
        ("exp", json!(past)),
    ] {
        let refused = fixture.sign_in(set(claim, value.clone())).await;
        assert_eq!(refused.status, StatusCode::BAD_GATEWAY, "{claim}: {value}");
        assert!(refused.text.contains("could not be verified"), "{claim}: {}", refused.text);
        assert_eq!(session_cookie(&refused), None);
    }
}

#[tokio::test]
async fn a_token_needs_a_signature_of_the_provider() {
    let fixture = Provider::start().await;
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    for kind in ["none", "HS256", "another key", "no signature"] {
        let mut browser = fixture.server.browser();
        let begun = fixture.begin(&mut browser, OWN).await;
        let claims = fixture.claims(&begun);
        let token = match kind {
            "none" => format!("{}.{}.", part(&json!({ "alg": "none" })), part(&claims)),
            "HS256" => {
                let message = format!("{}.{}", part(&json!({ "alg": "HS256" })), part(&claims));
                let mac = svc_core::crypto::hmac_sha256(b"the secret of the client", &[message.as_bytes()]);
                format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac))
            }
            "another key" => signed("another", &claims).replace(
                &part(&json!({ "alg": "EdDSA", "kid": "another" })),
                &part(&json!({ "alg": "EdDSA", "kid": "first" })),
            ),
            _ => {
                let token = signed("first", &claims);
                format!("{}.", token.rsplit_once('.').unwrap().0)
            }
        };
        fixture.serve_token(&token).await;
        let refused = fixture.answer(&browser, &format!("code=a-code&state={}", begun.state)).await;
        assert_eq!(refused.status, StatusCode::BAD_GATEWAY, "{kind}: {}", refused.text);
        assert_eq!(session_cookie(&refused), None, "{kind}");
    }
}

#[tokio::test]
async fn an_address_must_be_verified_and_that_of_a_member() {
    let fixture = Provider::start().await;
    for (claim, value, reason) in [
        ("email_verified", json!(false), "no verified email address"),
        ("email_verified", Value::Null, "no verified email address"),
        ("email_verified", json!("false"), "no verified email address"),
        ("email", json!("<script>@example.com"), "no verified email address"),
        ("email", json!(" ada@example.com"), "no verified email address"),
        ("email", json!("eve@example.com"), "eve@example.com is a member of no account."),
    ] {
        let refused = fixture.sign_in(|claims| claims[claim] = value.clone()).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{claim}: {value}");
        assert!(refused.text.contains(reason) && !refused.text.contains("<script>@"), "{claim}: {}", refused.text);
        assert_eq!(session_cookie(&refused), None);
    }
}

#[tokio::test]
async fn a_provider_may_say_by_a_text_that_an_address_is_verified() {
    let fixture = Provider::start().await;
    let signed_in = fixture.sign_in(|claims| claims["email_verified"] = json!("true")).await;
    assert_eq!(signed_in.status, StatusCode::SEE_OTHER, "{}", signed_in.text);
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_refused() {
    let fixture = Provider::start().await;
    for (iss, status) in [("https://attacker.example".to_owned(), 502), (fixture.provider.uri(), 303)] {
        let mut browser = fixture.server.browser();
        let begun = fixture.begin(&mut browser, OWN).await;
        fixture.serve_token(&signed("first", &fixture.claims(&begun))).await;
        let iss: String = url::form_urlencoded::byte_serialize(iss.as_bytes()).collect();
        let response = fixture.answer(&browser, &format!("code=a-code&state={}&iss={iss}", begun.state)).await;
        assert_eq!(response.status, status, "{iss}: {}", response.text);
    }
}

#[tokio::test]
async fn a_flag_of_the_metadata_may_be_a_text_or_null() {
    for (flag, status) in
        [(json!(null), 303), (json!(false), 303), (json!("false"), 303), (json!(true), 502), (json!("true"), 502)]
    {
        let fixture = Provider::start().await;
        let more = json!({ "authorization_response_iss_parameter_supported": flag });
        fixture.serve_metadata_with("first", more).await;
        // The answer does not say who gave it.
        let response = fixture.sign_in(|_| {}).await;
        assert_eq!(response.status, status, "{flag}: {}", response.text);
    }
}

#[tokio::test]
async fn claims_that_the_token_lacks_are_asked_for() {
    let fixture = Provider::start().await;
    let without = |claims: &mut Value| {
        let claims = claims.as_object_mut().unwrap();
        claims.retain(|name, _| !name.starts_with("email"));
    };
    for (subject, verified, status) in [
        ("248289761001", true, StatusCode::SEE_OTHER),
        ("248289761001", false, StatusCode::FORBIDDEN),
        ("another", true, StatusCode::BAD_GATEWAY),
    ] {
        let info = json!({ "sub": subject, "email": "ada@example.com", "email_verified": verified });
        fixture.serve("GET", "/me", 200, &info).await;
        assert_eq!(fixture.sign_in(without).await.status, status, "{subject} {verified}");
    }
}

#[tokio::test]
async fn an_answer_needs_the_attempt_of_this_browser() {
    let fixture = Provider::start().await;
    let (mut browser, mut other) = (fixture.server.browser(), fixture.server.browser());
    let begun = fixture.begin(&mut browser, OWN).await;
    let foreign = fixture.begin(&mut other, OWN).await;
    fixture.serve_token(&signed("first", &fixture.claims(&begun))).await;
    for query in [
        format!("code=a-code&state={}", foreign.state),
        "code=a-code&state=".to_owned(),
        "code=a-code".to_owned(),
        String::new(),
    ] {
        let refused = fixture.answer(&browser, &query).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}: {}", refused.text);
        assert!(refused.text.contains("Begin again"), "{}", refused.text);
    }
    let own = format!("code=a-code&state={}", begun.state);
    assert_eq!(fixture.answer(&browser, &own).await.status, StatusCode::SEE_OTHER);
    // The browser has forgotten the attempt, so the same answer works no more.
    browser.cookie = None;
    assert_eq!(fixture.answer(&browser, &own).await.status, StatusCode::BAD_REQUEST);
    let exchanged = fixture.provider.received_requests().await.unwrap();
    assert_eq!(exchanged.iter().filter(|request| request.url.path() == "/token").count(), 1);
}

#[tokio::test]
async fn an_error_of_the_provider_is_a_page() {
    let fixture = Provider::start().await;
    let mut browser = fixture.server.browser();
    let begun = fixture.begin(&mut browser, OWN).await;
    let denied = format!("error=access_denied&error_description=%3Cscript%3E&state={}", begun.state);
    let denied = fixture.answer(&browser, &denied).await;
    assert_eq!(denied.status, StatusCode::FORBIDDEN);
    assert!(denied.text.contains("(access_denied)") && !denied.text.contains("<script>)"), "{}", denied.text);

    let begun = fixture.begin(&mut browser, OWN).await;
    fixture.serve("POST", "/token", 400, &json!({ "error": "invalid_grant" })).await;
    let refused = fixture.answer(&browser, &format!("code=used&state={}", begun.state)).await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY);
    assert!(refused.text.contains("Try again"), "{}", refused.text);
}

/// Begins to sign in at a provider whose responses cannot be used.
async fn begin_in_vain(server: &Server) {
    let failed = server.browser().send(Method::POST, "/oidc/start", "", Some(OWN)).await;
    assert_eq!(failed.status, StatusCode::BAD_GATEWAY);
    assert!(failed.text.contains("did not respond as expected"), "{}", failed.text);
}

#[tokio::test]
async fn a_provider_that_cannot_be_used_is_a_page() {
    let fixture = Provider::start().await;
    let elsewhere = format!("{}/elsewhere", fixture.provider.uri());
    for response in [
        ResponseTemplate::new(503),
        ResponseTemplate::new(200).set_body_string("<!doctype html>"),
        ResponseTemplate::new(200).set_body_json(json!({ "issuer": "https://attacker.example" })),
        ResponseTemplate::new(200).set_body_bytes(vec![b' '; 4 << 20]),
        ResponseTemplate::new(302).insert_header("location", elsewhere.as_str()),
    ] {
        fixture.respond("GET", "/.well-known/openid-configuration", response).await;
        begin_in_vain(&fixture.server).await;
    }
    let requests = fixture.provider.received_requests().await.unwrap();
    assert!(requests.iter().all(|request| request.url.path() == "/.well-known/openid-configuration"), "{requests:?}");
    fixture.serve_metadata("first").await;
    assert_eq!(fixture.sign_in(|_| {}).await.status, StatusCode::SEE_OTHER, "the failure is not kept");
}

/// Time is paused: it moves when nothing else is left to do.
#[tokio::test(start_paused = true)]
async fn a_provider_that_does_not_respond_is_waited_for_ten_seconds() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = server_of(settings(&format!("http://{}", silent.local_addr().unwrap()))).await;
    let begun = Instant::now();
    begin_in_vain(&server).await;
    assert!(begun.elapsed() <= Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_provider_may_have_a_private_certificate_authority_but_no_url_of_http() {
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).unwrap();
    let tls = rustls::ServerConfig::builder().with_no_client_auth();
    let tls = tls.with_single_cert(vec![certificate.cert.der().clone()], key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let plain = Arc::new(AtomicBool::new(false));
    let metadata = {
        let (issuer, plain) = (issuer.clone(), Arc::clone(&plain));
        move || {
            let keys = if plain.load(Ordering::Relaxed) { issuer.replace("https", "http") } else { issuer.clone() };
            json!({
                "issuer": issuer,
                "authorization_endpoint": issuer,
                "token_endpoint": issuer,
                "jwks_uri": keys,
                "keys": [],
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["EdDSA"],
            })
            .to_string()
        }
    };
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let body = metadata();
            let head = format!("content-type: application/json\r\ncontent-length: {}\r\nconnection: close", body.len());
            let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}").as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });

    begin_in_vain(&server_of(settings(&issuer)).await).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), certificate.cert.pem()).unwrap();
    let trusted = settings(&issuer).authorities(Authorities::read(file.path().to_str().unwrap()).unwrap());
    let server = server_of(trusted.clone()).await;
    let page = server.browser().send(Method::POST, "/oidc/start", "", Some(OWN)).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    plain.store(true, Ordering::Relaxed);
    begin_in_vain(&server_of(trusted).await).await;
}

#[test]
fn a_file_of_authorities_has_certificates() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(Authorities::read(path).unwrap_err(), "there is no certificate in this file");
    std::fs::write(path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    assert!(Authorities::read(path).is_err());
    assert!(Authorities::read(&format!("{path}.missing")).is_err());
}

#[tokio::test]
async fn metadata_is_kept_and_fetched_anew_for_an_unknown_key() {
    let fixture = Provider::start().await;
    let fetched = async || {
        let requests = fixture.provider.received_requests().await.unwrap();
        requests.iter().filter(|request| request.url.path() == "/jwks").count()
    };
    for _ in 0..3 {
        assert_eq!(fixture.sign_in(|_| {}).await.status, StatusCode::SEE_OTHER);
    }
    assert_eq!(fetched().await, 1);
    fixture.serve_metadata("second").await;
    let mut browser = fixture.server.browser();
    for (waits, status, fetches) in
        [(Duration::from_secs(59), 502, 1), (Duration::from_secs(1), 303, 2), (Duration::from_secs(60), 303, 2)]
    {
        fixture.server.clock.advance(waits);
        let begun = fixture.begin(&mut browser, OWN).await;
        fixture.serve_token(&signed("second", &fixture.claims(&begun))).await;
        let answer = fixture.answer(&browser, &format!("code=a-code&state={}", begun.state)).await;
        assert_eq!((answer.status, fetched().await), (status, fetches), "{}", answer.text);
    }
    fixture.server.clock.advance(Duration::from_secs(60 * 60));
    fixture.begin(&mut browser, OWN).await;
    assert_eq!(fetched().await, 3, "an hour later");
}

#[tokio::test]
async fn cookies_over_tls_are_bound_to_the_host() {
    let fixture = Provider::start().await;
    let mut browser = fixture.server.browser();
    let request = http::Request::post("/dashboard/oidc/start")
        .header("host", "inner")
        .header("origin", "https://svc.example.com")
        .header("sec-fetch-site", "same-origin");
    let page = fixture.server.send(request.body(http_body_util::Full::default()).unwrap()).await;
    let cookie = page.headers[SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("__Host-svc_oidc=") && cookie.contains("; Secure; HttpOnly; SameSite=Lax;"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let url = page.headers[REFRESH].to_str().unwrap().strip_prefix("0; url=").unwrap().parse::<Url>().unwrap();
    let value = |name: &str| url.query_pairs().find(|(known, _)| known == name).unwrap().1.into_owned();
    assert_eq!(value("redirect_uri"), "https://svc.example.com/dashboard/oidc/callback");
    let begun = Begun { state: value("state"), nonce: value("nonce"), challenge: String::new() };
    fixture.serve_token(&signed("first", &fixture.claims(&begun))).await;
    let query = format!("code=a-code&state={}", begun.state);
    // A neighbour below the same domain can set a cookie without the prefix.
    browser.cookie = cookie.strip_prefix("__Host-").map(str::to_owned);
    assert_eq!(fixture.answer(&browser, &query).await.status, StatusCode::BAD_REQUEST);
    browser.cookie = Some(cookie.to_owned());
    let answer = fixture.answer(&browser, &query).await;
    assert!(session_cookie(&answer).unwrap().starts_with("__Host-svc_session="));
}

#[tokio::test]
async fn attempts_at_the_provider_are_limited() {
    let fixture = Provider::start().await;
    for attempt in 0..60 {
        let answer = fixture.answer(&fixture.server.browser(), "code=x&state=y").await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{attempt}");
    }
    for (verb, at) in [(Method::GET, "/oidc/callback?code=x&state=y"), (Method::POST, "/oidc/start")] {
        let limited = fixture.server.browser().send(verb, at, "", Some(OWN)).await;
        assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS, "{at}");
    }
}

#[tokio::test]
async fn without_a_provider_there_is_no_such_page() {
    let server = Server::start().await;
    let browser = server.browser();
    assert!(!browser.get("/sign-in").await.text.contains("/oidc/start"));
    assert_eq!(browser.send(Method::POST, "/oidc/start", "", Some(OWN)).await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.get("/oidc/callback?code=x&state=y").await.status, StatusCode::NOT_FOUND);
}

#[test]
fn an_issuer_is_a_url_of_https() {
    let settings = |issuer| OidcSettings::new(issuer, "svc", Secret::new("secret"));
    for good in
        ["https://id.example.com", "https://id.example.com/realms/svc", "http://localhost:3000", "http://[::1]:3000/"]
    {
        assert!(settings(good).is_ok(), "{good}");
    }
    for bad in ["", "id.example.com", "http://id.example.com", "https://id.example.com/?a=1", "ftp://id.example.com"] {
        assert!(settings(bad).is_err(), "{bad}");
    }
}
