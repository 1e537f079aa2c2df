//! Methods, API versions, request ids, CORS and the endpoints outside the API (docs/contract.md, "Versions",
//! "Statuses", "Response headers" and "Health and other endpoints").

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use crate::harness::{Call, SeededServer, change, id_name, operations, sample, settings};
use svc_server::kernel::versions::method_of;

/// Returns every path, with ids that exist, and its methods.
pub(crate) fn paths(server: &SeededServer) -> BTreeMap<String, Vec<Method>> {
    let mut paths: BTreeMap<String, Vec<Method>> = BTreeMap::new();
    for operation in operations() {
        let path = match operation.has_id {
            true => operation.path_in_account().replace("{id}", &server.id(&id_name(operation.tag))),
            false => operation.path_in_account(),
        };
        for version in ["/api/v1", "/api/v2"] {
            paths.entry(format!("{version}{path}")).or_default().push(method_of(operation));
        }
    }
    for path in ["/", "/healthz", "/readyz", "/api/v1/openapi.json", "/api/v2/openapi.json"] {
        paths.insert(path.to_owned(), vec![Method::GET]);
    }
    paths
}

const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"];

#[tokio::test]
async fn every_other_method_gets_405_with_the_allowed_methods() {
    let server = SeededServer::new();
    let paths = paths(&server);
    assert_eq!(paths.len(), 13 * 2 + 5);
    for (path, methods) in &paths {
        let mut allowed: Vec<&str> = methods.iter().map(Method::as_str).collect();
        if allowed.contains(&"GET") {
            allowed.push("HEAD");
        }
        for method in METHODS.iter().filter(|method| !allowed.contains(method)) {
            let call = Call::absolute(Method::from_bytes(method.as_bytes()).unwrap(), path);
            let response = server.expect(405, call.anonymous()).await;
            let mut actual: Vec<&str> = response.header("allow").unwrap().split(", ").collect();
            let mut want = allowed.clone();
            actual.sort_unstable();
            want.sort_unstable();
            assert_eq!(actual, want, "{method} {path}");
            assert_eq!(response.code(), "method_not_allowed");
        }
    }
}

#[tokio::test]
async fn head_works_wherever_get_does() {
    let server = SeededServer::new();
    for (path, methods) in paths(&server) {
        if methods.contains(&Method::GET) && !path.ends_with("/ping") {
            let get = server.expect(200, Call::absolute(Method::GET, &path)).await;
            let head = server.expect(200, Call::absolute(Method::HEAD, &path)).await;
            assert_eq!(head.comparable().1, get.comparable().1, "{path}");
            assert!(head.body.is_empty(), "{path}");
        }
    }
    server.expect(200, Call::new(Method::HEAD, "/ping")).await;
    server.expect(401, Call::new(Method::HEAD, "/contacts").anonymous()).await;
    server.expect(404, Call::new(Method::HEAD, &format!("/contacts/{}", server.id("unknown_id")))).await;
}

#[tokio::test]
async fn unknown_paths_get_404() {
    let server = SeededServer::new();
    let contact = server.id("contact_id");
    for path in [
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v3/ping",
        "/api/v1ping",
        "/API/v1/ping",
        "/api/v1/Ping",
        "/api/v1/ping/",
        "/api/v1//ping",
        "/api/v1/contacts/",
        &format!("/api/v1/contacts/{contact}/"),
        &format!("/api/v1/contacts/{contact}/bookings"),
        "/api/v1/../v1/ping",
        "/metrics",
        "/healthz/",
        "/openapi.json",
        "/contacts",
        "/api/v1/hotel_stays",
    ] {
        for call in [Call::absolute(Method::GET, path), Call::absolute(Method::POST, path).anonymous()] {
            let response = server.expect(404, call).await;
            assert_eq!(response.code(), "route_not_found", "{path}");
        }
    }
    // RFC 9110, section 4.2.3: the same path.
    server.expect(200, Call::absolute(Method::GET, "/api/v1/%70ing")).await;
    let of = async |path: &str| server.expect(404, Call::absolute(Method::GET, path)).await.json()["error"].clone();
    for path in ["/api/v1/ping/", "/api/v1/contacts/", "/api/v1/openapi.json/", "/healthz/"] {
        assert_eq!(
            of(path).await,
            "No operation has this path with a slash at its end; leave the slash out.",
            "{path}"
        );
    }
    for path in ["/api/v1/", "/api/v1/nothing/", "/api/v1/contacts//"] {
        assert_eq!(of(path).await, "No operation has this path; see /api/v1/openapi.json.", "{path}");
    }
    for path in ["/invoices", &format!("/invoices/{}", server.id("invoice_id"))] {
        for method in [Method::POST, Method::PATCH, Method::DELETE] {
            server.expect(405, Call::new(method, path).json(&json!({ "status": "paid" }))).await;
        }
    }
}

/// Runs the same requests on two equal servers, one per API version.
#[tokio::test]
async fn both_api_versions_respond_identically() {
    let (one, two) = (SeededServer::new(), SeededServer::new());
    let mut script: Vec<Call> = vec![Call::get("/ping"), Call::get("/nothing"), Call::get("/ping").anonymous()];
    for operation in operations().iter().filter(|operation| operation.tag != "ping") {
        let id = one.id(&id_name(operation.tag));
        let call = Call::new(method_of(operation), &operation.path_in_account().replace("{id}", &id));
        script.push(match method_of(operation) {
            Method::POST => call.json(&sample(&one, operation.tag, 5)),
            Method::PATCH => call.json(&change(operation.tag)),
            _ => call,
        });
        script.push(Call::new(method_of(operation), &format!("{}?unknown=1", operation.path_in_account())).raw("{"));
    }
    assert_eq!(script.len(), 3 + 24 * 2);
    for call in script {
        let mut second = call.clone();
        second.target = call.target.replace("/api/v1/", "/api/v2/");
        let (one, two) = (one.send(call.clone()).await, two.send(second).await);
        let (status, mut headers, body) = two.comparable();
        for (name, value) in &mut headers {
            if name == "location" {
                assert!(value.starts_with("/api/v2/"), "{value}");
                *value = value.replace("/api/v2/", "/api/v1/");
            }
        }
        assert_eq!((status, headers, body), one.comparable(), "{} {}", call.method, call.target);
        assert_eq!(one.header("x-request-id"), two.header("x-request-id"), "request ids are generated from the seed");
    }
}

#[tokio::test]
async fn both_api_versions_share_their_data() {
    let server = SeededServer::new();
    let call = Call::absolute(Method::POST, "/api/v2/contacts").json(&json!({ "email": "a@example.com" }));
    let id = server.expect(201, call).await.id();
    let path = format!("/contacts/{id}");
    let one = server.expect(200, Call::get(&path)).await;
    let two = server.expect(200, Call::absolute(Method::GET, &format!("/api/v2{path}"))).await;
    assert_eq!(one.comparable(), two.comparable());
    server.expect(204, Call::absolute(Method::DELETE, &format!("/api/v2{path}"))).await;
    server.expect(404, Call::get(&path)).await;
    let cursor = |response: crate::harness::Response| response.json()["next_cursor"].as_str().map(str::to_owned);
    server.expect(201, Call::post("/jobs", sample(&server, "jobs", 1))).await;
    let cursor = cursor(server.expect(200, Call::get("/jobs?limit=1")).await).unwrap();
    server.expect(200, Call::absolute(Method::GET, &format!("/api/v2/jobs?cursor={cursor}"))).await;
}

#[tokio::test]
async fn a_well_formed_request_id_is_echoed() {
    let server = SeededServer::new();
    let longest = "x".repeat(128);
    for good in ["a", "0", "A-b_c.9", "-", longest.as_str()] {
        for call in
            [Call::get("/ping"), Call::get("/ping").anonymous(), Call::get("/nothing"), Call::get("/contacts?x=1")]
        {
            let response = server.send(call.header("x-request-id", good)).await;
            assert_eq!(response.header("x-request-id"), Some(good));
        }
    }
    let too_long = "x".repeat(129);
    let mut seen = std::collections::HashSet::new();
    for bad in ["", " ", "a b", "a,b", "a/b", "<script>", "a:b", "a\"b", too_long.as_str()] {
        let response = server.send(Call::get("/ping").header("x-request-id", bad)).await;
        let made = response.header("x-request-id").unwrap().to_owned();
        assert_ne!(made, bad);
        assert_eq!(uuid::Uuid::parse_str(&made).unwrap().get_version_num(), 7, "{bad:?}");
        assert!(seen.insert(made), "each request gets an id of its own");
    }
    let bytes = http::HeaderValue::from_bytes(b"caf\xc3\xa9").unwrap();
    let mut call = Call::get("/ping");
    call.headers.insert("x-request-id", bytes);
    let response = server.send(call).await;
    assert!(uuid::Uuid::parse_str(response.header("x-request-id").unwrap()).is_ok());
}

#[tokio::test]
async fn the_openapi_document_needs_no_key_and_has_an_etag() {
    let server = SeededServer::limited();
    for version in ["v1", "v2"] {
        let path = format!("/api/{version}/openapi.json");
        let call = || Call::absolute(Method::GET, &path).anonymous();
        let response = server.expect(200, call()).await;
        let document = response.json();
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["servers"][0]["url"], format!("/api/{version}"));
        let etag = response.etag().to_owned();
        let unchanged = server.expect(304, call().header("if-none-match", &etag)).await;
        assert_eq!((unchanged.etag(), unchanged.body.len()), (etag.as_str(), 0));
        server.expect(200, call().header("if-none-match", "\"other\"")).await;
    }
    let [one, two] = ["v1", "v2"].map(|version| format!("/api/{version}/openapi.json"));
    let (one, two) = (Call::absolute(Method::GET, &one), Call::absolute(Method::GET, &two));
    let (mut one, mut two) = (server.send(one).await.json(), server.send(two).await.json());
    for document in [&mut one, &mut two] {
        document["info"]["version"] = Value::Null;
        document["servers"] = Value::Null;
    }
    assert_eq!(one, two);
}

/// A browser gets a page whose links work, and every other client JSON, also where an application mounts the API.
#[tokio::test]
async fn the_root_says_what_the_server_is() {
    for mount in ["", "/business"] {
        let server = SeededServer::with(svc_server::Settings { mount: mount.to_owned(), ..settings() });
        let home = server.expect(200, Call::absolute(Method::GET, "/").anonymous()).await;
        let openapi = format!("{mount}/api/v1/openapi.json");
        let docs = format!("{mount}/docs");
        let want = json!({ "name": "svc", "api": format!("{mount}/api/v1"), "openapi": openapi, "docs": docs });
        assert_eq!(home.json(), want);
        assert_eq!(home.header("vary"), Some("accept"));

        let browser = http::Request::get("/").header("host", "localhost").header("accept", "text/html,*/*;q=0.8");
        let browser = browser.body(http_body_util::Full::<bytes::Bytes>::default()).unwrap();
        let page = server.api.call(browser, [127, 0, 0, 1].into()).await;
        assert_eq!(page.status(), 200);
        assert_eq!(
            (&page.headers()["content-type"], &page.headers()["vary"]),
            (&"text/html; charset=utf-8".parse().unwrap(), &"accept".parse().unwrap())
        );
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        for part in ["default-src 'none'; style-src 'sha256-", "form-action 'none'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        let html = http_body_util::BodyExt::collect(page.into_body()).await.unwrap().to_bytes();
        let html = String::from_utf8(html.to_vec()).unwrap();
        assert!(!html.contains("<script") && !html.contains("//"), "{html}");
        let links: Vec<&str> = html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(links.len(), 4);
        for link in links {
            // The application removes its prefix before it calls the API.
            let path = link.strip_prefix(mount).unwrap();
            if path.starts_with("/docs") {
                // Pages, so not what the document describes.
                let page = http::Request::get(path).header("host", "localhost");
                let page = page.body(http_body_util::Full::<bytes::Bytes>::default()).unwrap();
                assert_eq!(server.api.call(page, [127, 0, 0, 1].into()).await.status(), 200);
                continue;
            }
            server.expect(200, Call::absolute(Method::GET, path).anonymous()).await;
        }
    }
}

#[tokio::test]
async fn ping_ignores_parameters() {
    let server = SeededServer::new();
    let response = server.expect(200, Call::get("/ping?limit=0&limit=0&cursor=%ff&x")).await;
    let want = json!({ "ok": true, "tenantId": server.tenant, "timestamp": svc_test_support::fixture::START });
    assert_eq!(response.json(), want);
}

#[tokio::test]
async fn cors_is_off_unless_an_origin_is_allowed() {
    let origin = "https://app.example.com";
    let preflight = |origin: &str| {
        let call = Call::new(Method::OPTIONS, "/contacts").anonymous().header("origin", origin);
        call.header("access-control-request-method", "POST")
    };
    let closed = SeededServer::new();
    closed.expect(405, preflight(origin)).await;
    let response = closed.expect(200, Call::get("/ping").header("origin", origin)).await;
    assert_eq!((response.header("access-control-allow-origin"), response.header("vary")), (None, None));

    let cors = svc_server::Cors::new(vec![http::HeaderValue::from_static("https://app.example.com")]);
    let open = SeededServer::with(svc_server::Settings { cors, ..settings() });
    let response = open.expect(204, preflight(origin)).await;
    assert_eq!(response.header("access-control-allow-origin"), Some(origin));
    assert!(response.header("access-control-allow-headers").unwrap().contains("idempotency-key"));
    let response = open.expect(401, Call::get("/ping").anonymous().header("origin", origin)).await;
    assert_eq!(response.header("access-control-allow-origin"), Some(origin), "errors can be read as well");
    open.expect(405, preflight("https://evil.example")).await;
    let response = open.expect(200, Call::get("/ping").header("origin", "https://evil.example")).await;
    assert_eq!((response.header("access-control-allow-origin"), response.header("vary")), (None, Some("origin")));
}

/// RFC 9110, section 9.3.7: it asks about the server, and not about a path.
#[tokio::test]
async fn options_of_the_server_name_its_methods() {
    let server = SeededServer::new();
    let options = || Call::absolute(Method::OPTIONS, "*").anonymous();
    for (call, status, allow) in [
        (options(), 204, Some("GET, HEAD, POST, PATCH, DELETE, OPTIONS")),
        (Call::absolute(Method::GET, "*"), 404, None),
        (Call::absolute(Method::OPTIONS, "/*").anonymous(), 404, None),
        (options().without("host").and_header("host", "a b"), 400, None),
    ] {
        let shown = format!("{} {}", call.method, call.target);
        let response = server.expect(status, call).await;
        assert_eq!(response.header("allow"), allow, "{shown}");
        assert_eq!(response.body.is_empty(), status == 204, "{shown}");
    }
    let options = http::Request::options("*").header("host", "localhost");
    let options = options.body(http_body_util::Full::<bytes::Bytes>::default()).unwrap();
    let response = server.api.for_operators().call(options, [127, 0, 0, 1].into()).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["allow"]),
        (204, &"GET, HEAD, OPTIONS".parse().unwrap())
    );
}

#[tokio::test]
async fn metrics_count_the_responses() {
    let server = SeededServer::new();
    server.expect(200, Call::get("/ping")).await;
    server.expect(401, Call::get("/ping").anonymous()).await;
    server.expect(404, Call::absolute(Method::GET, "/metrics")).await;
    let operators = server.api.for_operators();
    let (open, plain) = (svc_server::metrics::CONTENT_TYPE, svc_server::metrics::PLAIN_CONTENT_TYPE);
    let mut text = String::new();
    // Prometheus names OpenMetrics; curl takes anything, and need not know it.
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    for (accept, media_type) in [
        (None, plain),
        (Some("*/*"), plain),
        (Some("application/*"), plain),
        (Some("text/plain, application/openmetrics-text;q=0.5"), plain),
        (Some("application/openmetrics-text;q=0, */*"), plain),
        (Some("application/openmetrics-text"), open),
        (Some(prometheus), open),
    ] {
        let scrape = http::Request::get("/metrics").header("host", "localhost");
        let scrape = accept.into_iter().fold(scrape, |scrape, accept| scrape.header("accept", accept));
        let scrape = scrape.body(http_body_util::Full::default()).unwrap();
        let peer = std::net::IpAddr::from([127, 0, 0, 1]);
        let response = operators.call::<http_body_util::Full<bytes::Bytes>>(scrape, peer).await;
        let headers = response.headers();
        assert_eq!(
            (response.status().as_u16(), headers["content-type"].to_str().unwrap()),
            (200, media_type),
            "{accept:?}"
        );
        assert!(!headers.contains_key("x-ratelimit-limit"));
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        text = String::from_utf8(body.to_vec()).unwrap();
    }
    for line in [
        r#"svc_http_requests_total{operation="ping",status="200"} 1"#,
        r#"svc_http_requests_total{operation="ping",status="401"} 1"#,
        r#"svc_http_requests_total{operation="none",status="404"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
