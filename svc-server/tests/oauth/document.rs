//! What the documents of a server with apps say.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use svc_core::accounts::apps::AppUpdate;
use svc_core::accounts::operational::PLATFORM_ACCOUNT;
use svc_core::webhooks::events::EventId;
use svc_core::webhooks::operational;
use svc_server::api::openapi;

use super::harness::Server;

#[tokio::test]
async fn the_document_of_a_server_with_apps_has_oauth2_beside_the_key_and_is_the_same_otherwise() {
    let server = Server::start().await;
    let mut document = server.send(Method::GET, "/api/v1/openapi.json", &[], "").await.json();
    let scheme = document["components"]["securitySchemes"].as_object_mut().unwrap().remove("oauth2").unwrap();
    assert_eq!(scheme["type"], "oauth2");
    assert_eq!(
        scheme["flows"],
        json!({ "authorizationCode": {
            "authorizationUrl": "https://api.example.com/oauth/authorize",
            "tokenUrl": "https://api.example.com/oauth/token",
            "refreshUrl": "https://api.example.com/oauth/token",
            "scopes": { "read": "Read all records.", "write": "Create, change and delete records; includes `read`." },
        } })
    );
    assert_eq!(document["security"], json!([{ "bearer": [] }, { "oauth2": [] }]));
    document["security"] = json!([{ "bearer": [] }]);
    assert_eq!(document["servers"][0]["url"], "https://api.example.com/api/v1");
    document["servers"][0]["url"] = "/api/v1".into();
    let without: Value = serde_json::from_str(&openapi::text("v1").unwrap()).unwrap();
    let components = &mut document["components"];
    components["headers"].as_object_mut().unwrap().remove("InsufficientScope").unwrap();
    components["headers"]["WWW-Authenticate"] = without["components"]["headers"]["WWW-Authenticate"].clone();
    let forbidden = components["responses"]["Forbidden"]["headers"].as_object_mut().unwrap();
    forbidden.remove("WWW-Authenticate").unwrap();
    assert!(document == without, "the document differs in more than the scheme, the server and the challenges");
}

/// What a 401 and a 403 have, with a key and with a token, fits what the document says of them.
#[tokio::test]
async fn challenges_are_as_the_document_says() {
    let server = Server::start().await;
    let document = server.send(Method::GET, "/api/v1/openapi.json", &[], "").await.json();
    let token = server.tokens(&server.reader).await["access_token"].as_str().unwrap().to_owned();
    let contact = r#"{"email": "ada@example.com"}"#;
    let requests = [
        (Method::GET, 401, None, "Unauthorized"),
        (Method::GET, 401, Some("svc_oat_0000".to_owned()), "Unauthorized"),
        (Method::POST, 403, Some(token), "Forbidden"),
    ];
    for (method, status, token, name) in requests {
        let authorization = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
        let response = server.send(method, "/api/v1/contacts", &headers, contact).await;
        assert_eq!(response.status, status);
        let reference = &document["components"]["responses"][name]["headers"]["WWW-Authenticate"]["$ref"];
        let header = document.pointer(&reference.as_str().unwrap()[1..]).unwrap();
        let validator = jsonschema::validator_for(&header["schema"]).unwrap();
        for challenge in [response.header("www-authenticate").unwrap(), header["example"].as_str().unwrap()] {
            assert!(validator.is_valid(&json!(challenge)), "{name}: {challenge}");
        }
    }
}

#[tokio::test]
async fn metadata_is_what_the_rfcs_name() {
    let server = Server::start().await;
    let metadata = server.send(Method::GET, "/.well-known/oauth-authorization-server", &[], "").await;
    let methods = ["client_secret_basic", "client_secret_post", "none"];
    assert_eq!(
        metadata.json(),
        json!({
            "issuer": "https://api.example.com",
            "authorization_endpoint": "https://api.example.com/oauth/authorize",
            "token_endpoint": "https://api.example.com/oauth/token",
            "token_endpoint_auth_methods_supported": methods,
            "revocation_endpoint": "https://api.example.com/oauth/revoke",
            "revocation_endpoint_auth_methods_supported": methods,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": ["read", "write", "offline_access"],
            "authorization_response_iss_parameter_supported": true,
            "prompt_values_supported": ["none", "login", "consent", "select_account"],
            "service_documentation": "https://api.example.com/docs",
        })
    );
    assert_eq!(metadata.header("access-control-allow-origin"), Some("*"));
    for resource in ["", "/api/v1", "/api/v2"] {
        let path = format!("/.well-known/oauth-protected-resource{resource}");
        assert_eq!(
            server.send(Method::GET, &path, &[], "").await.json(),
            json!({
                "resource": format!("https://api.example.com{resource}"),
                "authorization_servers": ["https://api.example.com"],
                "scopes_supported": ["read", "write"],
                "bearer_methods_supported": ["header"],
                "resource_documentation": "https://api.example.com/docs",
            })
        );
    }
    let unknown = server.send(Method::GET, "/.well-known/oauth-protected-resource/api/v9", &[], "").await;
    assert_eq!(unknown.status, 404);
}

/// Each event about apps carries what its own schema in the document of the platform API says, and nothing that another's does.
#[tokio::test]
async fn events_about_apps_are_as_the_document_says() {
    let server = Server::start().await;
    let url = "https://ops.example.com/hooks".parse().unwrap();
    operational::set_webhook(&**server.svc.store(), Some(&url)).await.unwrap();
    let app = server.confidential.app.id;
    let gone = Some(Some("https://planner.example.com/gone".parse().unwrap()));
    server.svc.apps().update(app, AppUpdate { disconnect_url: gone, ..AppUpdate::default() }).await.unwrap();
    server.tokens(&server.confidential).await;
    server.svc.apps().delete(app).await.unwrap();
    server.api.jobs().publish_operational_events().await.unwrap();

    let document: Value = serde_json::from_str(&openapi::text("platform-v1").unwrap()).unwrap();
    let deliveries = server.svc.account(PLATFORM_ACCOUNT).deliveries().list(Default::default()).await.unwrap();
    let events: BTreeSet<EventId> = deliveries.iter().map(|delivery| delivery.event_id).collect();
    let mut kinds = BTreeSet::new();
    for id in events {
        let event = server.svc.account(PLATFORM_ACCOUNT).events().get(id).await.unwrap();
        let body = &document["webhooks"][event.kind.as_str()]["post"]["requestBody"]["content"]["application/json"];
        let reference = body["schema"]["properties"]["data"]["$ref"].as_str().unwrap();
        let mut schema = document.pointer(&reference[1..]).unwrap().clone();
        let fields: BTreeSet<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        schema["components"] = document["components"].clone();
        let data: Value = serde_json::from_str(event.data.get()).unwrap();
        assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&data), "{}: {data}", event.kind);
        assert_eq!(data.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>(), fields, "{}", event.kind);
        kinds.insert(event.kind.to_string());
    }
    assert_eq!(kinds, ["app.authorized", "app.disconnected", "app.revoked"].map(str::to_owned).into());
}
