//! The page on which an owner lets an app work on an account.

use http::header::{CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE, X_FRAME_OPTIONS};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use svc_core::accounts::apps::{App, AppUpdate};
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::prelude::*;
use svc_server::{Builder, DashboardSettings, OauthSettings, Surfaces};

use super::browser::{Browser, ORIGIN_URL, RETURN, Response, Server, authorize};

async fn ask(browser: &Browser<'_>, request: &str) -> Response {
    browser.send_to(Method::GET, request, "", None).await
}

/// Returns where a response leads.
fn location(response: &Response) -> &str {
    assert_eq!(response.status, StatusCode::SEE_OTHER, "{}", response.text);
    response.headers[LOCATION].to_str().unwrap()
}

/// Returns the accounts that an app may work on.
async fn connected(server: &Server) -> Vec<TenantId> {
    let mut accounts = Vec::new();
    for tenant in [server.tenant, server.other] {
        if !server.svc.account(tenant).grants().list().await.unwrap().is_empty() {
            accounts.push(tenant);
        }
    }
    accounts
}

/// Returns the text of the card of a page, without its tags and what forms hide.
fn text(page: &Response) -> String {
    let card = page.text.split("<main").nth(1).unwrap_or_default();
    let mut text = String::new();
    for part in card.split('<').skip(1) {
        let (tag, rest) = part.split_once('>').unwrap_or_default();
        let ends_line = ["/h1", "/h2", "/p", "/li", "/div", "/button", "/strong", "/option", "/label", "/span"];
        text.push_str(rest);
        if ends_line.contains(&tag) {
            text.push('\n');
        }
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

async fn set_access(server: &Server, tenant: TenantId, access: DeveloperAccess) {
    server.svc.account(tenant).change_settings(move |tenant| tenant.developer_access = access).await.unwrap();
}

#[tokio::test]
async fn an_owner_sees_who_asks_for_what_and_where_the_browser_returns() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    let website = "https://www.planner.example:8443/about?x#y".parse().unwrap();
    let change = AppUpdate { website: Some(Some(website)), ..AppUpdate::default() };
    server.svc.apps().update(app.id, change).await.unwrap();
    let owner = server.signed_in(Role::Owner).await;
    let written = text(&ask(&owner, &authorize(&app, &[])).await);
    assert_eq!(
        written,
        "Connect an app\n\
         Route Planner\n\
         www.planner.example:8443\n\
         It asks for access to Harbour Plumbing. You are signed in as owner@link.\n\
         Allowing lets it\n\
         See all contacts, invoices, quotes, bookings and jobs\n\
         Create them, send invoices, and record payments\n\
         Change contacts, quotes, bookings and jobs, and delete contacts\n\
         Get what happens to them by webhooks of its own\n\
         Allowing does not let it\n\
         See API keys, members, settings, or webhooks that are not its own\n\
         Allow\n\
         Deny\n\
         You return to planner.example. Go on only if you came from there.\n\
         An owner can end the access at any time, in Settings under Connected apps."
    );
    let read = text(&ask(&owner, &authorize(&app, &[("scope", "read")])).await);
    assert!(read.contains("bookings and jobs\nAllowing does not let it\nChange anything\nSee API keys"), "{read}");
}

#[tokio::test]
async fn allow_and_deny_both_return_to_the_app() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    let owner = server.signed_in(Role::Owner).await;
    let request = authorize(&app, &[]);
    let denied = owner.decide(&request, "deny", server.tenant).await;
    let tail = "state=a%26b&iss=https%3A%2F%2Fsvc.example";
    let description = "The+owner+of+the+account+said+no.";
    assert_eq!(location(&denied), format!("{RETURN}?error=access_denied&error_description={description}&{tail}"));
    assert_eq!(connected(&server).await, []);
    let allowed = owner.decide(&request, "allow", server.tenant).await;
    let url = location(&allowed);
    assert!(url.starts_with(&format!("{RETURN}?code=svc_oac_")) && url.ends_with(tail), "{url}");
    assert_eq!(connected(&server).await, [server.tenant]);
}

#[tokio::test]
async fn each_kind_of_session_gets_what_it_may_grant() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    let request = authorize(&app, &[]);
    let both = [(server.tenant, Role::Owner), (server.other, Role::Owner)];
    let one = [(server.tenant, Role::Developer), (server.other, Role::Owner)];
    let viewer = server.signed_in(Role::Viewer).await;
    let developer = server.signed_in(Role::Developer).await;
    let operator = server.signed_in_by(DashboardLinkCreate::for_operator()).await;
    let session = server.svc.dashboard().sessions(None).await.unwrap().remove(0);
    server.svc.dashboard().view(session.id, Some(server.tenant)).await.unwrap();
    for (browser, reason) in [
        (&viewer, "owns no account here"),
        (&developer, "owns no account here"),
        (&operator, "You are signed in as an operator, and only an owner of an account can connect an app."),
    ] {
        let page = ask(browser, &request).await;
        assert!(text(&page).starts_with("You cannot connect this app\nRoute Planner"), "{}", text(&page));
        assert!(page.text.contains(reason) && !page.text.contains("value=\"allow\""), "{}", text(&page));
        // A form that was made up grants nothing.
        let refused = browser.decide(&request, "allow", server.tenant).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    }
    assert_eq!(connected(&server).await, []);

    // Of two accounts of which one is owned, that one.
    let ada = server.signed_in_member("ada@example.com", &one).await;
    let page = ask(&ada, &request).await;
    assert!(text(&page).contains("It asks for access to Hill Electric."), "{}", text(&page));
    assert_eq!(ada.decide(&request, "allow", server.tenant).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(connected(&server).await, []);

    // Of two owned ones, none is chosen before the person has chosen.
    let bob = server.signed_in_member("bob@example.com", &both).await;
    let page = ask(&bob, &request).await;
    assert!(page.text.contains(r#"<option value="">Choose an account</option>"#), "{}", page.text);
    let nothing = bob.decide(&request, "allow", TenantId(uuid::Uuid::nil())).await;
    assert_eq!(nothing.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(nothing.text.contains("Choose an account that you own."), "{}", nothing.text);
    assert!(location(&bob.decide(&request, "allow", server.other).await).contains("code=svc_oac_"));
    assert_eq!(connected(&server).await, [server.other]);
    let (grant, _) = server.svc.account(server.other).grants().list().await.unwrap().remove(0);
    assert_eq!(grant.member, "bob@example.com");
    // The account in view is chosen, and asked for only once.
    bob.post(&format!("/switch/{}", server.tenant), "").await;
    let page = ask(&bob, &request).await;
    let chosen = format!("<option value=\"{}\" selected>Harbour Plumbing</option>", server.tenant);
    assert!(page.text.contains(&chosen) && !page.text.contains("Choose an account<"), "{}", page.text);
    bob.post(&format!("/switch/{}", server.other), "").await;
    assert!(location(&ask(&bob, &request).await).contains("code=svc_oac_"));
}

#[tokio::test]
async fn an_app_can_be_tried_on_a_sandbox() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    let request = authorize(&app, &[]);
    let sandbox = server.svc.account(server.tenant).sandbox().create().await.unwrap().sandbox.id;
    let foreign = server.svc.account(server.other).sandbox().create().await.unwrap().sandbox.id;
    let owner = server.signed_in(Role::Owner).await;
    let member = server.signed_in_member("ada@example.com", &[(server.tenant, Role::Owner)]).await;
    let developer = server.signed_in_member("bob@example.com", &[(server.tenant, Role::Developer)]).await;
    for browser in [&owner, &member] {
        let page = ask(browser, &request).await;
        assert!(text(&page).contains("It asks for access to one of your accounts."), "{}", text(&page));
        // The account in view is chosen, and its sandbox offered.
        let options = format!(
            "<option value=\"{}\" selected>Harbour Plumbing</option>\
             <option value=\"{sandbox}\">Harbour Plumbing (sandbox)</option></select>",
            server.tenant
        );
        assert!(page.text.contains(&options), "{}", page.text);
        let refused = browser.decide(&request, "allow", foreign).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    }
    let refused = developer.decide(&request, "allow", sandbox).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    let grants = async |tenant| server.svc.account(tenant).grants().list().await.unwrap().len();
    assert_eq!((grants(server.tenant).await, grants(sandbox).await), (0, 0));

    owner.post("/settings/sandbox/open", "").await;
    let page = ask(&owner, &request).await;
    assert!(page.text.contains(&format!("<option value=\"{sandbox}\" selected>")), "{}", page.text);
    assert!(location(&owner.decide(&request, "allow", sandbox).await).contains("code=svc_oac_"));
    assert_eq!((grants(server.tenant).await, grants(sandbox).await), (0, 1));
    // Who has it in view is asked only once.
    assert!(location(&ask(&owner, &request).await).contains("code=svc_oac_"));
    assert_eq!(ask(&member, &request).await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_account_without_developer_access_is_explained() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    let request = authorize(&app, &[]);
    set_access(&server, server.tenant, DeveloperAccess::Suspended).await;
    let owner = server.signed_in(Role::Owner).await;
    let page = ask(&owner, &request).await;
    assert!(text(&page).contains("Developer access of Harbour Plumbing is suspended, so no app can work on it."));
    assert!(!page.text.contains("value=\"allow\""));
    let refused = owner.decide(&request, "allow", server.tenant).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);

    let both = [(server.tenant, Role::Owner), (server.other, Role::Owner)];
    let ada = server.signed_in_member("ada@example.com", &both).await;
    let page = ask(&ada, &request).await;
    let option = "disabled>Harbour Plumbing (developer access is suspended)</option>";
    assert!(page.text.contains(option), "{}", page.text);
    assert_eq!(ada.decide(&request, "allow", server.tenant).await.status, StatusCode::CONFLICT);
    assert_eq!(connected(&server).await, []);
    assert!(location(&owner.decide(&request, "deny", server.tenant).await).contains("error=access_denied"));
}

#[tokio::test]
async fn signing_in_in_between_leads_back() {
    let server = Server::start().await;
    let app = server.app(None, "Route <b>Planner").await;
    let request = authorize(&app, &[]);
    let mut browser = server.browser();
    let sent = ask(&browser, &request).await;
    assert_eq!(location(&sent), "/dashboard/sign-in");
    let kept = sent.headers[SET_COOKIE].to_str().unwrap().to_owned();
    assert!(kept.ends_with("; HttpOnly; SameSite=Lax; Path=/; Max-Age=600"), "{kept}");
    browser.cookie = Some(kept.split(';').next().unwrap().to_owned());
    let page = browser.get("/sign-in").await;
    let waiting = "<bdi>Route &lt;b&gt;Planner</bdi> asks for access to an account. Sign in to see what it asks for.";
    assert!(page.text.contains(waiting), "{}", page.text);
    let link = server.link(DashboardLinkCreate::to(server.tenant, Role::Owner)).await;
    let page = browser.get(&format!("/sign-in?token={}", link.token.reveal())).await;
    assert!(page.text.contains("After that you see what <bdi>Route &lt;b&gt;Planner</bdi> asks for."), "{}", page.text);
    let signed_in = browser.sign_in(link.token.reveal()).await;
    assert_eq!(location(&signed_in), request);
    let cookies: Vec<&str> = signed_in.headers.get_all(SET_COOKIE).iter().map(|c| c.to_str().unwrap()).collect();
    assert!(cookies.iter().any(|cookie| cookie.starts_with("svc_authorize=;")), "it is forgotten: {cookies:?}");
    let session = cookies.iter().find(|cookie| cookie.starts_with("svc_session=")).unwrap();
    browser.cookie = session.split(';').next().map(str::to_owned);
    assert_eq!(ask(&browser, &request).await.status, StatusCode::OK);
    // Without a request that could be put to an owner, the sign-in page names no app.
    let change = AppUpdate { disabled: Some(true), ..AppUpdate::default() };
    server.svc.apps().update(app.id, change).await.unwrap();
    browser.cookie = Some(kept.split(';').next().unwrap().to_owned());
    assert!(!browser.get("/sign-in").await.text.contains("Planner"));
    // With prompt=none there is no page.
    let never = ask(&server.browser(), &authorize(&server.app(None, "Other").await, &[("prompt", "none")])).await;
    assert!(location(&never).starts_with(&format!("{RETURN}?error=login_required&")));
}

/// Returns the cookie that keeps a request until its owner has signed in.
fn kept(response: &Response) -> String {
    let cookies = response.headers.get_all(SET_COOKIE).iter().map(|cookie| cookie.to_str().unwrap());
    let mut kept = cookies.filter(|cookie| cookie.starts_with("svc_authorize=")).map(|c| c.split(';').next().unwrap());
    kept.next_back().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_state_survives_a_sign_in_whatever_it_consists_of() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    for state in ["\"".repeat(900), "a".repeat(2048), "ü".repeat(1024), "\0 &=#%;".repeat(200)] {
        let request = authorize(&app, &[("state", &state)]);
        let mut browser = server.browser();
        let sent = ask(&browser, &request).await;
        assert_eq!(location(&sent), "/dashboard/sign-in");
        assert!(kept(&sent).len() < 4000);
        browser.cookie = Some(kept(&sent));
        let link = server.link(DashboardLinkCreate::to(server.tenant, Role::Owner)).await;
        let signed_in = browser.sign_in(link.token.reveal()).await;
        let target = location(&signed_in).to_owned();
        let query = target.strip_prefix("/oauth/authorize?").unwrap();
        let states = url::form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "state");
        assert_eq!(states.map(|(_, value)| value.into_owned()).collect::<Vec<_>>(), [state]);
        let owner = server.signed_in(Role::Owner).await;
        assert_eq!(ask(&owner, &target).await.status, StatusCode::OK);
    }
}

/// A person who came from one app is never asked for another.
#[tokio::test]
async fn a_request_that_is_not_kept_ends_the_one_before_it() {
    let server = Server::start().await;
    let (planner, ledger) = (server.app(None, "Planner").await, server.app(None, "Ledger").await);
    let mut browser = server.browser();
    let first = kept(&ask(&browser, &authorize(&planner, &[])).await);
    browser.cookie = Some(first.clone());
    let next = kept(&ask(&browser, &authorize(&ledger, &[("state", &"\"".repeat(900))])).await);
    browser.cookie = Some(next);
    let page = browser.get("/sign-in").await;
    assert!(page.text.contains("Ledger") && !page.text.contains("Planner"), "{}", page.text);
    for refused in [
        authorize(&ledger, &[("state", &"a".repeat(2049))]),
        authorize(&ledger, &[("prompt", "none")]),
        authorize(&ledger, &[("redirect_uri", "https://evil.example/")]),
        authorize(&ledger, &[("scope", "admin")]),
        "/oauth/authorize".to_owned(),
    ] {
        browser.cookie = Some(first.clone());
        assert_eq!(kept(&ask(&browser, &refused).await), "svc_authorize=", "{refused}");
    }
}

/// An app asks again for an owner who has not granted it the access.
#[tokio::test]
async fn the_grant_names_the_owner_who_allowed_it_last() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    let roles = [(server.tenant, Role::Owner)];
    for (email, roles, changes) in
        [("ada@example.com", &roles[..], 1), ("bob@example.com", &roles[..], 2), ("bob@example.com", &[], 2)]
    {
        let owner = server.signed_in_member(email, roles).await;
        let request = authorize(&app, &[("prompt", "consent")]);
        let page = ask(&owner, &request).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        let returned = owner.decide(&request, "allow", server.tenant).await;
        assert!(location(&returned).contains("code=svc_oac_"));
        let grants = server.svc.account(server.tenant).grants().list().await.unwrap();
        assert_eq!((grants.len(), grants[0].0.member.as_str()), (1, email));
        let log = server.svc.account(server.tenant).audit_log();
        let log = log.since(svc_core::values::Timestamp::from_micros(0), 100).await.unwrap();
        assert_eq!(log.iter().filter(|entry| entry.object_kind == "grant").count(), changes);
    }
}

#[tokio::test]
async fn an_application_mounts_the_page() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    let oauth = OauthSettings::new("https://shop.example".parse().unwrap());
    let (api, _) = Builder::new(&server.svc).oauth(oauth).mount("/business").build();
    let server = server.serving(api);
    let request = authorize(&app, &[]);
    // The application takes the mount off before it passes a request on.
    let sent = ask(&server.browser(), &request).await;
    assert_eq!(location(&sent), "/business/dashboard/sign-in");
    let kept = sent.headers[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    let mut browser = server.browser();
    browser.cookie = Some(kept);
    let link = server.link(DashboardLinkCreate::to(server.tenant, Role::Owner)).await;
    assert_eq!(location(&browser.sign_in(link.token.reveal()).await), format!("/business{request}"));
    let owner = server.signed_in(Role::Owner).await;
    let page = ask(&owner, &request).await.text;
    assert!(page.contains("action=\"/business/oauth/authorize?response_type=code"), "{page}");
    let allowed = owner.decide(&request, "allow", server.tenant).await;
    assert!(location(&allowed).ends_with("&iss=https%3A%2F%2Fshop.example%2Fbusiness"), "{}", location(&allowed));
    // The metadata is behind the well-known path of the host (RFC 8414 §3.1, RFC 9728 §3.1).
    for path in ["oauth-authorization-server/business", "oauth-protected-resource/business/api/v1"] {
        let metadata = ask(&server.browser(), &format!("/.well-known/{path}")).await;
        assert_eq!(metadata.status, StatusCode::OK, "{path}");
        assert!(metadata.text.contains("\"https://shop.example/business"), "{}", metadata.text);
    }
}

#[tokio::test]
async fn nobody_shows_the_page_in_a_frame() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    let frame_ancestor = Some("https://portal.example".parse().unwrap());
    let oauth = Some(OauthSettings::new("https://svc.example".parse().unwrap()));
    let dashboard = Some(DashboardSettings { frame_ancestor, oauth, ..DashboardSettings::default() });
    let surfaces = Surfaces { dashboard, ..Surfaces::default() };
    let (api, _) = Builder::new(&server.svc).surfaces(surfaces).build();
    let server = server.serving(api);
    let owner = server.signed_in(Role::Owner).await;
    let dashboard = owner.get("/").await;
    let policy = |response: &Response| response.headers[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
    assert!(policy(&dashboard).ends_with("frame-ancestors https://portal.example"));
    let form = "decision=allow";
    for response in [
        ask(&owner, &authorize(&app, &[])).await,
        ask(&owner, &authorize(&app, &[("client_id", "svcapp_none")])).await,
        ask(&server.browser(), &authorize(&app, &[])).await,
        owner.send_to(Method::POST, &authorize(&app, &[]), form, None).await,
        owner.send_to(Method::DELETE, &authorize(&app, &[]), "", None).await,
    ] {
        // The form leads to the host of the app, which form-action would have to name.
        assert_eq!(
            policy(&response),
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; base-uri 'none'; \
             frame-ancestors 'none'"
        );
        assert_eq!(response.headers[X_FRAME_OPTIONS], "DENY");
        assert_eq!(response.headers["cache-control"], "no-store");
    }
}

#[tokio::test]
async fn a_form_of_another_page_or_session_grants_nothing() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    let request = authorize(&app, &[]);
    let (owner, other) = (server.signed_in(Role::Owner).await, server.signed_in(Role::Owner).await);
    let csrf = owner.csrf().await;
    let form = |csrf: &str| format!("decision=allow&account={}&csrf={csrf}", server.tenant);
    for (form, origin) in [
        (form(""), Some(ORIGIN_URL)),
        (form("00"), Some(ORIGIN_URL)),
        (form(&other.csrf().await), Some(ORIGIN_URL)),
        (form(&csrf), None),
        (form(&csrf), Some("null")),
        (form(&csrf), Some("http://planner.example")),
    ] {
        let response = owner.send_to(Method::POST, &request, &form, origin).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{form} {origin:?}");
    }
    let neither = format!("account={}&csrf={csrf}", server.tenant);
    let response = owner.send_to(Method::POST, &request, &neither, Some(ORIGIN_URL)).await;
    assert_eq!(response.status, StatusCode::UNPROCESSABLE_ENTITY);
    let response = server.browser().send_to(Method::POST, &request, &form(&csrf), Some(ORIGIN_URL)).await;
    assert_eq!(location(&response), "/dashboard/sign-in");
    assert_eq!(connected(&server).await, []);
}

#[tokio::test]
async fn the_names_of_an_app_and_of_accounts_are_text() {
    let server = Server::start().await;
    let app = server.app(None, "\u{202e}<img src=x>\u{2069} תכנן & \"Co\"").await;
    let hostile = "<i>Harbour</i>".to_owned();
    server.svc.account(server.tenant).change_settings(move |tenant| tenant.name.clone_from(&hostile)).await.unwrap();
    let owner = server.signed_in(Role::Owner).await;
    let page = ask(&owner, &authorize(&app, &[])).await.text;
    assert!(page.contains("<strong><bdi>&lt;img src=x&gt; תכנן &amp; &quot;Co&quot;</bdi></strong>"), "{page}");
    assert!(page.contains("<b>&lt;i&gt;Harbour&lt;/i&gt;</b>"), "{page}");
    assert!(!page.contains('\u{202e}') && !page.contains("<img"));
}

#[tokio::test]
async fn an_app_or_an_address_that_is_not_known_gets_a_page_and_no_redirect() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    let owner = server.signed_in(Role::Owner).await;
    let page = |app: &App, other: (&'static str, &'static str)| authorize(app, &[other]);
    for (request, reason) in [
        (page(&app, ("client_id", "svcapp_none")), "There is no app with this client_id."),
        (page(&app, ("redirect_uri", "https://attacker.example/")), "none of those that the app has registered"),
    ] {
        for browser in [&owner, &server.browser()] {
            let refused = ask(browser, &request).await;
            assert_eq!((refused.status, refused.headers.get(LOCATION)), (400, None));
            assert!(refused.text.contains("This app cannot be connected") && refused.text.contains(reason));
        }
    }
}

#[tokio::test]
async fn over_tls_the_cookie_of_a_neighbour_does_not_count() {
    let server = Server::start().await;
    let app = server.app(None, "Route Planner").await;
    let request = authorize(&app, &[]);
    let send = async |cookie: &str| {
        let request = Request::get("/dashboard/sign-in")
            .header(HOST, "svc.example")
            .header(ORIGIN, "https://svc.example")
            .header(COOKIE, cookie);
        server.send(request.body(Full::default()).unwrap()).await.text
    };
    let kept = ask(&server.browser(), &request).await.headers[SET_COOKIE].to_str().unwrap().to_owned();
    let kept = kept.split(';').next().unwrap();
    assert!(!send(kept).await.contains("Route Planner"));
    assert!(send(&format!("__Host-{kept}")).await.contains("Route Planner"));
}
