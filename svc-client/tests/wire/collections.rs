//! What each operation sends, and what it returns.

use serde_json::json;
use svc_client::prelude::*;
use wiremock::ResponseTemplate;

use crate::fixture::{ID, KEY, client, header, ok, problem, requests, serve};

#[tokio::test]
async fn every_operation_sends_its_request() {
    let server = serve(vec![ok(201), ok(200), ok(200), ok(200), ResponseTemplate::new(204)]).await;
    let (client, _) = client(&server);
    let contacts = client.contacts();
    let id: ContactId = ID.parse().unwrap();
    let created = contacts.create(&ContactCreate::new("ada@example.com".parse().unwrap())).await.unwrap();
    assert_eq!((created.id, created.etag.as_str()), (id, "\"v1\""));
    contacts.get(id).await.unwrap();
    let city = ContactDetails { city: Patch::Set(Some("Perth".parse().unwrap())), ..Default::default() };
    let change = ContactUpdate { email: Patch::Set(None), details: city };
    contacts.update(id, &change).await.unwrap();
    contacts.update_if(&created.etag, id, &change).await.unwrap();
    contacts.delete_if(&created.etag, id).await.unwrap();
    contacts.delete(id).await.unwrap();

    let path = format!("/api/v1/contacts/{ID}");
    let seen: Vec<_> = requests(&server)
        .await
        .iter()
        .map(|request| {
            assert_eq!(header(request, "authorization"), Some(format!("Bearer {KEY}").as_str()));
            assert!(header(request, "user-agent").unwrap().starts_with("svc-client/"));
            let is_json = header(request, "content-type") == Some("application/json");
            assert_eq!(is_json, !request.body.is_empty());
            let tag = header(request, "if-match").unwrap_or("-").to_owned();
            let body = String::from_utf8(request.body.clone()).unwrap();
            format!("{} {} {tag} {body}", request.method, request.url.path())
        })
        .collect();
    let change = r#"{"email":null,"city":"Perth"}"#;
    assert_eq!(
        seen,
        [
            r#"POST /api/v1/contacts - {"email":"ada@example.com"}"#.to_owned(),
            format!("GET {path} - "),
            format!("PATCH {path} - {change}"),
            format!("PATCH {path} \"v1\" {change}"),
            format!("DELETE {path} \"v1\" "),
            format!("DELETE {path} - "),
        ]
    );
}

#[tokio::test]
async fn a_record_that_has_not_changed_is_not_sent_again() {
    let server = serve(vec![ResponseTemplate::new(304), ok(200)]).await;
    let (client, _) = client(&server);
    let known = ETag::new("\"v0\"");
    assert_eq!(client.contacts().get_if_changed(ID.parse().unwrap(), &known).await.unwrap(), None);
    let changed = client.contacts().get_if_changed(ID.parse().unwrap(), &known).await.unwrap().unwrap();
    assert_eq!(changed.etag, ETag::new("\"v1\""));
    assert_eq!(header(&requests(&server).await[1], "if-none-match"), Some("\"v0\""));
    let error = client.contacts().get_if_changed(ID.parse().unwrap(), &ETag::new("a\nb")).await.unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
}

#[tokio::test]
async fn a_change_of_an_old_version_is_refused() {
    let server = serve(vec![problem(412, "precondition_failed")]).await;
    let (client, _) = client(&server);
    let change = ContactUpdate { email: Patch::Set(None), ..Default::default() };
    let error = client.contacts().update_if(&ETag::new("\"v0\""), ID.parse().unwrap(), &change).await.unwrap_err();
    assert_eq!(error.code(), Some("precondition_failed"));
}

#[tokio::test]
async fn a_new_subscription_has_its_secret() {
    let body = json!({ "data": {
        "id": ID, "url": "https://hooks.example.com/svc", "events": ["invoice.paid", "order.shipped"], "enabled": true,
        "description": null, "created_at": "2026-03-14T15:09:26.535897Z", "last_delivery_at": null,
        "last_delivery_status": null, "disabled_reason": null, "paused_at": null, "consecutive_failures": 0,
        "secret": "whsec_abc",
    }});
    let server = serve(vec![ResponseTemplate::new(201).insert_header("etag", "\"v1\"").set_body_json(body)]).await;
    let (client, _) = client(&server);
    let events = serde_json::from_value(json!(["*"])).unwrap();
    let new = WebhookCreate::new("https://hooks.example.com/svc".parse().unwrap(), events);
    let created = client.webhooks().create(&new).await.unwrap();
    assert_eq!(created.secret, "whsec_abc");
    assert_eq!(created.subscription.events.names(), ["invoice.paid", "order.shipped"]);
    let sent = String::from_utf8(requests(&server).await[0].body.clone()).unwrap();
    assert_eq!(sent, r#"{"url":"https://hooks.example.com/svc","events":["*"]}"#);
}

#[tokio::test]
async fn ping_names_the_account() {
    let body = json!({ "ok": true, "tenantId": ID, "timestamp": "2026-03-14T15:09:26.535897Z" });
    let server = serve(vec![ResponseTemplate::new(200).set_body_json(body)]).await;
    let ping = client(&server).0.ping().await.unwrap();
    assert_eq!((ping.ok, ping.tenant_id.to_string().as_str()), (true, ID));
    assert_eq!(requests(&server).await[0].url.path(), "/api/v1/ping");
}
