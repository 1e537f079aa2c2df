//! The tokens of an app: when they are refreshed, stored and sent.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use svc_client::prelude::*;
use svc_client::{TokenSource, Tokens};
use wiremock::{MockServer, Request, Respond, ResponseTemplate};

use crate::fixture::{ID, header, ok, problem, requests, serve};

/// What the app has stored, each as its access token and its refresh token.
#[derive(Clone, Default)]
struct Stored(Arc<Mutex<Vec<String>>>);

impl Stored {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn text(tokens: &Tokens) -> String {
    format!("{} {}", tokens.access_token.reveal(), tokens.refresh_token.reveal())
}

fn tokens() -> Tokens {
    Tokens { access_token: Secret::new("svc_oat_1"), refresh_token: Secret::new("svc_ort_1") }
}

/// Returns a source that notes what it stores.
fn source() -> (TokenSource, Stored) {
    let stored = Stored::default();
    let noted = stored.clone();
    let source = TokenSource::new("svcapp_a", tokens(), move |tokens| {
        noted.0.lock().unwrap().push(text(&tokens));
        std::future::ready(Ok::<_, std::io::Error>(()))
    });
    (source, stored)
}

fn client(server: &MockServer, source: TokenSource) -> Client {
    let builder = Client::builder_with_tokens(&format!("{}/crm", server.uri()), source);
    builder.sleep(|_| Box::pin(std::future::ready(()))).build().unwrap()
}

fn given(access: &str, refresh: Option<&str>) -> ResponseTemplate {
    let mut body = json!({ "access_token": access, "token_type": "Bearer", "expires_in": 3600, "scope": "read write" });
    if let Some(refresh) = refresh {
        body["refresh_token"] = Value::from(refresh);
    }
    ResponseTemplate::new(200).set_body_json(body)
}

/// Returns each request as its method, its path, its credential and what a form has.
fn sent(request: &Request) -> String {
    let credential = header(request, "authorization").unwrap_or("-");
    let form = header(request, "content-type").is_some_and(|kind| kind == "application/x-www-form-urlencoded");
    let body = if form { String::from_utf8(request.body.clone()).unwrap() } else { String::new() };
    format!("{} {} {credential} {body}", request.method, request.url.path()).trim_end().to_owned()
}

async fn all_sent(server: &MockServer) -> Vec<String> {
    requests(server).await.iter().map(sent).collect()
}

#[tokio::test]
async fn a_refused_token_is_refreshed_stored_and_the_request_sent_once_more() {
    let server =
        serve(vec![problem(401, "invalid_token"), given("svc_oat_2", Some("svc_ort_2")), ok(201), ok(200)]).await;
    let (source, stored) = source();
    let client = client(&server, source);
    client.contacts().create(&ContactCreate::new("ada@example.com".parse().unwrap())).await.unwrap();
    client.contacts().get(ID.parse().unwrap()).await.unwrap();
    let contact = format!("GET /crm/api/v1/contacts/{ID} Bearer svc_oat_2");
    assert_eq!(
        all_sent(&server).await,
        [
            "POST /crm/api/v1/contacts Bearer svc_oat_1",
            "POST /crm/oauth/token - grant_type=refresh_token&refresh_token=svc_ort_1&client_id=svcapp_a",
            "POST /crm/api/v1/contacts Bearer svc_oat_2",
            &contact,
        ]
    );
    assert_eq!(stored.all(), ["svc_oat_2 svc_ort_2"]);
    // Both attempts create one record.
    let requests = requests(&server).await;
    assert_eq!(header(&requests[0], "idempotency-key"), header(&requests[2], "idempotency-key"));
    assert!(header(&requests[0], "idempotency-key").is_some());
}

#[tokio::test]
async fn a_confidential_app_sends_its_secret_and_keeps_its_refresh_token() {
    let responses = [problem(401, "invalid_token"), given("svc_oat_2", None), ok(200)];
    let server = serve([&responses[..], &responses[..]].concat()).await;
    let (source, stored) = source();
    let client = client(&server, source.client_secret("svc_ocs_s"));
    for _ in 0..2 {
        client.contacts().get(ID.parse().unwrap()).await.unwrap();
    }
    let form = "grant_type=refresh_token&refresh_token=svc_ort_1&client_id=svcapp_a&client_secret=svc_ocs_s";
    let sent = all_sent(&server).await;
    assert_eq!((sent[1].as_str(), &sent[1]), (format!("POST /crm/oauth/token - {form}").as_str(), &sent[4]));
    assert_eq!(stored.all(), ["svc_oat_2 svc_ort_1", "svc_oat_2 svc_ort_1"]);
}

/// Refuses all access tokens but the second one.
struct RefusesTheFirst;

impl Respond for RefusesTheFirst {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        match (request.url.path(), header(request, "authorization")) {
            ("/crm/oauth/token", _) => given("svc_oat_2", Some("svc_ort_2")),
            (_, Some("Bearer svc_oat_2")) => ok(200),
            _ => problem(401, "invalid_token"),
        }
    }
}

#[tokio::test]
async fn calls_at_the_same_time_share_one_refresh() {
    let server = MockServer::start().await;
    wiremock::Mock::given(wiremock::matchers::any()).respond_with(RefusesTheFirst).mount(&server).await;
    let (source, stored) = source();
    let client = client(&server, source);
    let contacts = client.contacts();
    let calls = (0..50).map(|_| contacts.get(ID.parse().unwrap()));
    for result in futures_util::future::join_all(calls).await {
        result.unwrap();
    }
    assert_eq!(stored.all(), ["svc_oat_2 svc_ort_2"]);
    assert_eq!(all_sent(&server).await.iter().filter(|sent| sent.contains("/oauth/token")).count(), 1);
}

#[tokio::test]
async fn a_token_that_is_refused_again_is_not_refreshed_again() {
    let refused = problem(401, "invalid_token");
    let server = serve(vec![refused.clone(), given("svc_oat_2", Some("svc_ort_2")), refused]).await;
    let error = client(&server, source().0).contacts().get(ID.parse().unwrap()).await.unwrap_err();
    assert_eq!((error.code(), all_sent(&server).await.len()), (Some("invalid_token"), 3));
}

#[tokio::test]
async fn the_end_of_the_access_is_an_error_with_its_code() {
    let ended = json!({ "error": "invalid_grant", "error_description": "The refresh token has ended." });
    let ended = ResponseTemplate::new(400).set_body_json(ended);
    let server = serve(vec![problem(401, "invalid_token"), ended]).await;
    let (source, stored) = source();
    let error = client(&server, source).contacts().get(ID.parse().unwrap()).await.unwrap_err();
    assert_eq!(error.to_string(), "The refresh token has ended. (status 400, code invalid_grant)");
    assert_eq!((error.code(), error.is_transient(), stored.all().len()), (Some("invalid_grant"), false, 0));
}

#[tokio::test]
async fn a_busy_service_is_asked_for_tokens_again() {
    let busy = ResponseTemplate::new(503)
        .set_body_json(json!({ "error": "temporarily_unavailable", "error_description": "Not right now." }));
    let lost = ResponseTemplate::new(502).set_body_string("<html>Bad gateway</html>");
    let server =
        serve(vec![problem(401, "invalid_token"), busy, lost, given("svc_oat_2", Some("svc_ort_2")), ok(200)]).await;
    let (source, stored) = source();
    client(&server, source).contacts().get(ID.parse().unwrap()).await.unwrap();
    assert_eq!((stored.all().len(), all_sent(&server).await.len()), (1, 5));
}

#[tokio::test]
async fn tokens_that_could_not_be_stored_are_not_used() {
    let refused = problem(401, "invalid_token");
    let given = given("svc_oat_2", Some("svc_ort_2"));
    let server = serve(vec![refused.clone(), given.clone(), refused, given, ok(200)]).await;
    let is_full = Arc::new(Mutex::new(true));
    let disk = Arc::clone(&is_full);
    let source = TokenSource::new("svcapp_a", tokens(), move |_| {
        std::future::ready(if *disk.lock().unwrap() { Err("the disk is full") } else { Ok(()) })
    });
    let client = client(&server, source);
    let error = client.contacts().get(ID.parse().unwrap()).await.unwrap_err();
    assert_eq!(error.to_string(), "the new tokens of the app could not be stored: the disk is full");
    assert!(matches!(error, Error::TokensNotStored(_)) && !error.is_transient());
    *is_full.lock().unwrap() = false;
    client.contacts().get(ID.parse().unwrap()).await.unwrap();
    let sent = all_sent(&server).await;
    assert_eq!(sent[1], sent[3], "the same refresh token, for which the service gives the same response");
}

#[tokio::test]
async fn an_answer_that_is_no_token_is_an_error() {
    for response in [
        ResponseTemplate::new(200).set_body_string("<html>Sign in to the network</html>"),
        ResponseTemplate::new(200).set_body_json(json!({ "access_token": 7 })),
        ResponseTemplate::new(302).insert_header("location", "https://elsewhere.example/"),
    ] {
        let server = serve(vec![problem(401, "invalid_token"), response]).await;
        let (source, stored) = source();
        let error = client(&server, source).contacts().get(ID.parse().unwrap()).await.unwrap_err();
        assert!(matches!(error, Error::UnexpectedResponse(_)), "{error}");
        assert_eq!((stored.all().len(), all_sent(&server).await.len()), (0, 2));
    }
    let server = serve(vec![problem(401, "invalid_token"), given("svc_oat_\n", Some("svc_ort_2"))]).await;
    let (source, stored) = source();
    let error = client(&server, source).contacts().get(ID.parse().unwrap()).await.unwrap_err();
    assert_eq!(error.to_string(), "the key or token has characters that none has");
    assert!(stored.all().is_empty());
}

#[test]
fn what_apps_cannot_do_is_refused() {
    let signing = Client::builder_with_tokens("https://svc.example.com", source().0).signing_secret("svcsig_s");
    let platform = Client::builder_with_tokens("https://svc.example.com", source().0);
    let shown = format!("{platform:?}");
    assert!(!shown.contains("svc_o") && shown.contains("svcapp_a"), "{shown}");
    let reasons = [signing.build().unwrap_err().to_string(), platform.build_platform().unwrap_err().to_string()];
    assert_eq!(
        reasons,
        [
            "apps do not sign their requests; leave the signing secret out",
            "the platform API takes platform keys, and no tokens of apps",
        ]
    );
}
