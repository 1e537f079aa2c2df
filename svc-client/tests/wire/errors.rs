//! What a failure tells, and responses that no honest service sends.

use std::time::Duration;

use serde_json::json;
use svc_client::prelude::*;
use wiremock::ResponseTemplate;

use crate::fixture::{ID, builder, client, ok, problem, serve};

async fn get(response: ResponseTemplate) -> Result<Versioned<Contact>, Error> {
    let server = serve(vec![response]).await;
    let (builder, _) = builder(&server.uri());
    let client = builder.retry(RetryPolicy::never()).build().unwrap();
    client.contacts().get(ID.parse().unwrap()).await
}

#[tokio::test]
async fn a_refusal_has_everything_that_the_service_said() {
    let body = json!({
        "error": "email is required; 1 more in errors.",
        "code": "validation_failed",
        "field": "email",
        "errors": [
            {"field": "email", "code": "required", "message": "email is required"},
            {"field": "city", "code": "invalid_type", "message": "city must be a string", "later": true},
        ],
        "a_field_of_a_later_version": 1,
    });
    let response = ResponseTemplate::new(400).insert_header("x-request-id", "req-9").set_body_json(body);
    let error = get(response).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "email is required; 1 more in errors. (status 400, code validation_failed, request req-9)"
    );
    let Error::Api(error) = error else { panic!("{error}") };
    assert_eq!((error.status, error.code.as_str()), (400, "validation_failed"));
    assert_eq!(error.field.as_deref(), Some("email"));
    let fields: Vec<_> = error.errors.iter().map(|error| (error.field.as_str(), error.code.as_str())).collect();
    assert_eq!(fields, [("email", "required"), ("city", "invalid_type")]);
    assert_eq!(error.errors[1].message, "city must be a string");
    assert_eq!((error.request_id.as_deref(), error.retry_after, error.existing_id), (Some("req-9"), None, None));
}

#[tokio::test]
async fn a_conflict_has_the_id_of_the_other_contact() {
    let taken = json!({ "error": "Taken.", "code": "email_taken", "existing_id": ID });
    let error = get(ResponseTemplate::new(409).set_body_json(taken)).await.unwrap_err();
    assert_eq!(error.api().unwrap().existing_id.unwrap().to_string(), ID);
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    let limited = json!({ "error": "Slow down.", "code": "rate_limited", "retry_after_ms": 17_250 });
    let error = get(ResponseTemplate::new(429).set_body_json(limited)).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_millis(17_250)));
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_response_of_something_else_is_an_error_that_shows_it() {
    let html = "<html><body>Bad gateway</body></html>";
    for (response, reason) in [
        (ResponseTemplate::new(502).set_body_string(html), "it is no error of the API"),
        (ResponseTemplate::new(400).set_body_string(""), "it is no error of the API"),
        (ResponseTemplate::new(400).set_body_string(r#"{"error": "cut"#), "it is no error of the API"),
        (ResponseTemplate::new(400).set_body_json(json!({"error": 7, "code": []})), "it is no error of the API"),
        (ResponseTemplate::new(400).set_body_json(json!([1, 2])), "it is no error of the API"),
        (
            ResponseTemplate::new(301).insert_header("location", "https://elsewhere.example/"),
            "it is no error of the API",
        ),
        (ResponseTemplate::new(200).set_body_string(html), "expected value"),
        (ResponseTemplate::new(200).set_body_json(json!({"data": {"id": 7}})), "UUID"),
        (ResponseTemplate::new(200).set_body_json(json!({"data": []})), "invalid length"),
        (ResponseTemplate::new(200).set_body_bytes([0xff; 1000]), "expected value"),
        (ResponseTemplate::new(200).set_body_string("[".repeat(100_000)), ""),
        (ResponseTemplate::new(204), "EOF"),
        (ResponseTemplate::new(200).set_body_json(json!({"data": crate::fixture::contact()})), "it has no ETag"),
    ] {
        let error = get(response).await.unwrap_err();
        let Error::UnexpectedResponse(error) = error else { panic!("{reason}: {error}") };
        assert!(error.reason.contains(reason), "{error}");
        assert!(error.start.chars().count() <= 200, "{error}");
    }
}

#[tokio::test]
async fn a_huge_response_is_not_read_to_its_end() {
    for (response, most) in [
        (ok(200).set_body_bytes(vec![b' '; 33 << 20]), "33554432"),
        (problem(500, "internal_error").set_body_bytes(vec![b' '; 2 << 20]), "1048576"),
    ] {
        let error = get(response).await.unwrap_err();
        assert!(error.to_string().contains(&format!("it has more than {most} bytes")), "{error}");
    }
}

#[tokio::test]
async fn a_status_of_a_newer_service_is_no_panic() {
    let invoice = json!({ "data": [{
        "id": ID, "invoice_number": "INV-0001", "contact_id": null, "status": "in_dispute", "issue_date": null,
        "due_date": null, "total": 99.95, "currency": "AUD", "paid_at": null,
        "created_at": "2026-03-14T15:09:26.535897Z", "updated_at": "2026-03-14T15:09:26.535897Z",
    }], "next_cursor": null });
    let server = serve(vec![ResponseTemplate::new(200).set_body_json(invoice)]).await;
    let (client, _) = client(&server);
    let error = client.invoices().list().page().await.unwrap_err();
    assert!(matches!(error, Error::UnexpectedResponse(_)), "{error}");
}
