//! The endpoints of apps: nothing is a 5xx, no browser is sent to a place that is not registered, and nobody gets a token.
//! A redirect URI that matches leads to the place that was registered.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use svc_core::accounts::apps::AppCreate;
use svc_core::env::Env;
use svc_core::oauth::Parameters;
use svc_core::service::Svc;
use svc_core::store::memory::MemoryStore;
use svc_core::values::RedirectUri;
use svc_server::{Api, DashboardSettings, OauthSettings, Settings, Surfaces};
use tokio::runtime::{Builder, Runtime};
use url::Url;
use url::form_urlencoded::{Serializer, parse};

const CALLBACK: &str = "https://app.example.com/callback";

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    endpoint: u8,
    /// Whether the form begins with the id of an app that exists.
    is_known: bool,
    authorization: Option<&'a [u8]>,
    redirect_uris: [&'a str; 2],
    form: &'a str,
}

struct Service {
    api: Api,
    client_id: String,
    runtime: Runtime,
}

static SERVICE: LazyLock<Service> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let svc = Svc::new(MemoryStore::new(Env::system()));
    let app = AppCreate::new("Fuzz".parse().unwrap(), vec![CALLBACK.parse().unwrap()]);
    let app = runtime.block_on(svc.apps().create(app)).unwrap().app;
    let oauth = Some(OauthSettings::new("https://api.example.com".parse().unwrap()));
    let dashboard = Some(DashboardSettings { oauth, ..DashboardSettings::default() });
    let surfaces = Surfaces { dashboard, ..Surfaces::default() };
    let settings = Settings { limit_rates: false, ..Settings::default() };
    Service { api: Api::with_surfaces(Arc::clone(svc.store()), settings, surfaces), client_id: app.client_id, runtime }
});

fuzz_target!(|input: Input<'_>| {
    check_redirect_uris(input.redirect_uris[0], input.redirect_uris[1]);

    let pairs: Vec<(String, String)> = parse(input.form.as_bytes()).into_owned().collect();
    let known = Some(("client_id".to_owned(), SERVICE.client_id.clone())).filter(|_| input.is_known);
    let form = Serializer::new(String::new()).extend_pairs(known).extend_pairs(&pairs).finish();
    let parameters = Parameters::of(form.as_bytes());
    for (name, value) in &pairs {
        let times = parse(form.as_bytes()).filter(|(known, _)| known == name).count();
        match parameters.one(name) {
            Ok(found) => assert!(times == 1 && found.unwrap_or_default() == value),
            Err(_) => assert!(times > 1),
        }
    }

    let (method, target, body) = match input.endpoint % 3 {
        0 => (Method::GET, format!("/oauth/authorize?{form}"), String::new()),
        1 => (Method::POST, "/oauth/token".to_owned(), form),
        _ => (Method::POST, "/oauth/revoke".to_owned(), form),
    };
    let mut request = Request::builder()
        .method(method)
        .uri(target)
        .header("host", "api.example.com")
        .header("content-type", "application/x-www-form-urlencoded");
    if let Some(Ok(value)) = input.authorization.map(HeaderValue::from_bytes) {
        request = request.header("authorization", value);
    }
    let Ok(request) = request.body(Full::new(Bytes::from(body))) else { return };
    SERVICE.runtime.block_on(async {
        let response = SERVICE.api.call(request, IpAddr::V4(Ipv4Addr::LOCALHOST)).await;
        let (parts, body) = response.into_parts();
        assert!(!parts.status.is_server_error(), "{parts:?}");
        if let Some(location) = parts.headers.get("location") {
            let location = location.to_str().unwrap();
            let is_app = location.starts_with("https://app.example.com/callback?error=");
            assert!(is_app || location == "/dashboard/sign-in", "{location}");
        }
        if input.endpoint % 3 == 1 {
            assert_ne!(parts.status, StatusCode::OK);
            let body = body.collect().await.unwrap().to_bytes();
            assert!(serde_json::from_slice::<serde_json::Value>(&body).unwrap()["error"].is_string());
        }
    });
});

/// Checks that a URI that matches another leads to the same place, apart from the port of this device.
fn check_redirect_uris(registered: &str, requested: &str) {
    let Ok(uri) = RedirectUri::parse(registered) else { return };
    assert!(uri.matches(registered));
    if !uri.matches(requested) || registered == requested {
        return;
    }
    let (mut one, mut other) = (Url::parse(registered).unwrap(), Url::parse(requested).unwrap());
    assert_eq!(one.scheme(), "http");
    assert!(matches!(one.host_str(), Some("127.0.0.1" | "[::1]" | "localhost")));
    one.set_port(None).unwrap();
    other.set_port(None).unwrap();
    assert_eq!(one, other);
}
