//! What keeps callers apart: scopes, listeners and accounts.

use std::collections::{BTreeMap, BTreeSet};

use http::{Method, StatusCode};
use serde_json::json;
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::platform_keys::PlatformScope;
use svc_core::operation::AnyOperation;
use svc_core::platform::operations::{platform as operations, public};
use svc_core::values::{TenantId, parse_uuid};
use svc_server::kernel::versions::method_of;

use super::{PlatformServer, UNKNOWN, body_of, one_of_each, path_of, send};

/// The scope that each operation needs. An operation without an entry fails the test.
fn scopes() -> BTreeMap<&'static str, &'static str> {
    let groups = [
        ("accounts:read", "listAccounts getAccount findAccounts getSandbox"),
        ("accounts:write", "createAccount updateAccount createSandbox resetSandbox deleteSandbox"),
        ("keys:read", "listKeys getKey"),
        ("keys:write", "createKey revokeKey rotateKey"),
        ("apps:read", "listApps getApp listGrants"),
        ("apps:write", "createApp updateApp rotateAppSecret deleteApp revokeGrant"),
        ("members:read", "listMembers getMember"),
        ("members:write", "addMember updateMember removeMember createDashboardLink"),
        (
            "records:read",
            "listContacts getContact listInvoices getInvoice listBookings getBooking listQuotes getQuote listJobs getJob \
             findIds findRecords getContactData listPayments",
        ),
        (
            "records:write",
            "createContact updateContact deleteContact createInvoice updateInvoice sendInvoice viewInvoice resendInvoice \
             payInvoice refundInvoice voidInvoice markOverdueInvoices createBooking updateBooking createQuote updateQuote \
             acceptQuote declineQuote convertQuote invoiceJob createJob updateJob eraseContact shareInvoice unshareInvoice \
             shareQuote unshareQuote shareCalendar unshareCalendar",
        ),
        ("events:read", "listEvents getEvent"),
        ("events:write", "emitEvent emitSampleEvent"),
        ("webhooks:read", "listWebhooks getWebhook getWebhookStatistics listWebhookAttempts"),
        (
            "webhooks:write",
            "createWebhook updateWebhook deleteWebhook rotateWebhookSecret finishWebhookSecretRotation testWebhook \
             createTemporaryWebhook createStreamWebhook keepWebhook",
        ),
        ("deliveries:read", "listDeliveries getDelivery listDeliveryAttempts listReplays getReplay getStatistics"),
        ("deliveries:write", "replayDelivery createReplay"),
        ("audit:read", "listAuditLog listRequests"),
        ("export:read", "exportRecords"),
        ("import:write", "importRecords"),
        ("operators:write", "createOperatorLink"),
    ];
    groups.into_iter().flat_map(|(scope, ids)| ids.split_whitespace().map(move |id| (id, scope))).collect()
}

#[tokio::test]
async fn each_operation_needs_its_scope() {
    let fixture = PlatformServer::new().await;
    let account = fixture.account("Harbour Plumbing").await;
    let needed = scopes();
    let ids: BTreeSet<&str> = operations().iter().map(|operation| operation.id).collect();
    assert_eq!(ids, needed.keys().copied().collect());
    let mut keys = Vec::new();
    for scope in PlatformScope::all() {
        keys.push((scope, fixture.new_key(&[scope]).await));
    }
    for operation in operations() {
        let needs: PlatformScope = needed[operation.id].parse().unwrap();
        let PlatformScope::Of(area, kind) = needs else { panic!("{needs}") };
        let body = body_of(operation);
        for (scope, key) in &keys {
            let path = path_of(operation, &account, UNKNOWN);
            let reply = fixture.call_as(key, &method_of(operation), &path, body.as_ref(), &[]).await;
            let refused = (reply.status, reply.code()) == (StatusCode::FORBIDDEN, "insufficient_scope");
            assert_eq!(refused, !scope.allows(area, kind), "{} with {scope}: {}", operation.id, reply.body);
            assert!(refused || !reply.status.is_server_error(), "{}: {}", operation.id, reply.body);
        }
    }
}

#[tokio::test]
async fn each_listener_has_its_own_operations_and_takes_its_own_keys() {
    let fixture = PlatformServer::new().await;
    let account = fixture.account("Harbour Plumbing").await;
    let tenant = TenantId(parse_uuid(&account).unwrap());
    let input = KeyCreate { write: true, ..KeyCreate::default() };
    let made = fixture
        .svc
        .store()
        .write("test", (tenant, input), async |tx, (tenant, input)| keys::create(tx, *tenant, input.clone()).await)
        .await
        .unwrap();
    let api_key = made.text.reveal();
    for operation in operations() {
        let body = body_of(operation);
        let path = format!("/platform/v1{}", path_of(operation, &account, UNKNOWN));
        let reply = send(&fixture.public, &fixture.key, &method_of(operation), &path, body.as_ref(), &[]).await;
        assert_eq!((reply.status, reply.code()), (StatusCode::NOT_FOUND, "route_not_found"), "{}", operation.id);
        let reply = send(&fixture.platform, api_key, &method_of(operation), &path, body.as_ref(), &[]).await;
        assert_eq!((reply.status, reply.code()), (StatusCode::UNAUTHORIZED, "invalid_key"), "{}", operation.id);
    }
    for operation in public() {
        let path = format!("/api/v1{}", operation.path_in_account().replace("{id}", UNKNOWN));
        let reply = send(&fixture.platform, api_key, &method_of(operation), &path, None, &[]).await;
        assert_eq!((reply.status, reply.code()), (StatusCode::NOT_FOUND, "route_not_found"), "{}", operation.id);
        let reply = send(&fixture.public, &fixture.key, &method_of(operation), &path, None, &[]).await;
        assert_eq!((reply.status, reply.code()), (StatusCode::UNAUTHORIZED, "invalid_key"), "{}", operation.id);
    }
    let reply = send(&fixture.platform, "", &Method::GET, "/platform/v1/accounts", None, &[]).await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{}", reply.body);
}

#[tokio::test]
async fn an_id_of_another_account_is_treated_as_unknown() {
    let fixture = PlatformServer::new().await;
    let (one, other) = (fixture.account("One").await, fixture.account("Other").await);
    let ids = one_of_each(&fixture, &other).await;
    one_of_each(&fixture, &one).await;
    // An app belongs to no account, and is found by its id alone.
    let of_account = |operation: &&dyn AnyOperation| operation.has_id && operation.path().contains("{account_id}");
    for operation in operations().iter().copied().filter(of_account) {
        let body = body_of(operation);
        let id = &ids[operation.tag];
        let call = async |account: &str, id: &str| {
            let path = path_of(operation, account, id);
            fixture.call(&method_of(operation), &path, body.as_ref(), &[]).await
        };
        let (foreign, unknown) = (call(&one, id).await, call(&one, UNKNOWN).await);
        assert_eq!((foreign.status, foreign.code()), (StatusCode::NOT_FOUND, "not_found"), "{}", operation.id);
        assert_eq!(foreign.body, unknown.body, "{}", operation.id);
        let malformed = call(&one, "x").await;
        assert_eq!(
            (malformed.status, &malformed.body["field"]),
            (StatusCode::BAD_REQUEST, &json!("id")),
            "{}",
            operation.id
        );
    }
    for operation in operations().iter().copied().filter(|operation| operation.path().contains("{account_id}")) {
        let body = body_of(operation);
        let unknown = path_of(operation, UNKNOWN, UNKNOWN);
        let reply = fixture.call(&method_of(operation), &unknown, body.as_ref(), &[]).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{}: {}", operation.id, reply.body);
        let malformed =
            fixture.call(&method_of(operation), &path_of(operation, "x", UNKNOWN), body.as_ref(), &[]).await;
        let field = (malformed.status, &malformed.body["field"]);
        assert_eq!(field, (StatusCode::BAD_REQUEST, &json!("account_id")), "{}", operation.id);
    }
}
