//! What the documents of a server with apps say.

use http::Method;
use serde_json::{Value, json};
use svc_server::api::openapi;

use crate::harness::Server;

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
            "x-usePkce": "SHA-256",
        } })
    );
    assert_eq!(document["security"], json!([{ "bearer": [] }, { "oauth2": [] }]));
    document["security"] = json!([{ "bearer": [] }]);
    let without: Value = serde_json::from_str(&openapi::text("v1").unwrap()).unwrap();
    assert!(document == without, "the document differs in more than the scheme");
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
            "prompt_values_supported": ["none", "consent"],
            "service_documentation": "https://api.example.com/docs",
        })
    );
    assert_eq!(metadata.header("access-control-allow-origin"), "*");
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
