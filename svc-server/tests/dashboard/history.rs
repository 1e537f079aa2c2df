//! What the history of a record says: what changed, who changed it, and what came of it.

use svc_core::accounts::actor::Actor;
use svc_core::accounts::keys::KeyCreate;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;
use svc_core::requests::{self, ApiRequest};
use svc_core::store::Repository;

use super::browser::Server;
use super::records::rows;
use super::webhooks::HOSTILE;

#[tokio::test]
async fn a_change_says_what_it_set_and_who_made_it() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let key = KeyCreate { name: Some(HOSTILE.to_owned()), ..KeyCreate::default() };
    let key = server.svc.account(server.tenant).keys().create(key).await.unwrap().key;
    let invoices = server.svc.account(server.tenant).invoices();
    let id = invoices.create(InvoiceCreate::new("149.5".parse().unwrap())).await.unwrap().id;
    invoices.send(id).await.unwrap();
    let svc = server.svc.acting_as(Actor::Key(key.id));
    svc.account(server.tenant).invoices().pay_part(id, "100".parse().unwrap()).await.unwrap();
    let svc = server.svc.acting_as(Actor::Dashboard("ada@example.com".to_owned()));
    let by_ada = svc.account(server.tenant).invoices();
    by_ada.pay(id).await.unwrap();
    by_ada.resend(id).await.unwrap();
    by_ada.refund_part(id, "20".parse().unwrap()).await.unwrap();
    let shown = viewer.get(&format!("/invoices/{id}")).await.text;
    let page = viewer.get(&format!("/audit?object={id}")).await.text;
    for page in [&shown, &page] {
        assert!(
            !page.contains(HOSTILE) && page.contains(&format!("href=\"/dashboard/keys#key-{}\"", key.id)),
            "{page}"
        );
    }
    // The page of a record leaves out what only programs see.
    let on_page: Vec<String> = rows(&shown).into_iter().filter(|row| row.contains(" invoice ")).collect();
    assert_eq!(
        on_page,
        [
            "Refunded invoice paid 149.50 → 129.50 ada@example.com 14 Mar 2026, 15:09".to_owned(),
            "Resent invoice ada@example.com 14 Mar 2026, 15:09".to_owned(),
            "Paid invoice status partial → paid paid on none → 14 Mar 2026, 15:09 paid 100.00 → 149.50 ada@example.com \
             14 Mar 2026, 15:09"
                .to_owned(),
            format!("Updated invoice status sent → partial paid 0.00 → 100.00 {HOSTILE} API key 14 Mar 2026, 15:09"),
            "Sent invoice status draft → sent the service 14 Mar 2026, 15:09".to_owned(),
            "Created invoice the service 14 Mar 2026, 15:09".to_owned(),
        ]
    );
    let history: Vec<String> = rows(&page).into_iter().filter(|row| row.contains(" invoice INV-")).collect();
    assert_eq!(
        history,
        [
            "refunded invoice INV-0001 refund AUD 20.00 ada@example.com invoice.refunded deliveries invoice.updated \
             deliveries now"
                .to_owned(),
            "resent invoice INV-0001 ada@example.com invoice.resent deliveries now".to_owned(),
            "paid invoice INV-0001 status partial → paid paid on none → 14 Mar 2026, 15:09 payment AUD 49.50 \
             ada@example.com invoice.paid deliveries invoice.updated deliveries payment.succeeded deliveries now"
                .to_owned(),
            format!(
                "updated invoice INV-0001 status sent → partial payment AUD 100.00 {HOSTILE} API key invoice.updated \
                 deliveries payment.succeeded deliveries now"
            ),
            "sent invoice INV-0001 status draft → sent the service invoice.sent deliveries invoice.updated deliveries now"
                .to_owned(),
            "created invoice INV-0001 the service invoice.created deliveries now".to_owned(),
        ]
    );
}

#[tokio::test]
async fn a_change_leads_to_its_request_its_events_and_their_deliveries() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let key = server.svc.account(server.tenant).keys().create(KeyCreate::default()).await.unwrap().key;
    let by_key = server.acting_as(Actor::Key(key.id));
    let ada = by_key.contact("ada@example.com").await;
    let event = by_key.account().events().newest(ada.created_at, 1).await.unwrap().remove(0).id;
    let store = server.svc.store();
    let request = ApiRequest {
        id: store.env().id(store.env().now()),
        tenant_id: server.tenant,
        request_id: "an-id".to_owned(),
        key_id: key.id,
        method: "POST".to_owned(),
        path: "/api/v1/contacts".to_owned(),
        query: None,
        status: 201,
        code: None,
        failing_fields: None,
        started_at: store.env().now(),
        duration_us: 1_000,
        events: 1,
        first_event_id: Some(event),
        last_event_id: Some(event),
    };
    requests::record(&**store, std::slice::from_ref(&request)).await.unwrap();
    let page = viewer.get(&format!("/contacts/{}", ada.id)).await.text;
    assert!(page.contains(&format!("/audit?object={}", ada.id)), "{page}");
    for path in [format!("/audit?object={}", ada.id), "/audit".to_owned()] {
        let page = viewer.get(&path).await.text;
        for link in
            [format!("/requests/{}", request.id), format!("/events/{event}"), format!("/deliveries?event={event}")]
        {
            assert!(page.contains(&format!("href=\"/dashboard{link}\"")), "{link}: {page}");
            assert_eq!(viewer.get(&link).await.status, 200, "{link}");
        }
    }
    server.clock.advance(std::time::Duration::from_secs(25 * 60 * 60));
    let viewer = server.signed_in(Role::Viewer).await;
    let page = viewer.get(&format!("/audit?object={}", ada.id)).await.text;
    assert!(!page.contains("/dashboard/requests/"), "the log keeps a day");
}

#[tokio::test]
async fn a_page_says_when_the_record_before_a_change_is_not_known() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let account = server.svc.account(server.tenant);
    let template = server.contact("ada@example.com").await;
    // A record without events, as an import can write it.
    let id = ContactId::new(server.svc.store().env().id(server.svc.store().env().now()));
    let email = Some("bob@example.com".parse().unwrap());
    let bob = Contact {
        id,
        email,
        created_at: template.created_at.next(),
        updated_at: template.created_at.next(),
        ..template
    };
    let tenant = server.tenant;
    let insert = server.svc.store().write("test", (tenant, bob), async |tx, (tenant, bob)| {
        Ok(Repository::<Contact>::insert(tx, *tenant, bob).await?)
    });
    insert.await.unwrap();
    let page = viewer.get(&format!("/contacts/{id}")).await.text;
    assert!(page.contains("Its changes are not known any more, or it was imported without any."), "{page}");
    let city = |city: &str| {
        let mut change = ContactUpdate::default();
        change.details.city = Patch::Set(Some(Text::parse(city).unwrap()));
        change
    };
    account.contacts().update(id, city("Sydney")).await.unwrap();
    account.contacts().update(id, city("Perth")).await.unwrap();
    let page = viewer.get(&format!("/contacts/{id}")).await.text;
    assert_eq!(
        rows(&page),
        [
            "Updated contact city Sydney → Perth the service 14 Mar 2026, 15:09",
            "Updated contact The value before it is not known any more. the service 14 Mar 2026, 15:09",
        ]
    );
}

#[tokio::test]
async fn the_history_of_a_record_goes_back_beyond_the_newest_changes_of_the_account() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let account = server.svc.account(server.tenant);
    let ada = server.contact("ada@example.com").await;
    for number in 0..600 {
        server.contact(&format!("c{number}@example.com")).await;
    }
    let page = viewer.get(&format!("/contacts/{}", ada.id)).await.text;
    assert!(page.contains("Created contact"), "{page}");
    for number in 0..55 {
        let mut change = ContactUpdate::default();
        change.details.city = Patch::Set(Some(Text::parse(&format!("City {number}")).unwrap()));
        account.contacts().update(ada.id, change).await.unwrap();
    }
    let page = viewer.get(&format!("/contacts/{}", ada.id)).await.text;
    assert!(page.contains("City 54") && page.contains(">All changes<") && !page.contains("Created contact"), "{page}");
    let all = viewer.get(&format!("/audit?object={}", ada.id)).await.text;
    let older = all.split("/dashboard/audit?").find(|query| query.contains("before=")).unwrap();
    let older = older.split('"').next().unwrap().replace("&amp;", "&");
    let older = viewer.get(&format!("/audit?{older}")).await.text;
    let has_all = older.contains("City 3") && older.contains("contact.created") && !older.contains("City 10");
    assert!(has_all, "{older}");
}
