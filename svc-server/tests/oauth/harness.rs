//! A server with two accounts and three apps, and the owner of the first account in a browser.

use std::ops::Deref;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, ORIGIN, SET_COOKIE};
use http::{Method, StatusCode};
use serde_json::Value;
use svc_core::accounts::apps::{AppCreate, NewApp};
use svc_core::accounts::sessions::Role;
use svc_core::crypto::sha256;
use svc_core::prelude::*;
use svc_server::{Api, DashboardSettings, OauthSettings, Surfaces};
pub(crate) use svc_test_support::Response;
use svc_test_support::server::settings;
use svc_test_support::{Call, Fixture, TestServer};
use url::Url;
use url::form_urlencoded::Serializer;

pub(crate) const ISSUER: &str = "https://api.example.com";
pub(crate) const CALLBACK: &str = "https://app.example.com/callback";
pub(crate) const STATE: &str = "a state & 1=1";
pub(crate) const VERIFIER: &str = "a-verifier-of-the-forty-three-characters_or";

/// Pairs of names and values.
pub(crate) type Pairs = Vec<(String, String)>;

pub(crate) struct Server {
    server: TestServer,
    pub(crate) confidential: NewApp,
    pub(crate) public: NewApp,
    /// A confidential app that may only read.
    pub(crate) reader: NewApp,
    cookie: String,
}

impl Deref for Server {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        let frame_ancestor = Some("https://host.example.com".parse().unwrap());
        let oauth = Some(OauthSettings::new(ISSUER.parse().unwrap()));
        let dashboard = Some(DashboardSettings { frame_ancestor, oauth, ..DashboardSettings::default() });
        let surfaces = Surfaces { dashboard, ..Surfaces::default() };
        let fixture = Fixture::new();
        let api = Api::with_surfaces(Arc::clone(fixture.store()), settings(), surfaces);
        let app = async |name: &str, public, write| {
            let mut input = AppCreate::new(name.parse().unwrap(), vec![CALLBACK.parse().unwrap()]);
            (input.public, input.write) = (public, write);
            fixture.svc.apps().create(input).await.unwrap()
        };
        let confidential = app("Route Planner", false, true).await;
        let public = app("Pocket Planner", true, true).await;
        let reader = app("Reader", false, false).await;
        let server = TestServer::new(fixture, api);
        let mut server = Self { server, confidential, public, reader, cookie: String::new() };
        server.cookie = server.sign_in(Role::Owner).await;
        server
    }

    /// Returns the cookie of a person who is signed in to the account by a link.
    pub(crate) async fn sign_in(&self, role: Role) -> String {
        let link = self.svc.dashboard().create_link(DashboardLinkCreate::to(self.tenant, role)).await.unwrap();
        let form = encode(&[("token", link.token.reveal())]);
        let signed_in = self.send(Method::POST, "/dashboard/sign-in", &[(ORIGIN.as_str(), ISSUER)], &form).await;
        let cookie = signed_in.headers[SET_COOKIE].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    pub(crate) async fn send(&self, method: Method, target: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut call = Call::absolute(method, target).headers(headers);
        call.body = body.to_owned().into();
        self.server.send(call).await
    }

    /// Returns the parameters of an authorization request that is right.
    pub(crate) fn request(&self, app: &NewApp) -> Pairs {
        let challenge = URL_SAFE_NO_PAD.encode(sha256(VERIFIER.as_bytes()));
        pairs(&[
            ("response_type", "code"),
            ("client_id", &app.app.client_id),
            ("redirect_uri", CALLBACK),
            ("scope", if app.app.writes() { "read write" } else { "read" }),
            ("state", STATE),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ])
    }

    /// Asks for authorization in the browser of the owner.
    pub(crate) async fn authorize(&self, parameters: &Pairs) -> Response {
        self.send(Method::GET, &target(parameters), &[(COOKIE.as_str(), &self.cookie)], "").await
    }

    /// Sends the form of a page as the browser of the owner does.
    pub(crate) async fn decide(&self, page: &Response, decision: &str) -> Response {
        self.submit(page, &[(COOKIE.as_str(), &self.cookie), (ORIGIN.as_str(), ISSUER)], decision).await
    }

    pub(crate) async fn submit(&self, page: &Response, headers: &[(&str, &str)], decision: &str) -> Response {
        let action = attribute(&page.text, "action=\"").replace("&amp;", "&");
        let csrf = attribute(&page.text, "name=\"csrf\" value=\"");
        let account = attribute(&page.text, "name=\"account\" value=\"");
        let form = encode(&[("csrf", &csrf), ("account", &account), ("decision", decision)]);
        self.send(Method::POST, &action, headers, &form).await
    }

    /// Returns a code that the owner has allowed by a page.
    pub(crate) async fn code(&self, parameters: &Pairs) -> String {
        let mut parameters = parameters.clone();
        parameters.push(("prompt".to_owned(), "consent".to_owned()));
        let page = self.authorize(&parameters).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        let returned = self.decide(&page, "allow").await.returned();
        value(&returned, "code").to_owned()
    }

    /// Exchanges a new code of an app for tokens.
    pub(crate) async fn tokens(&self, app: &NewApp) -> Value {
        let code = self.code(&self.request(app)).await;
        let response = self.post("/oauth/token", &basic(app), &exchange(&code)).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.text);
        response.json()
    }

    /// Sends a form to an endpoint of apps.
    pub(crate) async fn post(&self, path: &str, authorization: &str, form: &Pairs) -> Response {
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let mut headers = vec![(CONTENT_TYPE.as_str(), "application/x-www-form-urlencoded")];
        headers.extend(Some((AUTHORIZATION.as_str(), authorization)).filter(|_| !authorization.is_empty()));
        self.send(Method::POST, path, &headers, &body).await
    }

    /// Calls the API with an access token.
    pub(crate) async fn call(&self, token: &Value) -> Response {
        self.call_at("/api/v1/contacts", token).await
    }

    pub(crate) async fn call_at(&self, path: &str, token: &Value) -> Response {
        let authorization = format!("Bearer {}", token["access_token"].as_str().unwrap());
        self.send(Method::GET, path, &[(AUTHORIZATION.as_str(), &authorization)], "").await
    }
}

/// What apps read of a response.
pub(crate) trait AppResponse {
    /// Returns the status and the code of an error.
    fn error(&self) -> (u16, String);
    /// Returns the parameters with which the browser returns to the app.
    fn returned(&self) -> Pairs;
}

impl AppResponse for Response {
    fn error(&self) -> (u16, String) {
        (self.status, self.json()["error"].as_str().unwrap_or_default().to_owned())
    }

    fn returned(&self) -> Pairs {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{}", self.text);
        let location = self.header("location").unwrap();
        assert_eq!(location.split('?').next().unwrap(), CALLBACK, "{location}");
        Url::parse(location).unwrap().query_pairs().into_owned().collect()
    }
}

pub(crate) fn pairs(list: &[(&str, &str)]) -> Pairs {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn encode(list: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(list).finish()
}

/// Returns the target of an authorization request.
pub(crate) fn target(parameters: &Pairs) -> String {
    format!("/oauth/authorize?{}", Serializer::new(String::new()).extend_pairs(parameters).finish())
}

/// Returns the value of a parameter that is there once.
pub(crate) fn value<'p>(pairs: &'p Pairs, name: &str) -> &'p str {
    let [(_, value)] = pairs.iter().filter(|(known, _)| known == name).collect::<Vec<_>>()[..] else {
        panic!("{name} is not there once: {pairs:?}")
    };
    value
}

/// Returns what stands in a page between a text and the next quotation mark.
pub(crate) fn attribute(page: &str, before: &str) -> String {
    let after = page.split_once(before).map(|(_, after)| after).unwrap_or_default();
    after.split('"').next().unwrap_or_default().to_owned()
}

/// Returns the `Authorization` of an app. A public app sends its id with an empty password.
pub(crate) fn basic(app: &NewApp) -> String {
    let secret = app.secret.as_ref().map(Secret::reveal).unwrap_or_default();
    format!("Basic {}", STANDARD.encode(format!("{}:{secret}", app.app.client_id)))
}

/// Returns the form that exchanges a code.
pub(crate) fn exchange(code: &str) -> Pairs {
    pairs(&[
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", CALLBACK),
        ("code_verifier", VERIFIER),
    ])
}

/// A change of one parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    None,
    Without(&'a str),
    Repeated(&'a str),
    With(&'a str, &'a str),
}

impl Change<'_> {
    pub(crate) fn of(self, pairs: &Pairs) -> Pairs {
        let mut changed = pairs.clone();
        let position = |name: &str| pairs.iter().position(|(known, _)| known == name);
        match self {
            Self::None => {}
            Self::Without(name) => changed.retain(|(known, _)| known != name),
            Self::Repeated(name) => changed.extend(position(name).map(|at| pairs[at].clone())),
            Self::With(name, value) => match position(name) {
                Some(at) => value.clone_into(&mut changed[at].1),
                None => changed.push((name.to_owned(), value.to_owned())),
            },
        }
        changed
    }
}
