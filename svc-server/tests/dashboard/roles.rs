//! Every page in every role.

use std::sync::atomic::{AtomicU32, Ordering};

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION};
use http::{Method, StatusCode};
use svc_core::accounts::keys::KeyCreate;
use svc_core::accounts::sessions::Role;
use svc_core::accounts::uploads::{self, UploadCreate};
use svc_core::prelude::*;
use svc_core::requests::{self, ApiRequest};
use svc_server::dashboard::routes::pages;

use super::browser::{Browser, Response, Server};

/// The largest page, in bytes.
const MAX_PAGE: usize = 150 * 1024;

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The form of an app.
const APP: &str = "name=Planner&redirect_uris=https%3A%2F%2Fplanner.example%2Fcallback&kind=confidential&scopes=read";

/// All pages: method, path, who may ask for it (`anyone`, `session`, `member`, a role, or `operator`), and a valid form.
/// Those of an identity provider (`nobody`) are not there without one, and that of a `secret` is not there without it.
const PAGES: &[(&str, &str, &str, &str)] = &[
    ("GET", "/sign-in", "anyone", ""),
    ("POST", "/sign-in", "anyone", ""),
    ("POST", "/oidc/start", "nobody", ""),
    ("GET", "/oidc/callback", "nobody", ""),
    ("POST", "/sign-out", "session", ""),
    ("GET", "/switch", "member", ""),
    ("POST", "/switch/{id}", "member", ""),
    ("GET", "/", "viewer", ""),
    ("GET", "/traffic", "viewer", ""),
    ("GET", "/payments", "viewer", ""),
    ("GET", "/calendar", "viewer", ""),
    ("POST", "/calendar/address", "owner", ""),
    ("POST", "/calendar/address/revoke", "owner", ""),
    ("GET", "/calendar.ics", "secret", ""),
    ("GET", "/find", "viewer", ""),
    ("GET", "/find/all", "viewer", ""),
    ("GET", "/find/contacts", "viewer", ""),
    ("GET", "/webhooks", "viewer", ""),
    ("GET", "/webhooks/new", "developer", ""),
    ("POST", "/webhooks/new", "developer", "url=https%3A%2F%2Fexample.com%2Fhook&selection=all"),
    ("POST", "/webhooks/new/try", "developer", "url=https%3A%2F%2Fexample.com%2Fhook&selection=all"),
    ("GET", "/webhooks/{id}", "viewer", ""),
    ("GET", "/webhooks/{id}/edit", "developer", ""),
    ("POST", "/webhooks/{id}/edit", "developer", "url=https%3A%2F%2Fexample.com%2Fhook&selection=all"),
    ("POST", "/webhooks/{id}/try", "developer", ""),
    ("POST", "/webhooks/{id}/delete", "developer", ""),
    ("POST", "/webhooks/{id}/test", "developer", ""),
    ("POST", "/webhooks/{id}/rotate", "developer", "overlap=24"),
    ("POST", "/webhooks/{id}/finish-rotation", "developer", ""),
    ("POST", "/webhooks/{id}/enable", "developer", ""),
    ("POST", "/webhooks/{id}/disable", "developer", ""),
    ("POST", "/webhooks/{id}/recover", "developer", "within=24h"),
    ("GET", "/replays/{id}", "viewer", ""),
    ("GET", "/deliveries", "viewer", ""),
    ("POST", "/deliveries/replay", "developer", "id={delivery}"),
    ("GET", "/deliveries/replay-matching", "developer", ""),
    ("POST", "/deliveries/replay-matching", "developer", "endpoint={endpoint}"),
    ("GET", "/deliveries/live", "viewer", ""),
    ("GET", "/deliveries/{id}", "viewer", ""),
    ("GET", "/deliveries/{id}/live", "viewer", ""),
    ("POST", "/deliveries/{id}/replay", "developer", ""),
    ("GET", "/events", "viewer", ""),
    ("GET", "/events/{id}", "viewer", ""),
    ("GET", "/requests", "viewer", ""),
    ("GET", "/requests/live", "viewer", ""),
    ("GET", "/requests/{id}", "viewer", ""),
    ("GET", "/keys", "viewer", ""),
    ("GET", "/reference", "developer", ""),
    ("POST", "/reference", "developer", ""),
    ("GET", "/keys/new", "owner", ""),
    ("POST", "/keys/new", "owner", "scopes=read&expires=30"),
    ("POST", "/keys/{id}/rotate", "owner", "overlap=24"),
    ("POST", "/keys/{id}/revoke", "owner", ""),
    ("GET", "/apps", "viewer", ""),
    ("POST", "/apps/{id}/disconnect", "owner", ""),
    ("GET", "/developer-apps", "viewer", ""),
    ("GET", "/developer-apps/new", "owner", ""),
    ("POST", "/developer-apps/new", "owner", APP),
    ("GET", "/developer-apps/{id}", "viewer", ""),
    ("GET", "/developer-apps/{id}/edit", "owner", ""),
    ("POST", "/developer-apps/{id}/edit", "owner", APP),
    ("POST", "/developer-apps/{id}/rotate", "owner", "overlap=24"),
    ("POST", "/developer-apps/{id}/enable", "owner", ""),
    ("POST", "/developer-apps/{id}/disable", "owner", ""),
    ("POST", "/developer-apps/{id}/delete", "owner", ""),
    ("GET", "/settings", "viewer", ""),
    ("POST", "/settings", "owner", "name=Harbour&time_zone=UTC&currency=AUD"),
    ("GET", "/settings/sandbox", "developer", ""),
    ("POST", "/settings/sandbox/create", "developer", ""),
    ("POST", "/settings/sandbox/reset", "developer", ""),
    ("POST", "/settings/sandbox/delete", "developer", ""),
    ("POST", "/settings/sandbox/open", "developer", ""),
    ("POST", "/settings/sandbox/leave", "session", ""),
    ("POST", "/settings/members", "owner", "email=eve%40example.com&role=viewer"),
    ("POST", "/settings/members/{id}/link", "owner", ""),
    ("POST", "/settings/members/{id}/role", "owner", "role=developer"),
    ("POST", "/settings/members/{id}/remove", "owner", ""),
    ("POST", "/settings/sessions/{id}/revoke", "owner", ""),
    ("POST", "/settings/sign-out-everywhere", "member", ""),
    ("GET", "/audit", "viewer", ""),
    ("GET", "/contacts", "viewer", ""),
    ("GET", "/contacts/selected", "viewer", "action=csv&id={record}"),
    ("POST", "/contacts/selected", "developer", "action=delete&id={record}"),
    ("GET", "/contacts/new", "developer", ""),
    ("POST", "/contacts/new", "developer", "email=eve%40example.com"),
    ("GET", "/contacts/{id}", "viewer", ""),
    ("GET", "/contacts/{id}/edit", "developer", ""),
    ("POST", "/contacts/{id}/edit", "developer", "email=eve%40example.com&city=Perth"),
    ("POST", "/contacts/{id}/delete", "developer", ""),
    ("GET", "/contacts/{id}/data", "developer", ""),
    ("POST", "/contacts/{id}/erase", "owner", "reason=asked"),
    ("GET", "/invoices", "viewer", ""),
    ("GET", "/invoices/selected", "viewer", "action=csv&id={record}"),
    ("POST", "/invoices/selected", "developer", "action=send&id={record}"),
    ("GET", "/invoices/new", "developer", ""),
    ("POST", "/invoices/new", "developer", "total=149.50"),
    ("GET", "/invoices/{id}", "viewer", ""),
    ("GET", "/invoices/{id}/edit", "developer", ""),
    ("POST", "/invoices/{id}/edit", "developer", "total=99&currency=AUD"),
    ("POST", "/invoices/{id}/send", "developer", ""),
    ("POST", "/invoices/{id}/resend", "developer", ""),
    ("POST", "/invoices/{id}/pay", "developer", "amount=50"),
    ("POST", "/invoices/{id}/refund", "developer", "amount=50"),
    ("POST", "/invoices/{id}/void", "developer", ""),
    ("GET", "/invoices/{id}/print", "viewer", ""),
    ("POST", "/invoices/{id}/share", "developer", ""),
    ("POST", "/invoices/{id}/unshare", "developer", ""),
    ("GET", "/quotes", "viewer", ""),
    ("GET", "/quotes/selected", "viewer", "action=csv&id={record}"),
    ("POST", "/quotes/selected", "developer", "action=send&id={record}"),
    ("GET", "/quotes/new", "developer", ""),
    ("POST", "/quotes/new", "developer", "contact_id={contact}&total=99"),
    ("GET", "/quotes/{id}", "viewer", ""),
    ("GET", "/quotes/{id}/edit", "developer", ""),
    ("POST", "/quotes/{id}/edit", "developer", "status=sent&total=99&valid_until=2026-04-13"),
    ("POST", "/quotes/{id}/send", "developer", ""),
    ("POST", "/quotes/{id}/convert", "developer", ""),
    ("POST", "/quotes/{id}/accept", "developer", ""),
    ("POST", "/quotes/{id}/decline", "developer", ""),
    ("GET", "/quotes/{id}/print", "viewer", ""),
    ("POST", "/quotes/{id}/share", "developer", ""),
    ("POST", "/quotes/{id}/unshare", "developer", ""),
    ("GET", "/bookings", "viewer", ""),
    ("GET", "/bookings/selected", "viewer", "action=csv&id={record}"),
    ("POST", "/bookings/selected", "developer", "action=completed&id={record}"),
    ("GET", "/bookings/new", "developer", ""),
    ("POST", "/bookings/new", "developer", "contact_id={contact}&service_name=Visit&start_time=2026-03-20T09%3A00"),
    ("GET", "/bookings/{id}", "viewer", ""),
    ("POST", "/bookings/{id}/complete", "developer", ""),
    ("POST", "/jobs/{id}/schedule", "developer", ""),
    ("POST", "/jobs/{id}/start", "developer", ""),
    ("POST", "/jobs/{id}/complete", "developer", ""),
    ("POST", "/bookings/{id}/no-show", "developer", ""),
    ("POST", "/bookings/{id}/cancel", "developer", ""),
    ("GET", "/bookings/{id}/edit", "developer", ""),
    (
        "POST",
        "/bookings/{id}/edit",
        "developer",
        "status=completed&start_time=2026-03-20T09%3A00&end_time=2026-03-20T11%3A00",
    ),
    ("GET", "/jobs", "viewer", ""),
    ("GET", "/jobs/selected", "viewer", "action=csv&id={record}"),
    ("POST", "/jobs/selected", "developer", "action=completed&id={record}"),
    ("GET", "/jobs/new", "developer", ""),
    ("POST", "/jobs/new", "developer", "title=New+pump"),
    ("GET", "/jobs/{id}", "viewer", ""),
    ("GET", "/jobs/{id}/edit", "developer", ""),
    ("POST", "/jobs/{id}/edit", "developer", "title=New+pump&status=completed"),
    ("POST", "/jobs/{id}/invoice", "developer", "amount=50"),
    ("GET", "/import", "developer", ""),
    ("POST", "/import", "developer", "kind=contacts&text=email%0Aeve%40example.com"),
    ("GET", "/import/{id}", "developer", ""),
    ("POST", "/import/{id}", "developer", "date_format=DD%2FMM%2FYYYY"),
    ("POST", "/import/{id}/check", "developer", ""),
    ("POST", "/import/{id}/run", "developer", ""),
    ("GET", "/import/{id}/refused", "developer", ""),
    ("POST", "/import/{id}/delete", "developer", ""),
    ("GET", "/system", "operator", ""),
    ("POST", "/system/sessions/{id}/revoke", "operator", ""),
    ("GET", "/accounts", "operator", ""),
    ("POST", "/accounts/leave", "operator", ""),
    ("GET", "/accounts/{id}", "operator", ""),
    ("POST", "/accounts/{id}/access", "operator", "access=suspended"),
    ("POST", "/accounts/{id}/limits", "operator", "rate_limit=600"),
    ("POST", "/accounts/{id}/view", "operator", ""),
];

/// The people who try each page, with the rank of their role.
const PEOPLE: [&str; 8] = [
    "nobody",
    "viewer",
    "developer",
    "owner",
    "member",
    "member of two accounts",
    "operator",
    "operator who looks at the account",
];

async fn browser<'s>(server: &'s Server, person: &str) -> Browser<'s> {
    match person {
        "nobody" => server.browser(),
        "viewer" => server.signed_in(Role::Viewer).await,
        "developer" => server.signed_in(Role::Developer).await,
        "owner" => server.signed_in(Role::Owner).await,
        // Both are owners of the first account. The second one has chosen none yet.
        "member" => server.signed_in_member("ada@example.com", &[(server.tenant, Role::Owner)]).await,
        "member of two accounts" => {
            let accounts = [(server.tenant, Role::Owner), (server.other, Role::Viewer)];
            server.signed_in_member("bob@example.com", &accounts).await
        }
        "operator" => server.signed_in_by(DashboardLinkCreate::for_operator()).await,
        _ => {
            // Later than any other operator of this server, so that the session comes first in the list.
            server.clock.advance(std::time::Duration::from_millis(1));
            let browser = server.signed_in_by(DashboardLinkCreate::for_operator()).await;
            let session = server.svc.dashboard().sessions(None).await.unwrap().remove(0);
            server.svc.dashboard().view(session.id, Some(server.tenant)).await.unwrap();
            browser
        }
    }
}

/// Returns whether a person gets a page.
fn may(person: &str, audience: &str) -> bool {
    let rank = |role| ["viewer", "developer", "owner"].iter().position(|known| *known == role);
    match (audience, person) {
        ("anyone", _) => true,
        ("nobody" | "secret", _) | (_, "nobody") => false,
        ("session", _) => true,
        ("member", _) => person.starts_with("member"),
        ("operator", _) if person.starts_with("member") => false,
        (_, "member") => true,
        (_, "member of two accounts") => false,
        ("operator", _) => person.starts_with("operator"),
        (_, "operator") => false,
        (_, "operator who looks at the account") => audience == "viewer",
        _ => rank(person) >= rank(audience),
    }
}

/// Creates what a page with an id is about, and returns the id.
async fn id(server: &Server, tenant: TenantId, path: &str) -> String {
    let account = server.svc.account(tenant);
    match path.split('/').collect::<Vec<_>>()[..] {
        ["", "keys", ..] => account.keys().create(KeyCreate::default()).await.unwrap().key.id.to_string(),
        ["", "webhooks", ..] => endpoint(server, tenant).await.id.to_string(),
        ["", "replays", ..] => {
            let endpoint = endpoint(server, tenant).await;
            let input = ReplayCreate::new(endpoint.id, endpoint.created_at);
            account.replays().create(input).await.unwrap().id.to_string()
        }
        ["", "deliveries", ..] => delivery(server, tenant).await.id.to_string(),
        ["", "events", ..] => delivery(server, tenant).await.event_id.to_string(),
        ["", "requests", ..] => {
            let event = delivery(server, tenant).await.event_id;
            let store = server.svc.store();
            let request = ApiRequest {
                id: store.env().id(store.env().now()),
                tenant_id: tenant,
                request_id: "an-id".to_owned(),
                key_id: account.keys().create(KeyCreate::default()).await.unwrap().key.id,
                method: "POST".to_owned(),
                path: "/api/v1/contacts".to_owned(),
                query: Some("limit=5&email=***".to_owned()),
                status: 201,
                code: None,
                failing_fields: None,
                started_at: store.env().now(),
                duration_us: 1_234,
                events: 1,
                first_event_id: Some(event),
                last_event_id: Some(event),
            };
            requests::record(&**store, std::slice::from_ref(&request)).await.unwrap();
            request.id.to_string()
        }
        ["", "apps", ..] => {
            let app = server.app(None, "Planner").await;
            server.connect(tenant, &app).await.to_string()
        }
        ["", "developer-apps", ..] => server.app(Some(tenant), "Planner").await.id.to_string(),
        ["", "import", ..] => upload(server, tenant).await,
        ["", "accounts", ..] => tenant.to_string(),
        ["", "switch", ..] => tenant.to_string(),
        ["", "settings", "members", ..] => {
            let address = format!("member{}@example.com", account.members().list().await.unwrap().len());
            let member = account.members().add(address.parse().unwrap(), Role::Viewer).await;
            member.unwrap().id.to_string()
        }
        ["", "settings", "sessions", ..] => session(server, DashboardLinkCreate::to(tenant, Role::Viewer)).await,
        ["", "system", "sessions", ..] => session(server, DashboardLinkCreate::for_operator()).await,
        ["", "contacts", ..] => contact(server, tenant).await.to_string(),
        ["", "invoices", .., last] => {
            let invoice = account.invoices().create(InvoiceCreate::new("149.50".parse().unwrap())).await.unwrap();
            if ["resend", "refund"].contains(&last) {
                account.invoices().send(invoice.id).await.unwrap();
                account.invoices().pay(invoice.id).await.unwrap();
            }
            invoice.id.to_string()
        }
        ["", "quotes", .., last] => {
            let quote = QuoteCreate::new(contact(server, tenant).await, "99".parse().unwrap());
            let quote = account.quotes().create(quote).await.unwrap();
            if ["accept", "decline", "convert"].contains(&last) {
                let sent = QuoteUpdate { status: Patch::Set(QuoteStatus::Sent), ..QuoteUpdate::default() };
                account.quotes().update(quote.id, sent).await.unwrap();
            }
            quote.id.to_string()
        }
        ["", "bookings", ..] => {
            let contact_id = contact(server, tenant).await;
            let start = Timestamp::parse("2026-03-20T09:00:00Z").unwrap();
            let booking = BookingCreate::new(contact_id, Text::parse("Blocked drain").unwrap(), start);
            account.bookings().create(booking).await.unwrap().id.to_string()
        }
        ["", "jobs", ..] => {
            let job = JobCreate::new(Text::parse("New pump").unwrap());
            account.jobs().create(job).await.unwrap().id.to_string()
        }
        _ => panic!("{path} has no id in this test"),
    }
}

async fn session(server: &Server, link: DashboardLinkCreate) -> String {
    let link = server.link(link).await;
    server.svc.dashboard().sign_in(link.token.reveal()).await.unwrap().session.id.to_string()
}

async fn upload(server: &Server, tenant: TenantId) -> String {
    let choices = r#"{"kind":"contacts","preset":"","mapping":[],"skip_lines":0,"decimal":null,"date_format":"","values":[],
        "update":false,"keep_empty":false,"events":true}"#;
    let input = UploadCreate {
        name: "contacts.csv".to_owned(),
        created_by: "dashboard:ada".to_owned(),
        choices: choices.to_owned(),
        content: b"email,created_at\neve@example.com,\n".to_vec(),
    };
    let created = server
        .svc
        .store()
        .write("test", (tenant, input), async |tx, (tenant, input)| uploads::create(tx, *tenant, input).await);
    created.await.unwrap().id.to_string()
}

async fn contact(server: &Server, tenant: TenantId) -> ContactId {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    server.of(tenant).contact(&format!("ada{}@example.com", NUMBER.fetch_add(1, Ordering::Relaxed))).await.id
}

async fn endpoint(server: &Server, tenant: TenantId) -> WebhookSubscription {
    server.of(tenant).webhook("https://example.com/hook", "*").await
}

async fn delivery(server: &Server, tenant: TenantId) -> Delivery {
    let endpoint = endpoint(server, tenant).await;
    server.svc.account(tenant).webhooks().send_test(endpoint.id, None).await.unwrap()
}

/// Completes a form with the id of a delivery, of an endpoint, of a contact, or of a record that the path is about.
async fn filled(server: &Server, path: &str, form: &str) -> String {
    if form.contains("{delivery}") {
        form.replace("{delivery}", &delivery(server, server.tenant).await.id.to_string())
    } else if form.contains("{endpoint}") {
        form.replace("{endpoint}", &endpoint(server, server.tenant).await.id.to_string())
    } else if form.contains("{contact}") {
        form.replace("{contact}", &contact(server, server.tenant).await.to_string())
    } else if form.contains("{record}") {
        let id = id(server, server.tenant, path).await;
        format!("{}&shown={}", form.replace("{record}", &id), updated_at(server, path, &id).await)
    } else {
        form.to_owned()
    }
}

/// Returns when a record last changed.
async fn updated_at(server: &Server, path: &str, id: &str) -> Timestamp {
    let (account, id) = (server.svc.account(server.tenant), id.parse::<uuid::Uuid>().unwrap());
    match path.split('/').nth(1).unwrap() {
        "contacts" => account.contacts().get(id.into()).await.unwrap().updated_at,
        "invoices" => account.invoices().get(id.into()).await.unwrap().updated_at,
        "quotes" => account.quotes().get(id.into()).await.unwrap().updated_at,
        "bookings" => account.bookings().get(id.into()).await.unwrap().updated_at,
        _ => account.jobs().get(id.into()).await.unwrap().updated_at,
    }
}

async fn ask(browser: &Browser<'_>, method: &str, path: &str, form: &str) -> Response {
    match (method, form) {
        ("GET", "") => browser.get(path).await,
        ("GET", query) => browser.get(&format!("{path}?{query}")).await,
        _ => browser.post(path, form).await,
    }
}

#[test]
fn the_test_has_every_page() {
    let known: Vec<(&str, &str)> = PAGES.iter().map(|(method, path, ..)| (*method, *path)).collect();
    for page in pages() {
        assert!(known.contains(&(page.method.as_str(), page.path)), "{} {} is not tested", page.method, page.path);
    }
    assert_eq!(known.len(), pages().len());
}

#[tokio::test]
async fn every_page_is_for_the_roles_that_may_see_it() {
    let shared = Server::start().await;
    for person in PEOPLE {
        let browser = browser(&shared, person).await;
        for (_, path, audience, form) in PAGES.iter().copied().filter(|(method, ..)| *method == "GET") {
            let query = filled(&shared, path, form).await;
            try_page(&shared, &browser, person, ("GET", path, audience, &query)).await;
        }
    }
    for (_, path, audience, form) in PAGES.iter().copied().filter(|(method, ..)| *method == "POST") {
        let unchanged = server_for(path).await;
        for person in PEOPLE {
            // A change may end the session, so each has a server of its own.
            let changed = if may(person, audience) { Some(server_for(path).await) } else { None };
            let server = changed.as_ref().unwrap_or(&unchanged);
            let link = server.link(DashboardLinkCreate::to(server.tenant, Role::Viewer)).await;
            let form = if path == "/sign-in" {
                format!("token={}", link.token.reveal())
            } else {
                filled(server, path, form).await
            };
            let browser = browser(server, person).await;
            try_page(server, &browser, person, ("POST", path, audience, &form)).await;
        }
    }
}

/// Starts a server whose account has the sandbox that a form is about.
async fn server_for(path: &str) -> Server {
    let server = Server::start().await;
    if ["/settings/sandbox/reset", "/settings/sandbox/delete", "/settings/sandbox/open"].contains(&path) {
        server.svc.account(server.tenant).sandbox().create().await.unwrap();
    }
    server
}

async fn try_page(server: &Server, browser: &Browser<'_>, person: &str, page: (&str, &str, &str, &str)) {
    let (method, path, audience, form) = page;
    let path = match path.contains("{id}") {
        true => path.replace("{id}", &id(server, server.tenant, path).await),
        false => path.to_owned(),
    };
    let name = format!("{person}: {method} {path}");
    let response = ask(browser, method, &path, form).await;
    let status = response.status;
    // The viewer of the API reference has a policy of its own.
    let is_viewer = (method, path.as_str(), status) == ("POST", "/reference", 200);
    assert_eq!(response.headers[CONTENT_SECURITY_POLICY] == POLICY, !is_viewer, "{name}");
    assert_eq!(response.headers[CACHE_CONTROL], "no-store", "{name}");
    assert!(response.text.len() < MAX_PAGE, "{name}: {} bytes", response.text.len());
    if may(person, audience) {
        let is_ok = status == StatusCode::OK || (method == "POST" && status == StatusCode::SEE_OTHER);
        assert!(is_ok, "{name}: {status} {}", response.text);
        let is_page = status == StatusCode::OK
            && !["/live", "/data", "/selected", "/find/all", "/find/contacts", "/refused"]
                .iter()
                .any(|end| path.ends_with(end));
        assert_eq!(response.text.matches("<h1").count(), usize::from(is_page), "{name} has one heading");
    } else if ["nobody", "secret"].contains(&audience) {
        assert_eq!(status, StatusCode::NOT_FOUND, "{name}");
    } else if person == "nobody" {
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{name}");
    } else if audience == "operator" || audience == "member" {
        assert_eq!(status, StatusCode::NOT_FOUND, "{name}");
    } else if person == "operator" || person == "member of two accounts" {
        assert_eq!(status, StatusCode::SEE_OTHER, "{name}");
        let accounts = if person == "operator" { "/dashboard/accounts" } else { "/dashboard/switch" };
        assert_eq!(response.headers[LOCATION], accounts, "{name}");
    } else {
        assert_eq!(status, StatusCode::FORBIDDEN, "{name}");
    }
}

#[tokio::test]
async fn an_id_of_another_account_is_not_found() {
    for (method, path, audience, form) in PAGES.iter().copied().filter(|(_, path, ..)| path.contains("{id}")) {
        if audience == "operator" {
            continue;
        }
        let server = Server::start().await;
        let owner = browser(&server, if audience == "member" { "member" } else { "owner" }).await;
        let (own, foreign) = (id(&server, server.tenant, path).await, id(&server, server.other, path).await);
        for missing in [foreign.as_str(), "0195a3c8-0000-7000-8000-000000000001", "x", "%F0%9F%94%91"] {
            let response = ask(&owner, method, &path.replace("{id}", missing), form).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{method} {path} {missing}");
        }
        let response = ask(&owner, method, &path.replace("{id}", &own), form).await;
        assert!((200..400).contains(&response.status), "{method} {path}");
    }
}

#[tokio::test]
async fn every_change_needs_a_form_of_this_session() {
    for (_, path, audience, form) in PAGES.iter().copied().filter(|(method, ..)| *method == "POST") {
        let server = Server::start().await;
        let person = if ["operator", "member"].contains(&audience) { audience } else { "owner" };
        let browser = browser(&server, person).await;
        let path = match path.contains("{id}") {
            true => path.replace("{id}", &id(&server, server.tenant, path).await),
            false => path.to_owned(),
        };
        let csrf = browser.csrf().await;
        let with_token = format!("{form}&csrf={csrf}");
        for origin in [None, Some("null"), Some("http://localhost:8081"), Some("https://attacker.example")] {
            let response = browser.send(Method::POST, &path, &with_token, origin).await;
            assert_eq!(response.status, StatusCode::FORBIDDEN, "{path} {origin:?}");
        }
        if ["anyone", "nobody"].contains(&audience) {
            continue;
        }
        let other_csrf = server.signed_in(Role::Owner).await.csrf().await;
        for wrong in ["", "&csrf=", "&csrf=00", &format!("&csrf={other_csrf}")] {
            let response =
                browser.send(Method::POST, &path, &format!("{form}{wrong}"), Some("http://localhost:8080")).await;
            assert_eq!(response.status, StatusCode::FORBIDDEN, "{path} {wrong}");
        }
    }
}

#[tokio::test]
async fn other_methods_and_paths_are_refused() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    assert_eq!(owner.get("/nothing").await.status, StatusCode::NOT_FOUND);
    for (method, path, allowed) in [
        (Method::GET, "/keys/x/revoke", "POST"),
        (Method::DELETE, "/keys", "GET, HEAD"),
        (Method::PUT, "/keys/new", "GET, HEAD, POST"),
    ] {
        let refused = owner.send(method, path, "", None).await;
        assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(refused.headers[ALLOW], allowed, "{path}");
    }
}
