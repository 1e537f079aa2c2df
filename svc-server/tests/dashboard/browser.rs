//! A server in this process, and browsers that are signed in to it.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::Full;
use svc_core::accounts::apps::{App, AppCreate};
use svc_core::accounts::dashboard_links::NewDashboardLink;
use svc_core::accounts::grants::GrantId;
use svc_core::accounts::sessions::Role;
use svc_core::env::{Clock as _, Env, ManualClock, SystemEntropy};
use svc_core::prelude::*;
use svc_core::store::memory::MemoryStore;
use svc_core::store::{Access, Store, StoreWrapper, UnitOfWork};
use svc_core::values::RedirectUri;
use svc_core::webhooks::deliveries::{AttemptCause, AttemptLog};
use svc_core::webhooks::engine::{Attempt, AttemptResult};
use svc_server::deliver::{Trial, WebhookClient};
use svc_server::{Api, Builder, OauthSettings};
pub(crate) use svc_test_support::Response;
use svc_test_support::fixture::attempt_log;
use svc_test_support::{Fixture, TestServer};

/// The address of the server in the browser.
pub(crate) const ORIGIN_URL: &str = "http://localhost:8080";
/// Where the apps of the tests let the browser return.
pub(crate) const RETURN: &str = "https://planner.example/callback";
pub(crate) const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A server with two accounts, under a clock that stands still.
pub(crate) struct Server {
    pub(crate) server: TestServer,
    pub(crate) other: TenantId,
    /// The names of the transactions since the last look.
    pub(crate) transactions: Arc<Mutex<Vec<&'static str>>>,
    /// The requests that were sent to endpoints to try them.
    pub(crate) tried: Arc<Mutex<Vec<Attempt>>>,
}

/// An endpoint that refuses whatever it is sent.
struct Endpoint {
    tried: Arc<Mutex<Vec<Attempt>>>,
    clock: ManualClock,
}

impl WebhookClient for Endpoint {
    fn attempt(&self, attempt: Attempt) -> BoxFuture<'static, AttemptResult> {
        let log = AttemptLog {
            duration_ms: 1_234,
            error: Some("status: 308 Permanent Redirect".to_owned()),
            cause: Some(AttemptCause::Status),
            response_body: Some(r#"{"to":"<b>"}"#.to_owned()),
            ..attempt_log(attempt.delivery.attempts, self.clock.now(), 308)
        };
        Box::pin(async { AttemptResult { delivery: attempt.delivery, log, retry_after: None } })
    }

    fn try_endpoint(&self, attempt: Attempt) -> BoxFuture<'static, Trial> {
        self.tried.lock().unwrap().push(attempt.clone());
        let log = self.attempt(attempt);
        let headers = HeaderMap::from_iter([(LOCATION, "/<i>".parse().unwrap())]);
        Box::pin(async { Trial { log: log.await.log, headers } })
    }
}

/// A store that notes the names of its transactions.
struct Noted {
    store: MemoryStore,
    transactions: Arc<Mutex<Vec<&'static str>>>,
}

#[async_trait]
impl StoreWrapper for Noted {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.transactions.lock().unwrap().push(name);
        self.store.run(access, name, work).await
    }
}

/// A browser with its cookies.
pub(crate) struct Browser<'s> {
    pub(crate) server: &'s Server,
    pub(crate) cookie: Option<String>,
}

impl Deref for Server {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        let clock = ManualClock::at(Timestamp::parse("2026-03-14T15:09:26Z").unwrap());
        let mut env = Env::new(clock.clone(), SystemEntropy);
        env.event_kinds.register("order.shipped", serde_json::json!({ "examples": [{ "id": "A-17" }] })).unwrap();
        let transactions = Arc::default();
        let store = Noted { store: MemoryStore::new(env), transactions: Arc::clone(&transactions) };
        let fixture = Fixture { clock: clock.clone(), ..Fixture::on(store).await };
        let other = fixture.svc.accounts().create(TenantCreate::named("Hill Electric")).await.unwrap().id;
        let tried = Arc::default();
        let endpoint = Endpoint { tried: Arc::clone(&tried), clock };
        let oauth = OauthSettings::new("https://svc.example".parse().unwrap());
        let (api, _) = Builder::new(&fixture.svc).oauth(oauth).webhook_client(Arc::new(endpoint)).build();
        Self { server: TestServer::new(fixture, api), other, transactions, tried }
    }

    /// Returns a server of the same accounts with another API.
    pub(crate) fn serving(self, api: Api) -> Self {
        Self { server: TestServer::new(self.fixture.clone(), api), ..self }
    }

    /// Returns how many transactions had this name since the last call, which forgets all of them.
    pub(crate) fn reads(&self, name: &str) -> usize {
        let transactions = std::mem::take(&mut *self.transactions.lock().unwrap());
        transactions.into_iter().filter(|known| *known == name).count()
    }

    pub(crate) async fn link(&self, input: DashboardLinkCreate) -> NewDashboardLink {
        self.svc.dashboard().create_link(input).await.unwrap()
    }

    /// Creates an app of this owner, which may ask for `write`.
    pub(crate) async fn app(&self, owner: Option<TenantId>, name: &str) -> App {
        let uris = vec![RedirectUri::parse(RETURN).unwrap()];
        let input = AppCreate { owner, write: true, ..AppCreate::new(Text::parse(name).unwrap(), uris) };
        self.svc.apps().create(input).await.unwrap().app
    }

    /// Lets an app read and write an account, in the name of its owner, and returns the id of the grant.
    pub(crate) async fn connect(&self, tenant: TenantId, app: &App) -> GrantId {
        let owner = self.signed_in_by(DashboardLinkCreate::to(tenant, Role::Owner)).await;
        let allowed = owner.decide(&authorize(app, &[]), "allow", tenant).await;
        assert_eq!(allowed.status, StatusCode::SEE_OTHER, "{}", allowed.text);
        let grants = self.svc.account(tenant).grants().list().await.unwrap();
        grants.iter().find(|(grant, _)| grant.app_id == app.id).unwrap().0.id
    }

    /// Returns a browser in which nobody is signed in.
    pub(crate) fn browser(&self) -> Browser<'_> {
        Browser { server: self, cookie: None }
    }

    /// Returns a browser that is signed in to the first account.
    pub(crate) async fn signed_in(&self, role: Role) -> Browser<'_> {
        self.signed_in_by(DashboardLinkCreate::to(self.tenant, role)).await
    }

    pub(crate) async fn signed_in_by(&self, input: DashboardLinkCreate) -> Browser<'_> {
        let link = self.link(input).await;
        let mut browser = self.browser();
        let response = browser.sign_in(link.token.reveal()).await;
        assert_eq!(response.status, StatusCode::SEE_OTHER, "{}", response.text);
        browser
    }

    /// Returns a browser in which a member of these accounts is signed in.
    pub(crate) async fn signed_in_member(&self, email: &str, accounts: &[(TenantId, Role)]) -> Browser<'_> {
        let email: Email = email.parse().unwrap();
        for (tenant, role) in accounts {
            self.svc.account(*tenant).members().add(email.clone(), *role).await.unwrap();
        }
        let new = self.svc.dashboard().sign_in_member(email).await.unwrap();
        Browser { server: self, cookie: Some(format!("svc_session={}", new.token.reveal())) }
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response {
        let response = self.api.call(request, PEER).await;
        // A live list does not end.
        if response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream") {
            return Response::new(response.status().as_u16(), response.headers().clone(), Bytes::new());
        }
        Response::read(response).await
    }
}

/// Returns a page without the headings of columns in its cells, which the script gives to live rows.
pub(crate) fn without_labels(page: &str) -> String {
    let mut parts = page.split(" data-label=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.filter_map(|part| part.split_once('"')).fold(first, |page, (_, rest)| page + rest)
}

/// Returns the path of an authorization request of an app, with these parameters in place of the usual ones.
pub(crate) fn authorize(app: &App, other: &[(&str, &str)]) -> String {
    let mut parameters = vec![
        ("response_type", "code"),
        ("client_id", app.client_id.as_str()),
        ("redirect_uri", RETURN),
        ("scope", "read write"),
        ("state", "a&b"),
        ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
        ("code_challenge_method", "S256"),
    ];
    parameters.retain(|(name, _)| !other.iter().any(|(known, _)| known == name));
    parameters.extend(other);
    format!("/oauth/authorize?{}", encode(&parameters))
}

/// Encodes the fields of a form.
pub(crate) fn encode(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

impl Browser<'_> {
    /// Uses a link up, as its page does.
    pub(crate) async fn sign_in(&mut self, token: &str) -> Response {
        let response = self.send(Method::POST, "/sign-in", &encode(&[("token", token)]), Some(ORIGIN_URL)).await;
        if let Some(cookie) = response.headers.get(SET_COOKIE) {
            let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
            self.cookie = Some(cookie.to_owned());
        }
        response
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(Method::GET, path, "", None).await
    }

    /// Sends a form with the token that the pages of this browser have.
    pub(crate) async fn post(&self, path: &str, form: &str) -> Response {
        let csrf = self.csrf().await;
        self.send_form(path, form, &csrf).await
    }

    /// Sends a form with this token.
    pub(crate) async fn send_form(&self, path: &str, form: &str, csrf: &str) -> Response {
        self.send(Method::POST, path, &format!("{form}&csrf={csrf}"), Some(ORIGIN_URL)).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: &str, origin: Option<&str>) -> Response {
        self.send_to(method, &format!("/dashboard{path}"), body, origin).await
    }

    /// Presses a button of the page that an authorization request gets. `account` is the one that is chosen.
    pub(crate) async fn decide(&self, request: &str, decision: &str, account: TenantId) -> Response {
        let page = self.send_to(Method::GET, request, "", None).await;
        let csrf = page.text.split("name=\"csrf\" value=\"").nth(1).unwrap_or_default();
        let csrf = csrf.split('"').next().unwrap_or_default();
        let form = encode(&[("csrf", csrf), ("account", &account.to_string()), ("decision", decision)]);
        self.send_to(Method::POST, request, &form, Some(ORIGIN_URL)).await
    }

    /// Sends a request to a path of the server.
    pub(crate) async fn send_to(&self, method: Method, uri: &str, body: &str, origin: Option<&str>) -> Response {
        let mut request = Request::builder().method(method).uri(uri).header(HOST, "localhost:8080");
        if let Some(cookie) = &self.cookie {
            request = request.header(COOKIE, cookie);
        }
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        self.server.send(request.body(Full::from(body.to_owned())).unwrap()).await
    }

    /// Returns the token in the form to sign out, which each page has. Empty without a session.
    pub(crate) async fn csrf(&self) -> String {
        let mut page = self.get("/").await;
        if let Some(location) = page.headers.get(LOCATION) {
            page = self.get(location.to_str().unwrap().strip_prefix("/dashboard").unwrap()).await;
        }
        let after = page.text.split("name=\"csrf\" value=\"").nth(1).unwrap_or_default();
        after.split('"').next().unwrap_or_default().to_owned()
    }
}
