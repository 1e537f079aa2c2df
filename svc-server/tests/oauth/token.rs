//! Every parameter of `/oauth/token` and `/oauth/revoke`.

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, StatusCode};
use serde_json::json;
use svc_core::accounts::apps::{AppUpdate, NewApp};
use svc_core::accounts::tenants::DeveloperAccess;

use super::harness::Change::{None as Unchanged, Repeated, With, Without};
use super::harness::{AppResponse as _, ISSUER, Pairs, Response, Server, VERIFIER, basic, exchange, pairs};

/// Checks that an error has the headers of RFC 6749 §5.2, and a description in the characters that it allows.
fn check(response: &Response, status: u16, code: &str, shown: &str) {
    assert_eq!(response.error(), (status, code.to_owned()), "{shown}: {}", response.text);
    let body = response.json();
    assert_eq!(body.as_object().unwrap().len(), 2, "{shown}: {}", response.text);
    let description = body["error_description"].as_str().unwrap();
    assert!(description.bytes().all(|byte| matches!(byte, 0x20..=0x7e) && !b"\"\\".contains(&byte)), "{description}");
    for (name, value) in [
        ("cache-control", "no-store"),
        ("pragma", "no-cache"),
        ("content-type", "application/json"),
        ("access-control-allow-origin", "*"),
    ] {
        assert_eq!(response.header(name), Some(value), "{shown}");
    }
}

#[tokio::test]
async fn a_code_is_exchanged_by_the_right_form_alone() {
    let server = Server::start().await;
    let app = &server.confidential;
    let code = server.code(&server.request(app)).await;
    let right = exchange(&code);
    let long = "a".repeat(4096);
    let other_code = format!("{}{}", &code[..code.len() - 1], if code.ends_with('0') { '1' } else { '0' });
    for (change, error) in [
        (Without("grant_type"), "invalid_request"),
        (With("grant_type", ""), "invalid_request"),
        (Repeated("grant_type"), "invalid_request"),
        (With("grant_type", "password"), "unsupported_grant_type"),
        (With("grant_type", "client_credentials"), "unsupported_grant_type"),
        (With("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), "unsupported_grant_type"),
        (With("grant_type", &long), "unsupported_grant_type"),
        (Without("code"), "invalid_request"),
        (With("code", ""), "invalid_request"),
        (Repeated("code"), "invalid_request"),
        (With("code", "svc_oac_unknown"), "invalid_grant"),
        (With("code", &other_code), "invalid_grant"),
        (With("code", &code.to_uppercase()), "invalid_grant"),
        (With("code", &long), "invalid_grant"),
        (With("code", "\0"), "invalid_grant"),
        (Without("redirect_uri"), "invalid_grant"),
        (Repeated("redirect_uri"), "invalid_request"),
        (With("redirect_uri", "https://app.example.com/callback/"), "invalid_grant"),
        (With("redirect_uri", &long), "invalid_grant"),
        (Without("code_verifier"), "invalid_request"),
        (With("code_verifier", ""), "invalid_request"),
        (Repeated("code_verifier"), "invalid_request"),
        (With("code_verifier", &VERIFIER[..42]), "invalid_grant"),
        (With("code_verifier", &VERIFIER.to_uppercase()), "invalid_grant"),
        (With("code_verifier", &long), "invalid_grant"),
        (With("resource", "https://other.example.com"), "invalid_target"),
        (With("resource", "https://api.example.com/api/v9"), "invalid_target"),
        (With("client_id", "svcapp_other"), "invalid_request"),
        (With("client_secret", "svc_ocs_x"), "invalid_request"),
    ] {
        let response = server.post("/oauth/token", &basic(app), &change.of(&right)).await;
        check(&response, 400, error, &format!("{change:?}"));
    }
    let mut repeated = right.clone();
    repeated.extend(pairs(&[("resource", "https://api.example.com"), ("resource", "https://api.example.com/api/v1")]));
    check(&server.post("/oauth/token", &basic(app), &repeated).await, 400, "invalid_target", "two resources");

    // None of them has used the code up.
    let response = server.post("/oauth/token", &basic(app), &right).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.text);
    let tokens = response.json();
    let (access, refresh) = (tokens["access_token"].as_str().unwrap(), tokens["refresh_token"].as_str().unwrap());
    assert!(access.starts_with("svc_oat_") && refresh.starts_with("svc_ort_"));
    let expected = json!({
        "access_token": access,
        "token_type": "Bearer",
        "expires_in": 3600,
        "refresh_token": refresh,
        "scope": "read write",
        "tenant_id": server.tenant,
    });
    assert_eq!(tokens, expected);
    assert_eq!((response.header("cache-control"), response.header("pragma")), (Some("no-store"), Some("no-cache")));
}

#[tokio::test]
async fn a_token_is_refreshed_by_the_right_form_alone() {
    let server = Server::start().await;
    for app in [&server.confidential, &server.public] {
        let tokens = server.tokens(app).await;
        let refresh = tokens["refresh_token"].as_str().unwrap();
        let right = pairs(&[("grant_type", "refresh_token"), ("refresh_token", refresh)]);
        let long = "a".repeat(4096);
        for (change, error) in [
            (Without("refresh_token"), "invalid_request"),
            (With("refresh_token", ""), "invalid_request"),
            (Repeated("refresh_token"), "invalid_request"),
            (With("refresh_token", "svc_ort_unknown"), "invalid_grant"),
            (With("refresh_token", tokens["access_token"].as_str().unwrap()), "invalid_grant"),
            (With("refresh_token", &long), "invalid_grant"),
            (With("scope", "admin"), "invalid_scope"),
            (With("scope", "read write admin"), "invalid_scope"),
            (With("scope", &long), "invalid_scope"),
            (With("resource", "https://other.example.com"), "invalid_target"),
        ] {
            let response = server.post("/oauth/token", &basic(app), &change.of(&right)).await;
            check(&response, 400, error, &format!("{change:?}"));
        }
        let less = server.post("/oauth/token", &basic(app), &With("scope", "read").of(&right)).await.json();
        assert_eq!(less["scope"], "read");
        let contact = [("authorization", &*format!("Bearer {}", less["access_token"].as_str().unwrap()))];
        let refused = server.send(Method::POST, "/api/v1/contacts", &contact, r#"{"first_name":"Ada"}"#).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
        // The refresh token has what was granted, whatever the access token has.
        let next = With("refresh_token", less["refresh_token"].as_str().unwrap()).of(&right);
        assert_eq!(server.post("/oauth/token", &basic(app), &next).await.json()["scope"], "read write");
    }
}

/// An access token, its scope in the response, and the status of a change with it.
async fn refreshed(server: &Server, app: &NewApp, form: &Pairs) -> (String, String, u16) {
    let response = server.post("/oauth/token", &basic(app), form).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.text);
    let tokens = response.json();
    let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
    (text("access_token"), text("scope"), change(server, &text("access_token")).await)
}

async fn change(server: &Server, token: &str) -> u16 {
    let token = format!("Bearer {token}");
    let headers = [(AUTHORIZATION.as_str(), token.as_str()), (CONTENT_TYPE.as_str(), "application/json")];
    // Each contact has an address of its own.
    let address = u128::from_be_bytes(server.svc.store().env().bytes());
    let contact = format!(r#"{{"email":"{address}@example.com"}}"#);
    server.send(Method::POST, "/api/v1/contacts", &headers, &contact).await.status
}

#[tokio::test]
async fn what_an_access_token_may_do_never_changes() {
    let server = Server::start().await;
    let app = &server.public;
    for first_reads in [true, false] {
        let tokens = server.tokens(app).await;
        let refresh = tokens["refresh_token"].as_str().unwrap();
        let whole = pairs(&[("grant_type", "refresh_token"), ("refresh_token", refresh)]);
        let reads = With("scope", "read").of(&whole);
        let (first, second) = if first_reads { (&reads, &whole) } else { (&whole, &reads) };
        let status = |form| if form == &reads { 403 } else { 201 };
        let issued = refreshed(&server, app, first).await;
        assert_eq!(issued.2, status(first));
        let other = refreshed(&server, app, second).await;
        assert_eq!(other.2, status(second));
        assert_ne!(issued.0, other.0, "another scope gets another token");
        assert_eq!(change(&server, &issued.0).await, status(first), "the first one is what it was");
        // A repeat gets what was issued the first time, however the scope is written.
        assert_eq!(refreshed(&server, app, first).await, issued);
        let spelt = With("scope", if first_reads { "  read " } else { "write read" }).of(&whole);
        assert_eq!(refreshed(&server, app, &spelt).await, issued);
    }
}

#[tokio::test]
async fn an_access_token_is_never_for_more_than_it_was_issued_for() {
    let server = Server::start().await;
    let tokens = server.tokens(&server.public).await;
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let whole = pairs(&[("grant_type", "refresh_token"), ("refresh_token", refresh)]);
    let at = |version: &str| format!("{ISSUER}/api/{version}");
    let (v1, v2) = (With("resource", &at("v1")).of(&whole), With("resource", &at("v2")).of(&whole));
    let mut issued = Vec::new();
    for form in [&v2, &whole, &v1] {
        issued.push(server.post("/oauth/token", &basic(&server.public), form).await.json());
    }
    for (token, (v1, v2)) in issued.into_iter().zip([(401, 200), (200, 200), (200, 401)]) {
        let statuses = [
            server.call_at("/api/v1/contacts", &token).await.status,
            server.call_at("/api/v2/contacts", &token).await.status,
        ];
        assert_eq!(statuses, [v1, v2]);
    }
}

#[tokio::test]
async fn a_repeat_brings_no_revoked_access_token_back() {
    let server = Server::start().await;
    let app = &server.public;
    let tokens = server.tokens(app).await;
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let form = pairs(&[("grant_type", "refresh_token"), ("refresh_token", refresh)]);
    let first = server.post("/oauth/token", &basic(app), &form).await.json();
    let token = pairs(&[("token", first["access_token"].as_str().unwrap())]);
    assert_eq!(server.post("/oauth/revoke", &basic(app), &token).await.status, StatusCode::OK);
    assert_eq!(server.call(&first).await.status, StatusCode::UNAUTHORIZED);
    let again = server.post("/oauth/token", &basic(app), &form).await.json();
    assert_eq!(again["refresh_token"], first["refresh_token"]);
    assert_ne!(again["access_token"], first["access_token"]);
    assert_eq!(server.call(&first).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(server.call(&again).await.status, StatusCode::OK);
}

/// A resource narrows the access token of one request, and nothing that follows (RFC 8707 §2.2).
#[tokio::test]
async fn a_refresh_token_keeps_all_resources_that_were_granted() {
    let server = Server::start().await;
    for app in [&server.confidential, &server.public] {
        let code = server.code(&server.request(app)).await;
        let (v1, v2) = (format!("{ISSUER}/api/v1"), format!("{ISSUER}/api/v2"));
        let form = With("resource", &v2).of(&exchange(&code));
        let mut tokens = server.post("/oauth/token", &basic(app), &form).await.json();
        assert_eq!(server.call(&tokens).await.status, StatusCode::UNAUTHORIZED);
        for resource in [&v1, &v2, &v1] {
            let refresh = tokens["refresh_token"].as_str().unwrap();
            let form = pairs(&[("grant_type", "refresh_token"), ("refresh_token", refresh), ("resource", resource)]);
            let response = server.post("/oauth/token", &basic(app), &form).await;
            assert_eq!(response.status, StatusCode::OK, "{resource}: {}", response.text);
            tokens = response.json();
            let expected = if resource == &v1 { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
            assert_eq!(server.call(&tokens).await.status, expected, "{resource}");
        }
    }
}

#[tokio::test]
async fn a_suspended_account_gets_no_tokens_and_loses_none() {
    let server = Server::start().await;
    let set = async |access| {
        let account = server.svc.account(server.tenant);
        account.change_settings(move |tenant| tenant.developer_access = access).await.unwrap();
    };
    for app in [&server.confidential, &server.public] {
        let tokens = server.tokens(app).await;
        let code = server.code(&server.request(app)).await;
        let refresh = tokens["refresh_token"].as_str().unwrap();
        let refresh = pairs(&[("grant_type", "refresh_token"), ("refresh_token", refresh)]);
        set(DeveloperAccess::Suspended).await;
        for form in [&refresh, &exchange(&code)] {
            let refused = server.post("/oauth/token", &basic(app), form).await;
            check(&refused, 400, "unauthorized_client", "a suspended account");
        }
        set(DeveloperAccess::Approved).await;
        for form in [&refresh, &exchange(&code)] {
            assert_eq!(server.post("/oauth/token", &basic(app), form).await.status, StatusCode::OK);
        }
    }
}

#[tokio::test]
async fn a_client_that_is_not_who_it_says_learns_no_more() {
    let server = Server::start().await;
    let code = server.code(&server.request(&server.confidential)).await;
    let right = exchange(&code);
    let id = server.confidential.app.client_id.as_str();
    let public = server.public.app.client_id.as_str();
    let secret = server.confidential.secret.as_ref().unwrap().reveal();
    let with = |more: &[(&str, &str)]| -> Pairs { [right.clone(), pairs(more)].concat() };
    for (authorization, form) in [
        ("", right.clone()),
        ("", with(&[("client_id", id)])),
        ("", with(&[("client_id", id), ("client_secret", "")])),
        ("", with(&[("client_id", id), ("client_secret", "svc_ocs_wrong")])),
        ("", with(&[("client_id", id), ("client_secret", server.reader.secret.as_ref().unwrap().reveal())])),
        ("", with(&[("client_id", "svcapp_unknown"), ("client_secret", secret)])),
        ("", with(&[("client_id", public), ("client_secret", secret)])),
        ("", with(&[("client_secret", secret)])),
        ("Basic", right.clone()),
        ("Basic !", right.clone()),
        ("Bearer svc_oat_x", right.clone()),
    ] {
        for path in ["/oauth/token", "/oauth/revoke"] {
            let response = server.post(path, authorization, &form).await;
            // Without the header there is no challenge, for which a browser would ask a person for a password.
            let status = if authorization.is_empty() { 400 } else { 401 };
            check(&response, status, "invalid_client", &format!("{authorization} {form:?}"));
            let challenge = response.header("www-authenticate").unwrap_or_default();
            assert_eq!(challenge.starts_with("Basic realm="), status == 401, "{challenge}");
        }
    }
    let unknown =
        server.post("/oauth/token", "", &with(&[("client_id", "svcapp_unknown"), ("client_secret", "x")])).await;
    let wrong = server.post("/oauth/token", "", &with(&[("client_id", id), ("client_secret", "x")])).await;
    assert_eq!(unknown.text, wrong.text);
    for (authorization, form) in [
        (basic(&server.confidential), with(&[("client_secret", secret)])),
        (basic(&server.confidential), with(&[("client_id", public)])),
        (String::new(), with(&[("client_id", id), ("client_id", id), ("client_secret", secret)])),
        (String::new(), with(&[("client_id", id), ("client_secret", secret), ("client_secret", secret)])),
    ] {
        let response = server.post("/oauth/token", &authorization, &form).await;
        check(&response, 400, "invalid_request", &format!("{authorization} {form:?}"));
    }
    let disable = AppUpdate { disabled: Some(true), ..AppUpdate::default() };
    server.svc.apps().update(server.confidential.app.id, disable).await.unwrap();
    let disabled = server.post("/oauth/token", &basic(&server.confidential), &right).await;
    check(&disabled, 401, "invalid_client", "a disabled app");
}

#[tokio::test]
async fn a_body_that_is_no_form_is_refused_as_the_rfc_says() {
    let server = Server::start().await;
    let authorization = basic(&server.confidential);
    let authorization = (AUTHORIZATION.as_str(), authorization.as_str());
    let form = (CONTENT_TYPE.as_str(), "application/x-www-form-urlencoded");
    let many = "a=1&".repeat(65);
    let no_text = "grant_type=%ff%fe&code=%00";
    for (headers, body, code) in [
        (vec![authorization], "grant_type=refresh_token", "invalid_request"),
        (vec![authorization, (CONTENT_TYPE.as_str(), "application/json")], "{}", "invalid_request"),
        (vec![authorization, form, form], "grant_type=refresh_token", "invalid_request"),
        (vec![authorization, form, ("content-encoding", "gzip")], "grant_type=refresh_token", "invalid_request"),
        (vec![authorization, form], "", "invalid_request"),
        (vec![authorization, form], "=&&&;", "invalid_request"),
        (vec![authorization, form], no_text, "unsupported_grant_type"),
        (vec![authorization, form], many.as_str(), "invalid_request"),
        (vec![authorization, authorization, form], "grant_type=refresh_token", "invalid_request"),
    ] {
        check(
            &server.send(Method::POST, "/oauth/token", &headers, body).await,
            400,
            code,
            &format!("{headers:?} {body}"),
        );
    }
    let large = format!("code={}", "a".repeat(1 << 21));
    let response = server.send(Method::POST, "/oauth/token", &[authorization, form], &large).await;
    check(&response, 413, "invalid_request", "a large body");
    for path in ["/oauth/token", "/oauth/revoke"] {
        let response = server.send(Method::GET, path, &[], "").await;
        check(&response, 405, "invalid_request", path);
        assert_eq!(response.header("allow"), Some("POST, OPTIONS"));
    }
}

#[tokio::test]
async fn a_revocation_needs_a_token_and_says_nothing_of_those_it_does_not_know() {
    let server = Server::start().await;
    let tokens = server.tokens(&server.confidential).await;
    let authorization = basic(&server.confidential);
    let access = tokens["access_token"].as_str().unwrap();
    let right = pairs(&[("token", access)]);
    for (change, status) in [
        (Without("token"), 400),
        (With("token", ""), 400),
        (Repeated("token"), 400),
        (With("token", "svc_oat_unknown"), 200),
        (With("token", &"a".repeat(4096)), 200),
    ] {
        let response = server.post("/oauth/revoke", &authorization, &change.of(&right)).await;
        match status {
            400 => check(&response, 400, "invalid_request", &format!("{change:?}")),
            status => assert_eq!((response.status, response.text.as_str()), (status, "{}\n"), "{change:?}"),
        }
    }
    // The token of another app is refused, and the app learns of it (RFC 7009 §2.1).
    for token in [access, tokens["refresh_token"].as_str().unwrap()] {
        let foreign = server.post("/oauth/revoke", &basic(&server.reader), &With("token", token).of(&right)).await;
        check(&foreign, 400, "invalid_grant", "the token of another app");
        assert_eq!(server.call(&tokens).await.status, StatusCode::OK);
    }
    // A hint is a hint: a wrong one does not hide the token (RFC 7009 §2.1).
    for (change, hint) in
        [(Unchanged, "refresh_token"), (With("token", tokens["refresh_token"].as_str().unwrap()), "access_token")]
    {
        let form = [change.of(&right), pairs(&[("token_type_hint", hint)])].concat();
        assert_eq!(server.post("/oauth/revoke", &authorization, &form).await.status, StatusCode::OK);
        assert_eq!(server.call(&tokens).await.status, StatusCode::UNAUTHORIZED);
    }
    assert!(server.svc.account(server.tenant).grants().list().await.unwrap().is_empty());
}

#[tokio::test]
async fn scripts_of_other_pages_may_ask_for_tokens_and_metadata() {
    let server = Server::start().await;
    for (path, method) in [
        ("/oauth/token", "POST"),
        ("/oauth/revoke", "POST"),
        ("/.well-known/oauth-authorization-server", "GET, HEAD"),
        ("/.well-known/oauth-protected-resource/api/v1", "GET, HEAD"),
    ] {
        let headers = [
            ("origin", "https://app.example.com"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "mcp-protocol-version"),
        ];
        let response = server.send(Method::OPTIONS, path, &headers, "").await;
        assert_eq!(response.status, StatusCode::NO_CONTENT, "{path}");
        assert_eq!(response.header("access-control-allow-origin"), Some("*"), "{path}");
        assert_eq!(response.header("access-control-allow-methods"), Some(method), "{path}");
        let allowed: Vec<&str> = response.header("access-control-allow-headers").unwrap().split(", ").collect();
        for sent in ["authorization", "content-type", "mcp-protocol-version", "x-request-id", "*"] {
            assert!(allowed.contains(&sent), "{path}: {sent}");
        }
        assert_eq!(response.header("access-control-allow-credentials"), None, "{path}");
    }
    let page = server.authorize(&server.request(&server.confidential)).await;
    assert_eq!(page.header("access-control-allow-origin"), None);
}
