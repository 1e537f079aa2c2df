//! A sample of the `data` of each event kind: what a test event carries, and the examples of the OpenAPI document.

use serde_json::{Value, json};

use crate::accounts::operational::{OperationalKind, PLATFORM_ACCOUNT};
use crate::values::{EventKind, EventKinds, TenantId};

/// Returns the `data` of a sample event for a tenant: that of [`data`], or of an operational kind for the platform account,
/// which alone has these.
pub(crate) fn data_for(tenant: TenantId, kinds: &EventKinds, kind: EventKind) -> Option<Value> {
    let operational_kind = OperationalKind::of(kind).filter(|_| tenant == PLATFORM_ACCOUNT);
    operational_kind.map(operational).or_else(|| data(kinds, kind))
}

/// Returns the `data` of a sample event of a kind. It has the fields that a real event of this kind has, and the same
/// values each time. Its ids belong to no record. The sample of a registered kind is the example of its schema, and `None`
/// is returned for a kind that is not registered.
///
/// ```
/// use svc_core::values::{EventKind, EventKinds};
/// use svc_core::webhooks::samples;
/// let cancelled = samples::data(&EventKinds::default(), EventKind::BookingCancelled);
/// assert_eq!(cancelled.unwrap()["status"], "cancelled");
/// ```
pub fn data(kinds: &EventKinds, kind: EventKind) -> Option<Value> {
    use EventKind as K;
    let paid = |status| invoice(json!({ "status": status }));
    let unpaid = |status| invoice(json!({ "status": status, "paid_at": null }));
    Some(match kind {
        K::InvoiceCreated => unpaid("draft"),
        K::InvoiceSent | K::InvoiceResent => unpaid("sent"),
        K::InvoiceUpdated => unpaid("viewed"),
        K::InvoiceVoided => unpaid("cancelled"),
        K::InvoicePaid => paid("paid"),
        K::InvoiceRefunded => invoice(json!({
            "status": "cancelled",
            "updated_at": "2026-03-16T02:20:11.204977Z",
            "refunded_amount": 1320.5,
            "refunded_at": "2026-03-16T02:20:11.204977Z",
        })),
        K::QuoteCreated => quote("draft"),
        K::QuoteAccepted => quote("accepted"),
        K::QuoteDeclined => quote("declined"),
        K::QuoteUpdated => quote("sent"),
        K::BookingCreated | K::BookingUpdated => booking("confirmed"),
        K::BookingCancelled => booking("cancelled"),
        K::JobCreated => job(json!({ "status": "quoted" })),
        K::JobScheduled | K::JobUpdated => job(json!({})),
        K::JobCompleted => job(json!({
            "status": "completed",
            "actual_start": "2026-03-14T13:02:11.204977Z",
            "actual_end": "2026-03-14T15:09:26.535897Z",
        })),
        K::ContactCreated | K::ContactUpdated => contact(json!({})),
        K::ContactDeleted => contact(json!({ "deleted_at": "2026-03-14T15:09:26.535897Z" })),
        K::PaymentSucceeded => json!({
            "id": "0195a3c8-8a00-7000-8000-00000000ea01",
            "invoice_id": "0195a3c8-8a00-7000-8000-00000000e001",
            "amount": 1320.5,
            "currency": "AUD",
            "paid_at": "2026-03-14T15:09:26.535897Z",
        }),
        K::StayCreated
        | K::StayConfirmed
        | K::StayCheckedIn
        | K::StayCheckedOut
        | K::StayCancelled
        | K::StayNoShow
        | K::CohortSessionsGenerated => json!({ "id": 4711, "updated_at": "2026-03-14T15:09:26Z" }),
        K::Custom(name) => return kinds.example(name).cloned(),
    })
}

/// Returns the `data` of a sample event of an operational kind.
pub fn operational(kind: OperationalKind) -> Value {
    const ACCOUNT: &str = "0195a3c8-8a00-7000-8000-00000000a001";
    const TIME: &str = "2026-03-14T15:09:26.535897Z";
    match kind {
        OperationalKind::EndpointPaused => json!({
            "id": "0195a3c8-8a00-7000-8000-000000001001",
            "account_id": ACCOUNT,
            "occurred_at": TIME,
            "url": "https://example.com/hooks",
            "consecutive_failures": 10,
            "last_delivery_status": 503,
        }),
        OperationalKind::DeliveryExhausted => json!({
            "id": "0195a3c8-8a00-7000-8000-000000001002",
            "account_id": ACCOUNT,
            "occurred_at": TIME,
            "event_id": "0195a3c8-8a00-7000-8000-000000001003",
            "event": "contact.created",
            "webhook_id": "0195a3c8-8a00-7000-8000-000000001001",
            "url": "https://example.com/hooks",
            "attempts": 6,
            "last_status": 503,
            "error": "status: 503",
        }),
        OperationalKind::KeyExpiring => json!({
            "id": "0195a3c8-8a00-7000-8000-000000001004",
            "account_id": ACCOUNT,
            "occurred_at": TIME,
            "name": "Accounting",
            "prefix": "svc_live_1a2B3c",
            "scopes": ["read", "write"],
            "expires_at": "2026-03-21T15:00:00.000000Z",
            "last_used_at": "2026-03-14T15:08:01.204977Z",
        }),
        OperationalKind::AppAuthorized => json!({
            "id": "0195a3c8-8a00-7000-8000-000000001005",
            "account_id": ACCOUNT,
            "occurred_at": TIME,
            "app_id": "0195a3c8-8a00-7000-8000-000000001006",
            "app_name": "Route Planner",
            "scopes": ["read", "write"],
            "member": "ada@example.com",
        }),
        OperationalKind::AppRevoked => json!({
            "id": "0195a3c8-8a00-7000-8000-000000001005",
            "account_id": ACCOUNT,
            "occurred_at": TIME,
            "app_id": "0195a3c8-8a00-7000-8000-000000001006",
            "app_name": "Route Planner",
            "reason": "revoked",
            "revoked_by": "dashboard:ada@example.com",
        }),
        OperationalKind::AppDisconnected => json!({
            "id": "0195a3c8-8a00-7000-8000-000000001005",
            "account_id": ACCOUNT,
            "occurred_at": TIME,
            "client_id": "svcapp_4fGh2kLmN8pQr6sTuV0wXyZa",
            "reason": "revoked",
            "webhook_id": "0195a3c8-8a00-7000-8000-000000001007",
        }),
        OperationalKind::AccountApproved => json!({
            "id": ACCOUNT,
            "account_id": ACCOUNT,
            "occurred_at": TIME,
            "name": "Harbour Plumbing",
            "approved_by": "cli:ada",
        }),
    }
}

fn contact(changes: Value) -> Value {
    let contact = json!({
        "id": "0195a3c8-8a00-7000-8000-00000000c001",
        "email": "ada@example.com",
        "first_name": "Ada",
        "last_name": "Nguyen",
        "phone": "0491 570 006",
        "company_name": "Harbour Cafe",
        "city": "Sydney",
        "state": "NSW",
        "postcode": "2000",
        "created_at": "2026-03-14T15:09:26.535897Z",
        "updated_at": "2026-03-14T15:09:26.535897Z",
    });
    with(contact, changes)
}

fn invoice(changes: Value) -> Value {
    let invoice = json!({
        "id": "0195a3c8-8a00-7000-8000-00000000e001",
        "invoice_number": "INV-0001",
        "contact_id": "0195a3c8-8a00-7000-8000-00000000c001",
        "status": "paid",
        "issue_date": "2026-03-01",
        "due_date": "2026-03-15",
        "total": 1320.5,
        "currency": "AUD",
        "paid_at": "2026-03-14T15:09:26.535897Z",
        "created_at": "2026-03-01T01:00:00.000000Z",
        "updated_at": "2026-03-14T15:09:26.535897Z",
    });
    with(invoice, changes)
}

fn quote(status: &str) -> Value {
    json!({
        "id": "0195a3c8-8a00-7000-8000-00000000d001",
        "quote_number": "QUO-0001",
        "contact_id": "0195a3c8-8a00-7000-8000-00000000c001",
        "status": status,
        "issue_date": "2026-03-14",
        "valid_until": "2026-04-13",
        "total": 480,
        "currency": "AUD",
        "created_at": "2026-03-14T15:09:26.535897Z",
        "updated_at": "2026-03-14T15:09:26.535897Z",
    })
}

fn booking(status: &str) -> Value {
    json!({
        "id": "0195a3c8-8a00-7000-8000-00000000b001",
        "contact_id": "0195a3c8-8a00-7000-8000-00000000c001",
        "service_name": "Blocked drain",
        "start_time": "2026-03-20T09:00:00.000000Z",
        "end_time": "2026-03-20T10:00:00.000000Z",
        "status": status,
        "notes": null,
        "created_at": "2026-03-14T15:09:26.535897Z",
        "updated_at": "2026-03-14T15:09:26.535897Z",
    })
}

fn job(changes: Value) -> Value {
    let job = json!({
        "id": "0195a3c8-8a00-7000-8000-00000000f001",
        "job_number": "JOB-0001",
        "title": "Replace hot water system",
        "status": "scheduled",
        "job_type": "installation",
        "priority": "high",
        "contact_id": "0195a3c8-8a00-7000-8000-00000000c001",
        "customer_name": "Ada Nguyen",
        "customer_email": "ada@example.com",
        "customer_phone": "0491 570 006",
        "site_address": "12 Wharf Road",
        "site_suburb": "Balmain",
        "site_state": "NSW",
        "site_postcode": "2041",
        "scheduled_start": "2026-03-21T22:00:00.000000Z",
        "scheduled_end": "2026-03-22T02:00:00.000000Z",
        "actual_start": null,
        "actual_end": null,
        "estimated_total": 2150.75,
        "actual_total": null,
        "quote_id": null,
        "invoice_id": null,
        "created_at": "2026-03-14T15:09:26.535897Z",
        "updated_at": "2026-03-14T15:09:26.535897Z",
    });
    with(job, changes)
}

/// Replaces fields of a record, or adds them at its end.
fn with(mut record: Value, changes: Value) -> Value {
    if let (Value::Object(fields), Value::Object(changes)) = (&mut record, changes) {
        fields.extend(changes);
    }
    record
}
