//! The address at which calendar programs subscribe to the calendar.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, LOCATION};
use http::{Request, StatusCode};
use http_body_util::Full;
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::DeveloperAccess;
use svc_core::prelude::*;

use super::browser::{Browser, Response, Server, encode};
use super::records::text;

/// Presses the button that creates or renews the address, and returns the address.
async fn create(owner: &Browser<'_>) -> String {
    let page = owner.get("/calendar").await.text;
    let form = page.split("action=\"/dashboard/calendar/address\"").nth(1).unwrap().split("</form>").next().unwrap();
    let value = |name: &str| {
        let field = form.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap();
        field.split('"').next().unwrap().to_owned()
    };
    let fields = format!("key={}&version={}", value("key"), value("version"));
    // A form that is sent twice makes one address.
    for _ in 0..2 {
        let made = owner.post("/calendar/address", &fields).await;
        assert_eq!(made.headers[LOCATION], "/dashboard/calendar?notice=calendar-address", "{}", made.text);
    }
    address(&owner.get("/calendar").await.text).unwrap()
}

/// Returns the address on the page of the calendar, below the origin.
fn address(page: &str) -> Option<String> {
    Some(page.split("value=\"http://localhost:8080").nth(1)?.split('"').next()?.to_owned())
}

async fn get(server: &Server, address: &str, etag: Option<&str>) -> Response {
    let mut request = Request::get(address).header(HOST, "localhost:8080");
    if let Some(etag) = etag {
        request = request.header(IF_NONE_MATCH, etag);
    }
    server.send(request.body(Full::default()).unwrap()).await
}

#[tokio::test]
async fn programs_read_the_calendar_at_its_address_until_it_is_renewed_or_revoked() {
    let server = Server::start().await;
    let ada = server.named_contact("ada@example.com", "Ada, of the hill").await.id;
    let booking = server.booking(ada, "2026-03-20T09:00:00Z").await;
    // Too long ago, and too far ahead.
    for start in ["2025-12-11T23:00:00Z", "2027-03-17T00:00:00Z"] {
        server.booking(ada, start).await;
    }
    server
        .of(server.other)
        .booking(server.of(server.other).contact("eve@example.com").await.id, "2026-03-20T09:00:00Z")
        .await;
    let owner = server.signed_in(Role::Owner).await;
    let address = create(&owner).await;
    assert!(address.starts_with("/dashboard/calendar.ics?secret="), "{address}");
    let secret = address.split('=').nth(1).unwrap();

    let file = get(&server, &address, None).await;
    assert_eq!(file.status, StatusCode::OK);
    assert_eq!(file.headers[CONTENT_TYPE], "text/calendar; charset=utf-8");
    assert_eq!(file.headers[CACHE_CONTROL], "no-store");
    assert_eq!(file.text.matches("BEGIN:VEVENT").count(), 1, "{}", file.text);
    let unfolded = file.text.replace("\r\n ", "");
    for line in [
        format!("UID:{}", booking.id),
        "DTSTART:20260320T090000Z".to_owned(),
        "DTEND:20260320T100000Z".to_owned(),
        format!("SUMMARY:{} – Ada\\, of the hill", booking.service_name.as_ref().unwrap().as_str()),
        "STATUS:CONFIRMED".to_owned(),
    ] {
        assert!(unfolded.contains(&format!("\r\n{line}\r\n")), "{line}: {unfolded}");
    }

    let etag = file.headers[ETAG].to_str().unwrap().to_owned();
    for known in [etag.clone(), format!("\"other\", W/{etag}"), "*".to_owned()] {
        let unchanged = get(&server, &address, Some(&known)).await;
        assert_eq!((unchanged.status, unchanged.text.as_str()), (StatusCode::NOT_MODIFIED.as_u16(), ""), "{known}");
        assert_eq!(unchanged.headers[ETAG], etag.as_str());
    }
    let cancel = BookingUpdate { status: Patch::Set(BookingStatus::Cancelled), ..BookingUpdate::default() };
    server.svc.account(server.tenant).bookings().update(booking.id, cancel).await.unwrap();
    let changed = get(&server, &address, Some(&etag)).await;
    assert_eq!(changed.status, StatusCode::OK);
    assert!(changed.text.contains("STATUS:CANCELLED") && changed.headers[ETAG] != etag.as_str(), "{}", changed.text);

    let renewed = create(&owner).await;
    assert_ne!(renewed, address);
    assert_eq!(get(&server, &address, None).await.status, StatusCode::NOT_FOUND, "the old address");
    assert_eq!(get(&server, &renewed, None).await.status, StatusCode::OK);
    for wrong in ["", "?secret=", "?secret=x", &format!("?secret={secret}")] {
        let refused = get(&server, &format!("/dashboard/calendar.ics{wrong}"), None).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{wrong}");
        assert!(refused.headers.get(ETAG).is_none() && !refused.text.contains("VCALENDAR"), "{}", refused.text);
    }
    let suspend = |access| move |tenant: &mut Tenant| tenant.developer_access = access;
    let account = server.svc.account(server.tenant);
    account.change_settings(suspend(DeveloperAccess::Suspended)).await.unwrap();
    assert_eq!(get(&server, &renewed, None).await.status, StatusCode::NOT_FOUND, "a suspended account");
    account.change_settings(suspend(DeveloperAccess::Approved)).await.unwrap();
    assert_eq!(get(&server, &renewed, None).await.status, StatusCode::OK);

    let page = owner.get("/calendar").await.text;
    let form = page.split("action=\"/dashboard/calendar/address/revoke\"").nth(1).unwrap();
    let version = form.split("name=\"version\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    // Another owner has renewed the address since the page was loaded.
    server.clock.advance(std::time::Duration::from_secs(1));
    let renewed = create(&owner).await;
    for old in ["none", version] {
        let stale = owner.post("/calendar/address/revoke", &encode(&[("version", old)])).await;
        assert_eq!(stale.status, StatusCode::CONFLICT, "{}", stale.text);
    }
    let page = owner.get("/calendar").await.text;
    let form = page.split("action=\"/dashboard/calendar/address/revoke\"").nth(1).unwrap();
    let version = form.split("name=\"version\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(get(&server, &renewed, None).await.status, StatusCode::OK);
    let revoked = owner.post("/calendar/address/revoke", &encode(&[("version", version)])).await;
    assert_eq!(revoked.status, StatusCode::SEE_OTHER, "{}", revoked.text);
    assert_eq!(get(&server, &renewed, None).await.status, StatusCode::NOT_FOUND);
    let log = text(&owner.get("/audit").await.text);
    assert!(!log.contains(secret), "{log}");
}

#[tokio::test]
async fn owners_alone_manage_the_address() {
    let server = Server::start().await;
    for role in [Role::Viewer, Role::Developer] {
        let browser = server.signed_in(role).await;
        assert!(!browser.get("/calendar").await.text.contains("/calendar/address"), "{role}");
        assert_eq!(browser.post("/calendar/address", "").await.status, StatusCode::FORBIDDEN, "{role}");
    }
    assert!(server.svc.account(server.tenant).calendar_link().await.unwrap().is_none());
}
