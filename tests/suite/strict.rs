//! Strict parsing of bodies (docs/contract.md, "Request bodies", "Text fields" and "Money").

use http::Method;
use serde_json::{Value, json};

use crate::harness::{Call, SeededServer, change, id_name, operations, sample};
use svc_server::kernel::versions::method_of;

/// Sends a raw body that must be refused, and returns its `code`, followed by `field:code` for each failing field.
async fn refused(server: &SeededServer, method: Method, path: &str, body: impl Into<bytes::Bytes>) -> Vec<String> {
    let response = server.expect(400, Call::new(method, path).raw(body)).await;
    let json = response.json();
    let errors = json["errors"].as_array().cloned().unwrap_or_default();
    let errors = errors.iter().map(|e| format!("{}:{}", e["field"].as_str().unwrap(), e["code"].as_str().unwrap()));
    std::iter::once(response.code()).chain(errors).collect()
}

/// Returns every operation that takes a body, with an existing path and a valid body.
fn with_body(server: &SeededServer) -> Vec<(Method, String, Value)> {
    let all = operations();
    let taking = all.iter().filter(|operation| operation.takes_body());
    taking
        .map(|operation| {
            let collection = operation.tag;
            let path = match operation.has_id {
                true => operation.path_in_account().replace("{id}", &server.id(&id_name(collection))),
                false => operation.path_in_account().clone(),
            };
            let body = if operation.has_id { change(collection) } else { sample(server, collection, 1) };
            (method_of(operation), path, body)
        })
        .collect()
}

#[tokio::test]
async fn malformed_json_is_refused() {
    let server = SeededServer::new();
    for (method, path, good) in with_body(&server) {
        let good = good.to_string();
        let open = good.trim_end_matches('}');
        let name = good.split('"').nth(1).unwrap();
        let refuse = async |body: Vec<u8>| refused(&server, method.clone(), &path, body).await;
        assert_eq!(
            refuse(format!("{open},\"colour\":1}}").into()).await,
            ["validation_failed", "colour:unknown_field"]
        );
        assert_eq!(
            refuse(format!("{open},\"id\":\"x\"}}").into()).await,
            ["validation_failed", "id:read_only_field"],
            "{path}"
        );
        let twice = format!("{open},\"{name}\":1}}");
        assert_eq!(refuse(twice.into()).await, ["validation_failed".to_owned(), format!("{name}:duplicate_key")]);
        let deep_twice = format!("{open},\"colour\":{{\"a\":[{{\"b\":1,\"b\":1}}]}}}}");
        assert_eq!(refuse(deep_twice.into()).await, ["validation_failed", "colour.a.0.b:duplicate_key"]);
        for trailing in ["{}", "x", ",", "}", "\u{feff}"] {
            assert_eq!(refuse(format!("{good}{trailing}").into()).await, ["invalid_json"], "{trailing}");
        }
        for (what, bytes) in [
            ("invalid UTF-8", b"{\"x\":\"\xff\"}".as_slice()),
            ("an overlong form", b"{\"x\":\"\xc0\x80\"}"),
            ("a byte order mark", b"\xef\xbb\xbf{}"),
            ("a raw control character", b"{\"x\":\"\n\"}"),
            ("a raw NUL", b"{\"x\":\"\0\"}"),
            ("a lone surrogate", b"{\"x\":\"\\ud800\"}"),
            ("a lone surrogate in a name", b"{\"\\ud800\":1}"),
            ("a comment", b"{/**/}"),
            ("single quotes", b"{'x':1}"),
            ("no value", b"{\"x\":}"),
            ("a trailing comma", b"{\"x\":1,}"),
            ("a leading zero", b"{\"x\":01}"),
            ("no number", b"{\"x\":NaN}"),
            ("nothing", b""),
            ("white space", b" \n"),
            ("an array", b"[]"),
            ("a string", b"\"x\""),
            ("null", b"null"),
        ] {
            assert_eq!(refuse(bytes.to_vec()).await, ["invalid_json"], "{what}: {path}");
        }
        let nul = refuse(format!("{open},\"colour\":\"a\\u0000b\"}}").into()).await;
        assert_eq!(nul, ["validation_failed", "colour:invalid_format"]);
        let nested = |levels: usize| format!("{open},\"colour\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(refuse(nested(31).into()).await, ["validation_failed", "colour:unknown_field"], "32 in all");
        assert_eq!(refuse(nested(32).into()).await, ["invalid_json"], "33 in all");
        assert_eq!(refuse(nested(100_000).into()).await, ["invalid_json"]);
    }
    assert_eq!(server.new_events().await, [""; 0], "a refused body must write no event");
}

#[tokio::test]
async fn values_of_the_wrong_type_are_not_converted() {
    let server = SeededServer::new();
    let contact = server.id("contact_id");
    for total in [json!("100"), json!(true), json!([100]), json!({ "amount": 100 })] {
        let body = json!({ "contact_id": contact, "total": total }).to_string();
        assert_eq!(
            refused(&server, Method::POST, "/quotes", body).await,
            ["validation_failed", "total:invalid_type"],
            "{total}"
        );
    }
    let webhook = format!("/webhooks/{}", server.id("webhook_id"));
    for enabled in [json!("true"), json!(1), json!("")] {
        let body = json!({ "enabled": enabled }).to_string();
        assert_eq!(
            refused(&server, Method::PATCH, &webhook, body).await,
            ["validation_failed", "enabled:invalid_type"],
            "{enabled}"
        );
    }
    for value in [json!(5), json!(true), json!(["Ada"]), json!({})] {
        let body = json!({ "email": "a@example.com", "first_name": value }).to_string();
        assert_eq!(
            refused(&server, Method::POST, "/contacts", body).await,
            ["validation_failed", "first_name:invalid_type"],
            "{value}"
        );
    }
}

#[tokio::test]
async fn a_patch_changes_the_given_fields_only() {
    let server = SeededServer::new();
    let path = format!("/contacts/{}", server.id("contact_id"));
    let before = server.expect(200, Call::get(&path)).await.data();
    let changed = server.expect(200, Call::patch(&path, json!({ "city": "Perth", "first_name": null }))).await.data();
    let mut want = before;
    want["city"] = json!("Perth");
    want["first_name"] = Value::Null;
    assert_ne!(changed["updated_at"], want["updated_at"]);
    want["updated_at"] = changed["updated_at"].clone();
    assert_eq!(changed, want);
    assert_eq!(server.expect(200, Call::get(&path)).await.data(), want);
    let cleared = server.expect(200, Call::patch(&path, json!({ "email": null }))).await.data();
    assert_eq!(cleared["email"], Value::Null);
}

#[tokio::test]
async fn null_is_refused_for_fields_that_are_not_nullable() {
    let server = SeededServer::new();
    for (collection, field) in [
        ("bookings", "status"),
        ("bookings", "start_time"),
        ("bookings", "end_time"),
        ("quotes", "status"),
        ("quotes", "total"),
        ("quotes", "valid_until"),
        ("jobs", "title"),
        ("jobs", "status"),
        ("webhooks", "url"),
        ("webhooks", "events"),
        ("webhooks", "enabled"),
    ] {
        let path = format!("/{collection}/{}", server.id(&id_name(collection)));
        let body = format!("{{\"{field}\":null}}");
        let want = ["validation_failed".to_owned(), format!("{field}:not_nullable")];
        assert_eq!(refused(&server, Method::PATCH, &path, body).await, want);
    }
}

#[tokio::test]
async fn a_patch_without_effect_writes_nothing() {
    let server = SeededServer::new();
    for collection in ["contacts", "bookings", "quotes", "jobs", "webhooks"] {
        let path = format!("/{collection}/{}", server.id(&id_name(collection)));
        server.expect(200, Call::patch(&path, change(collection))).await;
        let before = server.expect(200, Call::get(&path)).await;
        let events = server.new_events().await.len();
        let again = server.expect(200, Call::patch(&path, change(collection))).await;
        assert_eq!((again.body.clone(), again.etag()), (before.body.clone(), before.etag()), "{path}");
        assert_eq!(server.new_events().await.len(), events, "{path}");
    }
}

#[tokio::test]
async fn texts_are_trimmed_and_control_characters_are_refused() {
    let server = SeededServer::new();
    let created = json!({ "email": " a@example.com ", "first_name": "  Ada\u{3000}", "city": "  ", "phone": "" });
    let data = server.expect(201, Call::post("/contacts", created)).await.data();
    assert_eq!(
        (&data["email"], &data["first_name"], &data["city"], &data["phone"]),
        (&json!("a@example.com"), &json!("Ada"), &Value::Null, &Value::Null)
    );
    for control in ['\u{1}', '\n', '\t', '\u{7f}', '\u{85}', '\u{2028}', '\u{2029}'] {
        let body = json!({ "email": "b@example.com", "first_name": format!("A{control}da") }).to_string();
        assert_eq!(
            refused(&server, Method::POST, "/contacts", body).await,
            ["validation_failed", "first_name:invalid_format"],
            "{control:?}"
        );
    }
    for blank in ["", "   "] {
        let body = json!({ "title": blank }).to_string();
        assert_eq!(refused(&server, Method::POST, "/jobs", body).await, ["validation_failed", "title:too_short"]);
    }
    let notes = json!({ "notes": "Ring twice.\nThen wait." });
    let booking = format!("/bookings/{}", server.id("booking_id"));
    assert_eq!(server.expect(200, Call::patch(&booking, notes.clone())).await.data()["notes"], notes["notes"]);
}

/// Field and greatest length of every string of the records.
const LENGTHS: [(&str, &str, usize); 20] = [
    ("contacts", "first_name", 300),
    ("contacts", "last_name", 300),
    ("contacts", "company_name", 500),
    ("contacts", "phone", 50),
    ("contacts", "city", 100),
    ("contacts", "state", 100),
    ("contacts", "postcode", 20),
    ("bookings", "service_name", 255),
    ("bookings", "notes", 4096),
    ("jobs", "title", 255),
    ("jobs", "job_type", 100),
    ("jobs", "priority", 100),
    ("jobs", "site_address", 500),
    ("jobs", "site_suburb", 100),
    ("jobs", "site_state", 100),
    ("jobs", "site_postcode", 20),
    ("webhooks", "description", 500),
    ("webhooks", "url", 2048),
    ("contacts", "email", 254),
    ("quotes", "line_items", 500),
];

#[tokio::test]
async fn lengths_are_counted_in_code_points() {
    let server = SeededServer::new();
    for (number, (collection, field, longest)) in LENGTHS.into_iter().enumerate() {
        let value = |length: usize| match field {
            "url" => json!(format!("https://hooks.example.com/{}", "x".repeat(length - 26))),
            "email" => json!(format!(
                "{}@{}.{}.{}.com",
                "x".repeat(64),
                "x".repeat(63),
                "x".repeat(63),
                "x".repeat(length - 64 - 63 - 63 - 7)
            )),
            "line_items" => Value::from(vec![json!({}); length]),
            _ => json!("é".repeat(length)),
        };
        let mut body = sample(&server, collection, number);
        body[field] = value(longest);
        let kept = server.expect(201, Call::post(&format!("/{collection}"), body.clone())).await.data();
        if field != "line_items" {
            assert_eq!(kept[field], body[field], "{field}");
        }
        body[field] = value(longest + 1);
        let want = ["validation_failed".to_owned(), format!("{field}:too_long")];
        assert_eq!(refused(&server, Method::POST, &format!("/{collection}"), body.to_string()).await, want);
    }
}

#[tokio::test]
async fn responses_have_every_declared_field_and_creates_a_location() {
    let server = SeededServer::new();
    for collection in ["contacts", "bookings", "quotes", "jobs", "webhooks"] {
        let body = sample(&server, collection, 3);
        let created = server.expect(201, Call::post(&format!("/{collection}"), body)).await;
        let location = created.header("location").unwrap().to_owned();
        assert_eq!(location, format!("/api/v1/{collection}/{}", created.id()));
        let read = server.expect(200, Call::absolute(Method::GET, &location)).await;
        assert_eq!(read.etag(), created.etag(), "{collection}");
        let mut shown = created.data();
        shown.as_object_mut().unwrap().remove("secret");
        assert_eq!(shown, read.data());
        assert!(read.data().get("deleted_at").is_none());
        let list = server.expect(200, Call::get(&format!("/{collection}?limit=1"))).await.json();
        assert_eq!(list["data"][0], read.data(), "a record looks the same in a list");
    }
    insta::assert_snapshot!("contact", server.expect(200, Call::get("/contacts?limit=200")).await.text);
    insta::assert_snapshot!("invoice", server.expect(200, Call::get("/invoices")).await.text);
    insta::assert_snapshot!("job", server.expect(200, Call::get("/jobs?limit=1")).await.text);
}

#[tokio::test]
async fn amounts_of_money_are_exact() {
    let server = SeededServer::new();
    let contact = server.id("contact_id");
    let body = |total: &str, currency: &str| {
        format!("{{\"contact_id\":\"{contact}\",\"total\":{total},\"currency\":\"{currency}\"}}")
    };
    for (sent, currency, kept) in [
        ("0", "AUD", "0"),
        ("0.10", "AUD", "0.1"),
        ("-0", "AUD", "0"),
        ("1e2", "AUD", "100"),
        ("99.95", "AUD", "99.95"),
        ("0.1000000000000000055511151231257827", "AUD", "0.1"),
        ("100.00000000001", "AUD", "100"),
        ("1000000000000", "AUD", "1000000000000"),
        ("999999999999.99", "AUD", "999999999999.99"),
        ("500", "JPY", "500"),
        ("1.234", "KWD", "1.234"),
    ] {
        let call = Call::new(Method::POST, "/quotes").raw(body(sent, currency));
        let response = server.expect(201, call).await;
        let want = format!("\"total\":{kept},");
        assert!(response.text.contains(&want), "{sent} {currency}: {}", response.text);
    }
    for (sent, currency, code) in [
        ("-0.01", "AUD", "out_of_range"),
        ("0.001", "AUD", "out_of_range"),
        ("1.5", "JPY", "out_of_range"),
        ("1000000000000.01", "AUD", "out_of_range"),
        ("1e400", "AUD", "out_of_range"),
    ] {
        let got = refused(&server, Method::POST, "/quotes", body(sent, currency)).await;
        assert_eq!((got[0].as_str(), got.len()), ("validation_failed", 2), "{sent} {currency}: {got:?}");
        assert!(got[1].starts_with("total:"), "{sent} {currency}: {got:?}");
        assert!(got[1].ends_with(code) || got[1].ends_with("invalid_format"), "{sent} {currency}: {got:?}");
    }
    for currency in ["aud", "AU", "XXQ", "AUDD", "DEM"] {
        let got = refused(&server, Method::POST, "/quotes", body("1", currency)).await;
        assert!(got.len() == 2 && got[1].starts_with("currency:"), "{currency}: {got:?}");
    }
}

#[tokio::test]
async fn an_error_says_which_name_was_probably_meant() {
    let server = SeededServer::new();
    let error = async |path: &str, body: &str| {
        server.expect(400, Call::new(Method::POST, path).raw(body.to_owned())).await.json()["error"].clone()
    };
    let mia = r#"{"firstName":"Mia","first_name":"Mia","email":"mia@example.com"}"#;
    assert_eq!(error("/contacts", mia).await, "firstName is no field of this request (did you mean first_name?).");
    let all = r#"{"frist_name":"Mia","colour":1}"#;
    assert_eq!(error("/contacts", all).await, "email is required; 2 more in errors.");
    let two = r#"{"first_name":"Mia","email":"mia@example.com","E-Mail":"x","colour":1}"#;
    assert_eq!(
        error("/contacts", two).await,
        "E-Mail is no field of this request (did you mean email?); 1 more in errors."
    );
    let kind = r#"{"url":"https://hooks.example.com/x","events":["invoice.payed"]}"#;
    assert_eq!(
        error("/webhooks", kind).await,
        "events has an unknown event kind \"invoice.payed\" (did you mean \"invoice.paid\"?)."
    );
    let half = r#"{"first_name":"Mia \ud83e","email":"mia@example.com"}"#;
    assert_eq!(
        error("/contacts", half).await,
        "first_name has text with half of a surrogate pair, such as \\ud83e; send both halves or neither."
    );
    let list =
        async |query: &str| server.expect(400, Call::get(&format!("/contacts?{query}"))).await.json()["error"].clone();
    assert_eq!(
        list("updatedSince=2026-01-01T00:00:00Z").await,
        "updatedSince is not a parameter of this operation (did you mean updated_since?)."
    );
    assert_eq!(
        list("updated_since=2026-11-01T00:00:00+10:00").await,
        "updated_since must have a + before its offset, which is written %2B in a query."
    );
}

#[tokio::test]
async fn a_patch_takes_a_json_merge_patch() {
    let server = SeededServer::new();
    let path = format!("/contacts/{}", server.id("contact_id"));
    let merge = |call: Call| call.header("content-type", "application/merge-patch+json; charset=utf-8");
    let patched = server.expect(200, merge(Call::patch(&path, json!({ "city": "Perth" })))).await;
    assert_eq!(patched.data()["city"], "Perth");
    server.expect(415, merge(Call::post("/jobs", json!({ "title": "x" })))).await;
}
