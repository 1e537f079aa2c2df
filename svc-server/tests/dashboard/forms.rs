//! Forms: what they change, who is recorded, and what they say to bad input.

use http::StatusCode;
use svc_core::accounts::keys::KeyCreate;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;

use super::browser::{Browser, Server, encode, without_labels};
use super::invoice_actions::hidden;

/// A text that must be shown as it is.
const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}";

#[tokio::test]
async fn a_key_is_shown_once_and_recorded_under_the_person() {
    let server = Server::start().await;
    let link = DashboardLinkCreate::to(server.tenant, Role::Owner).identity("ada@example.com");
    let owner = server.signed_in_by(link).await;
    let form = encode(&[("name", "Reports"), ("scopes", "write"), ("expires", "30"), ("signed", "on")]);
    let created = owner.post("/keys/new", &form).await;
    assert_eq!(created.status, StatusCode::OK);
    let shown = |start: &str| created.text.split(start).nth(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    let key = shown("value=\"svc_live_").unwrap();
    let secret = shown("value=\"svcsig_").unwrap();
    assert!(created.text.contains("curl 'http://localhost:8080/api/v1/contacts' -H"), "{}", created.text);
    let list = owner.get("/keys").await.text;
    assert!(list.contains("Reports") && !list.contains(&key) && !list.contains(&secret));
    let account = server.svc.account(server.tenant);
    let stored = account.keys().list().await.unwrap().remove(0);
    assert_eq!(stored.expires_at.unwrap().since(stored.created_at).as_secs(), 30 * 24 * 60 * 60);
    let log = account.audit_log().since(Timestamp::from_micros(0), 10).await.unwrap();
    let entry = log.iter().find(|entry| entry.object_kind == "key").unwrap();
    assert_eq!((entry.actor.as_str(), entry.action.as_str()), ("dashboard:ada@example.com", "create"));

    let revoked = owner.post(&format!("/keys/{}/revoke", stored.id), "").await;
    assert_eq!(revoked.status, StatusCode::SEE_OTHER);
    assert!(account.keys().get(stored.id).await.unwrap().revoked_at.is_some());
    assert!(owner.get("/keys?notice=key-revoked").await.text.contains("The key was revoked."));
}

#[tokio::test]
async fn a_key_is_rotated_with_an_overlap() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.account(server.tenant);
    let old = account.keys().create(KeyCreate::default()).await.unwrap().key;
    let rotated = owner.post(&format!("/keys/{}/rotate", old.id), "overlap=1").await;
    assert!(rotated.text.contains("value=\"svc_live_"), "{}", rotated.text);
    let old = account.keys().get(old.id).await.unwrap();
    assert_eq!(old.expires_at, server.svc.store().env().now().checked_add(std::time::Duration::from_secs(60 * 60)));
    let bad = owner.post(&format!("/keys/{}/rotate", old.id), "overlap=x").await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn bad_input_is_shown_again_with_its_error() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let long = HOSTILE.repeat(20);
    for (form, errors) in [
        (encode(&[("name", &long), ("scopes", "read"), ("expires", "30")]), &["at most 300 characters"][..]),
        (encode(&[("name", "a\nb"), ("scopes", "read")]), &["one line"]),
        (
            encode(&[("name", HOSTILE), ("scopes", "all"), ("expires", "1")]),
            &["Choose what the key may do", "Choose one"],
        ),
        (String::new(), &["Choose what the key may do"]),
    ] {
        let again = owner.post("/keys/new", &form).await;
        assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
        for error in errors {
            assert!(again.text.contains(error), "{error}: {}", again.text);
        }
        assert!(again.text.contains("aria-invalid=\"true\"") && !again.text.contains("<script>alert"));
    }
    let again = owner.post("/keys/new", &encode(&[("name", HOSTILE), ("scopes", "x")])).await.text;
    assert!(
        again.contains("value=\"&lt;script&gt;alert(1)&lt;/script&gt;&quot;'&amp;\u{202e}\""),
        "nothing is lost: {again}"
    );
    assert!(server.svc.account(server.tenant).keys().list().await.unwrap().is_empty());
}

#[tokio::test]
async fn hostile_names_are_shown_as_text() {
    let server = Server::start().await;
    let account = server.svc.account(server.tenant);
    account.change_settings(|tenant| tenant.name = HOSTILE.repeat(400)).await.unwrap();
    account.keys().create(KeyCreate { name: Some(HOSTILE.to_owned()), ..KeyCreate::default() }).await.unwrap();
    let link = DashboardLinkCreate::to(server.tenant, Role::Owner).identity(HOSTILE);
    let owner = server.signed_in_by(link).await;
    for path in ["/", "/keys", "/keys/new"] {
        let page = owner.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.text.contains("&lt;script&gt;alert(1)") && !page.text.contains("<script>alert"), "{path}");
    }
}

#[tokio::test]
async fn settings_are_saved_or_shown_again() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let page = owner.get("/settings").await.text;
    assert!(page.contains("value=\"Harbour Plumbing\"") && page.contains("value=\"UTC\""), "{page}");
    let form = encode(&[("name", "Harbour & Sons"), ("time_zone", "Australia/Sydney"), ("currency", "nzd")]);
    assert_eq!(owner.post("/settings", &form).await.status, StatusCode::SEE_OTHER);
    let settings = server.svc.account(server.tenant).settings().await.unwrap();
    let saved = (settings.name.as_str(), settings.time_zone.to_string(), settings.currency.to_string());
    assert_eq!(saved, ("Harbour & Sons", "Australia/Sydney".to_owned(), "NZD".to_owned()));
    assert!(!settings.unique_contact_email);

    let bad = encode(&[("name", ""), ("time_zone", "Mars/Olympus"), ("currency", "euros")]);
    let again = owner.post("/settings", &bad).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    for kept in ["The name must not be empty", "The time zone must be", "value=\"Mars/Olympus\"", "value=\"euros\""] {
        assert!(again.text.contains(kept), "{kept}: {}", again.text);
    }
    assert_eq!(server.svc.account(server.tenant).settings().await.unwrap(), settings);
    let log = without_labels(&owner.get("/audit").await.text);
    assert!(log.contains("updated account") && log.contains("→ Harbour &amp; Sons"), "{log}");
    assert!(log.contains("<td>owner@link</td>"), "{log}");
}

/// Sends a form twice, and once more as it was before a change by somebody else. Returns the last response.
async fn send_again(
    browser: &Browser<'_>,
    page: &str,
    path: &str,
    form: &str,
    meanwhile: impl AsyncFnOnce(),
) -> String {
    let first = format!("{}&{form}", hidden(&browser.get(page).await.text, path));
    for time in ["first", "second"] {
        assert_eq!(browser.post(path, &first).await.status, StatusCode::SEE_OTHER, "the {time} time");
    }
    let stale = format!("{}&{form}", hidden(&browser.get(page).await.text, path));
    meanwhile().await;
    let refused = browser.post(path, &stale).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    assert!(refused.text.contains("It was changed after this page was loaded"), "{}", refused.text);
    let fresh = format!("{}&{form}", hidden(&refused.text, path));
    assert_eq!(browser.post(path, &fresh).await.status, StatusCode::SEE_OTHER, "the page has a new form");
    refused.text
}

/// Returns how often the settings of an account were changed.
async fn updates(server: &Server, tenant: TenantId) -> usize {
    let log = server.svc.account(tenant).audit_log().since(Timestamp::from_micros(0), 100).await.unwrap();
    log.iter().filter(|entry| (entry.object_kind.as_str(), entry.action.as_str()) == ("tenant", "update")).count()
}

#[tokio::test]
async fn settings_that_somebody_else_has_changed_are_not_overwritten() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let form = encode(&[("name", "Harbour & Sons"), ("time_zone", "UTC"), ("currency", "AUD")]);
    let account = server.svc.account(server.tenant);
    let meanwhile = async || {
        assert_eq!(updates(&server, server.tenant).await, 1, "the form was sent twice");
        account.change_settings(|tenant| tenant.name = "Harbour Ltd".to_owned()).await.unwrap();
    };
    let refused = send_again(&owner, "/settings", "/settings", &form, meanwhile).await;
    assert!(refused.contains("value=\"Harbour Ltd\""), "{refused}");
    assert_eq!(updates(&server, server.tenant).await, 3);
}

#[tokio::test]
async fn limits_that_somebody_else_has_changed_are_not_overwritten() {
    let server = Server::start().await;
    let operator = server.signed_in_by(DashboardLinkCreate::for_operator()).await;
    let page = format!("/accounts/{}", server.other);
    let account = server.svc.account(server.other);
    let meanwhile = async || {
        assert_eq!(updates(&server, server.other).await, 1, "the form was sent twice");
        account.change_settings(|tenant| tenant.max_webhooks = Some(9)).await.unwrap();
    };
    let refused = send_again(&operator, &page, &format!("{page}/limits"), "rate_limit=600", meanwhile).await;
    assert!(refused.contains("name=\"max_webhooks\" type=\"text\" value=\"9\""), "{refused}");
    assert_eq!(updates(&server, server.other).await, 3);
}

#[tokio::test]
async fn an_owner_revokes_the_session_of_another_person() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let viewer = server.signed_in(Role::Viewer).await;
    let sessions = server.svc.dashboard().sessions(Some(server.tenant)).await.unwrap();
    let of_viewer = sessions.iter().find(|session| session.role == Role::Viewer).unwrap();
    let revoked = owner.post(&format!("/settings/sessions/{}/revoke", of_viewer.id), "").await;
    assert_eq!(revoked.status, StatusCode::SEE_OTHER);
    assert_eq!(viewer.get("/").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(owner.get("/").await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_operator_approves_limits_and_looks_at_an_account() {
    let server = Server::start().await;
    let operator = server.signed_in_by(DashboardLinkCreate::for_operator()).await;
    let path = format!("/accounts/{}", server.other);
    let later = || server.clock.advance(std::time::Duration::from_millis(1));
    later();
    assert_eq!(operator.post(&format!("{path}/access"), "access=suspended").await.status, StatusCode::SEE_OTHER);
    let bad = operator.post(&format!("{path}/limits"), "rate_limit=0&quotes=many&max_webhooks=1001").await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(bad.text.matches("aria-invalid").count(), 3, "{}", bad.text);
    let limits = operator.post(&format!("{path}/limits"), "rate_limit=600&quotes=5&max_webhooks=7").await;
    assert_eq!(limits.status, StatusCode::SEE_OTHER);
    let other = server.svc.accounts().get(server.other).await.unwrap();
    assert_eq!((other.limits.to_text().as_str(), other.max_webhooks), ("all=600 quotes=5", Some(7)));

    later();
    assert_eq!(operator.post(&format!("{path}/view"), "").await.status, StatusCode::SEE_OTHER);
    let page = operator.get("/").await;
    assert!(page.text.contains("Hill Electric") && page.text.contains("as an operator"), "{}", page.text);
    assert!(page.text.contains("suspended"), "the account has no access: {}", page.text);
    assert_eq!(operator.get("/keys/new").await.status, StatusCode::FORBIDDEN);
    assert_eq!(operator.post("/accounts/leave", "").await.status, StatusCode::SEE_OTHER);
    assert_eq!(operator.get("/").await.status, StatusCode::SEE_OTHER);
    let log = server.svc.account(server.other).audit_log().before(None, 10).await.unwrap();
    let actions: Vec<(&str, &str)> = log.iter().map(|entry| (entry.action.as_str(), entry.actor.as_str())).collect();
    let by = "dashboard:operator@link";
    assert_eq!(actions[..3], [("view", by), ("update", by), ("update", by)]);
}

#[tokio::test]
async fn accounts_are_searched_by_name_and_id() {
    let server = Server::start().await;
    let operator = server.signed_in_by(DashboardLinkCreate::for_operator()).await;
    let has = |text: &str| (text.contains("Harbour Plumbing"), text.contains("Hill Electric"));
    assert_eq!(has(&operator.get("/accounts").await.text), (true, true));
    assert_eq!(has(&operator.get("/accounts?search=hill").await.text), (false, true));
    assert_eq!(has(&operator.get(&format!("/accounts?search={}", server.tenant)).await.text), (true, false));
    let nothing = operator.get(&format!("/accounts?{}", encode(&[("search", HOSTILE)]))).await.text;
    assert!(nothing.contains("Nothing found") && !nothing.contains("<script>alert"), "{nothing}");
    for number in 0..60 {
        server.svc.accounts().create(TenantCreate::named(&format!("Account {number:02}"))).await.unwrap();
        server.clock.advance(std::time::Duration::from_millis(1));
    }
    let first = operator.get("/accounts?search=account").await.text;
    assert!(first.contains("Account 49") && !first.contains("Account 50"));
    let next = first.split("/dashboard/accounts?").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    let second = operator.get(&format!("/accounts?{next}")).await.text;
    assert!(!second.contains("Account 49") && second.contains("Account 50") && second.contains("Account 59"));
}

#[tokio::test]
async fn records_are_found_and_have_a_history() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let account = server.svc.account(server.tenant);
    let ada = server.contact("ada@example.com").await;
    for number in 0..60 {
        server.contact(&format!("c{number:02}@example.com")).await;
    }
    let first = viewer.get("/contacts").await.text;
    assert!(first.contains("c59@example.com") && !first.contains("c09@example.com"));
    let next = first.split("/dashboard/contacts?").find(|query| query.starts_with("cursor=")).unwrap();
    let next = next.split('"').next().unwrap();
    let older = viewer.get(&format!("/contacts?{next}")).await.text;
    assert!(!older.contains("c10@example.com") && older.contains("c09@example.com") && older.contains("ada@"));
    let found = viewer.get("/contacts?search=ADA%40example.com").await.text;
    assert!(found.contains("ada@example.com") && !found.contains("c59@"), "{found}");
    let by_id = viewer.get(&format!("/contacts?search={}", ada.id)).await;
    assert_eq!(by_id.headers["location"], format!("/dashboard/contacts/{}", ada.id));
    let bad = viewer.get("/contacts?search=ada%40").await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(bad.text.contains("The email address must") && bad.text.contains("value=\"ada@\""), "{}", bad.text);
    for path in ["/contacts", "/invoices", "/quotes", "/bookings", "/jobs"] {
        let others = viewer.get(&format!("{path}?search=Ada+%26+Co")).await;
        assert_eq!(others.headers["location"], "/dashboard/find?q=Ada+%26+Co", "{path}");
    }
    let part = viewer.get("/invoices?search=0012").await;
    assert_eq!(part.headers["location"], "/dashboard/find?q=0012", "a part of a number");
    // A text that one contact alone has means its records, and one that several have is looked for everywhere.
    for path in ["/invoices", "/quotes", "/bookings", "/jobs"] {
        let of = async |text: &str| viewer.get(&format!("{path}?search={text}")).await.headers["location"].clone();
        assert_eq!(of("ada").await, format!("/dashboard{path}?contact={}", ada.id), "{path}");
        assert_eq!(of("example.com").await, "/dashboard/find?q=example.com", "{path}");
    }
    assert_eq!(viewer.get("/invoices?status=eaten").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let none = viewer.get("/invoices").await.text;
    assert!(none.contains("No invoices yet") && !none.contains("New invoice"), "a viewer may create none: {none}");
    let none = server.signed_in(Role::Developer).await.get("/quotes").await.text;
    assert!(none.contains("No quotes yet") && none.contains("href=\"/dashboard/quotes/new\""), "{none}");

    let invoice = InvoiceCreate { contact_id: Some(ada.id), ..InvoiceCreate::new("149.50".parse().unwrap()) };
    let invoice = account.invoices().create(invoice).await.unwrap();
    account.invoices().send(invoice.id).await.unwrap();
    let page = viewer.get(&format!("/invoices/{}", invoice.id)).await.text;
    for shown in ["INV-0001", "149.5", "Sent invoice", &format!("/dashboard/contacts/{}", ada.id)] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(viewer.get("/invoices?status=sent").await.text.contains("INV-0001"));
    assert!(viewer.get("/invoices?status=paid").await.text.contains("Nothing found"));

    let drain = BookingCreate::new(ada.id, "Blocked drain".parse().unwrap(), "2026-03-21T09:00:00Z".parse().unwrap());
    let booking = account.bookings().create(drain).await.unwrap();
    assert!(viewer.get("/bookings?status=confirmed").await.text.contains(&booking.id.to_string()));
    assert!(viewer.get("/bookings?status=no_show").await.text.contains("Nothing found"));
}

#[tokio::test]
async fn the_audit_log_has_pages() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let account = server.svc.account(server.tenant);
    for number in 0..60 {
        server.clock.advance(std::time::Duration::from_secs(1));
        let email = format!("c{number:02}@example.com").parse().unwrap();
        account.contacts().create(ContactCreate::new(email)).await.unwrap();
    }
    let first = viewer.get("/audit").await.text;
    assert_eq!(first.matches("created contact").count(), 50);
    let next = first.split("/dashboard/audit?").nth(1).unwrap().split('"').next().unwrap();
    let second = viewer.get(&format!("/audit?{next}")).await.text;
    assert_eq!(second.matches("created contact").count(), 10);
    assert!(second.contains("created account") && second.contains("created session"), "{second}");
}
