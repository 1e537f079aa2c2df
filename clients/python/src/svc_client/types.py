# Written by generate.py from the OpenAPI document. Do not edit it.
# ruff: noqa: E501
"""The records, inputs and events of the API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from svc_client._typing import Literal, NotRequired, datetime
from typing import Any, TypeAlias, TypedDict


@dataclass(kw_only=True, slots=True)
class Booking:
    """A booking: an appointment with a contact."""

    id: str
    """The unique identifier of the booking, a UUID of version 7 that the service assigns."""
    contact_id: str | None
    """The contact the appointment is for. Set at creation, and kept when the contact is deleted. It can be null only if the booking was not created through the API."""
    service_name: str | None
    """The service that is booked. Set at creation. It can be null only if the booking was not created through the API."""
    start_time: datetime
    """When the appointment starts."""
    end_time: datetime
    """When the appointment ends. Always after `start_time`."""
    status: BookingStatus
    """The status of the appointment. Only updates change it; the service never changes it by itself."""
    notes: str | None
    """Free text about the appointment, exactly as it was sent. It may have several lines. Null if there is none."""
    created_at: datetime
    """When the booking was created. Unique among the account's bookings."""
    updated_at: datetime
    """When the booking last changed. Equal to `created_at` until then, and unique among the account's bookings."""
    etag: str | None = None
    """The version of the record, which `update` and `delete` send as `If-Match`. None in lists and events."""


@dataclass(kw_only=True, slots=True)
class BookingCancelledEvent:
    """The status of a booking became `cancelled`."""

    event: Literal['booking.cancelled']
    """The kind of the event."""
    data: Booking
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class BookingCreatedEvent:
    """A booking was created."""

    event: Literal['booking.created']
    """The kind of the event."""
    data: Booking
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


BookingStatus: TypeAlias = Literal['cancelled', 'confirmed', 'completed', 'no_show']
"""
- `cancelled`: The appointment was called off.
- `confirmed`: The appointment is agreed. Every booking starts with this status.
- `completed`: The appointment has taken place.
- `no_show`: The customer did not come.
"""


@dataclass(kw_only=True, slots=True)
class BookingUpdatedEvent:
    """A booking changed. If the change also fires a more specific kind, that one comes first."""

    event: Literal['booking.updated']
    """The kind of the event."""
    data: Booking
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class CohortSessionsGeneratedEvent:
    """The sessions of a cohort were generated."""

    event: Literal['cohort.sessions_generated']
    """The kind of the event."""
    data: ExternalRecord
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class Contact:
    """A contact: a person or company that the business deals with."""

    id: str
    """The unique identifier of the contact, a UUID of version 7 that the service assigns."""
    email: str | None
    """The email address, as it was sent. No two contacts of an account have the same address, ignoring case, unless the operator allows it for the account. Null if an update cleared it, or if the contact was imported without one."""
    first_name: str | None
    """The given name. Null if it is not known."""
    last_name: str | None
    """The family name. Null if it is not known."""
    phone: str | None
    """The telephone number, as it was sent. Null if it is not known."""
    company_name: str | None
    """The name of the company that the contact is or works for. Null if there is none."""
    city: str | None
    """The town or city of the address. Null if it is not known."""
    state: str | None
    """The state or province of the address. Null if it is not known."""
    postcode: str | None
    """The postal code of the address. Null if it is not known."""
    created_at: datetime
    """When the contact was created. Unique among the account's contacts."""
    updated_at: datetime
    """When the contact last changed. Equal to `created_at` until then, and unique among the account's contacts."""
    deleted_at: datetime | None = None
    """When the contact was deleted. The field is present on deleted contacts only. Lists contain them when `include_deleted` is `true`; GET by id does not find them."""
    etag: str | None = None
    """The version of the record, which `update` and `delete` send as `If-Match`. None in lists and events."""


@dataclass(kw_only=True, slots=True)
class ContactCreatedEvent:
    """A contact was created."""

    event: Literal['contact.created']
    """The kind of the event."""
    data: Contact
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class ContactDeletedEvent:
    """A contact was deleted."""

    event: Literal['contact.deleted']
    """The kind of the event."""
    data: DeletedContact
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class ContactUpdatedEvent:
    """A contact changed."""

    event: Literal['contact.updated']
    """The kind of the event."""
    data: Contact
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class DeletedContact:
    """A contact that was deleted."""

    id: str
    """The unique identifier of the contact, a UUID of version 7 that the service assigns."""
    email: str | None
    """The email address, as it was sent. No two contacts of an account have the same address, ignoring case, unless the operator allows it for the account. Null if an update cleared it, or if the contact was imported without one."""
    first_name: str | None
    """The given name. Null if it is not known."""
    last_name: str | None
    """The family name. Null if it is not known."""
    phone: str | None
    """The telephone number, as it was sent. Null if it is not known."""
    company_name: str | None
    """The name of the company that the contact is or works for. Null if there is none."""
    city: str | None
    """The town or city of the address. Null if it is not known."""
    state: str | None
    """The state or province of the address. Null if it is not known."""
    postcode: str | None
    """The postal code of the address. Null if it is not known."""
    created_at: datetime
    """When the contact was created. Unique among the account's contacts."""
    updated_at: datetime
    """When the contact last changed. Equal to `created_at` until then, and unique among the account's contacts."""
    deleted_at: datetime
    """When the contact was deleted. The field is present on deleted contacts only. Lists contain them when `include_deleted` is `true`; GET by id does not find them."""


DisabledReason: TypeAlias = Literal['auto_paused']
"""- `auto_paused`: Ten delivery attempts in a row failed."""


ErrorCode: TypeAlias = Literal['invalid_json', 'validation_failed', 'unknown_parameter', 'invalid_cursor', 'empty_patch', 'reference_not_found', 'idempotency_key_reused', 'missing_credentials', 'invalid_key', 'key_revoked', 'key_expired', 'signature_required', 'signature_invalid', 'signature_reused', 'insufficient_scope', 'access_not_approved', 'not_found', 'route_not_found', 'method_not_allowed', 'body_incomplete', 'email_taken', 'limit_reached', 'idempotency_in_progress', 'not_allowed', 'precondition_failed', 'body_too_large', 'uri_too_long', 'unsupported_media_type', 'rate_limited', 'headers_too_large', 'internal_error', 'unavailable']
"""
The kind of failure, for programs. Codes are stable; new ones may be added.

| Status | Code | Meaning |
|---|---|---|
| 400 | `invalid_json` | The body is not one JSON object in UTF-8, or nests deeper than 32 levels. |
| 400 | `validation_failed` | Fields of the body, query, path or headers are not valid; `errors` lists them. |
| 400 | `unknown_parameter` | The operation has no query parameter of this name. |
| 400 | `invalid_cursor` | The cursor was not returned by this list with these filters. |
| 400 | `empty_patch` | The PATCH has no field. |
| 400 | `reference_not_found` | The `contact_id` is not a contact of this account, or the contact is deleted. |
| 400 | `idempotency_key_reused` | The `Idempotency-Key` was used with another request. |
| 401 | `missing_credentials` | The request has no `Authorization: Bearer` header. |
| 401 | `invalid_key` | The API key is malformed or unknown, or the header is repeated. |
| 401 | `key_revoked` | The API key was revoked. |
| 401 | `key_expired` | The API key has expired. |
| 401 | `signature_required` | The API key requires signed writes, and a signature header is missing. |
| 401 | `signature_invalid` | The request signature is wrong, stale or malformed. |
| 401 | `signature_reused` | The request signature was used before. |
| 403 | `insufficient_scope` | The API key lacks the `write` scope. |
| 403 | `access_not_approved` | Developer access of the account is pending or suspended. |
| 404 | `not_found` | The account has no record with this id. |
| 404 | `route_not_found` | No operation has this path. |
| 405 | `method_not_allowed` | The path does not have this method; `Allow` lists those that it has. |
| 408 | `body_incomplete` | The body did not arrive in full, or not in time. |
| 409 | `email_taken` | Another contact that is not deleted has the email address. |
| 409 | `limit_reached` | The account has as many webhook subscriptions as it can have. |
| 409 | `idempotency_in_progress` | The first request with this `Idempotency-Key` is still running. |
| 409 | `not_allowed` | The state of the record does not allow this step, such as a replay to a disabled webhook. |
| 412 | `precondition_failed` | The record has none of the ETags in `If-Match`. |
| 413 | `body_too_large` | The body is larger than 1 MiB. |
| 414 | `uri_too_long` | The request target is longer than 8 KiB. |
| 415 | `unsupported_media_type` | The body is not sent as JSON, or has a `Content-Encoding`. |
| 429 | `rate_limited` | A rate limit is used up. |
| 431 | `headers_too_large` | All headers together are larger than 16 KiB. |
| 500 | `internal_error` | The service failed. |
| 503 | `unavailable` | The service is not available right now. |
"""


ExternalRecord: TypeAlias = dict[str, Any]
"""The record of a hotel stay or a cohort. Both are kept elsewhere in the service, and the object is passed on as it was given. It may have any fields besides its `id`."""


@dataclass(kw_only=True, slots=True)
class FieldError:
    """A field of the request that is not valid."""

    field: str
    """
    A dotted path into the body such as `line_items.0`, or the name of a query parameter or header. Names longer
    than 200 characters are shortened.
    """
    code: FieldErrorCode
    message: str
    """A sentence for people that names the field and says what it must be."""


FieldErrorCode: TypeAlias = Literal['required', 'invalid_type', 'invalid_format', 'invalid_enum', 'too_long', 'too_short', 'out_of_range', 'not_nullable', 'unknown_field', 'read_only_field', 'duplicate_key', 'invalid_cursor', 'reference_not_found']
"""
The mistake in the field, for programs. Codes are stable; new ones may be added.

| Code | Meaning |
|---|---|
| `required` | The field is missing. |
| `invalid_type` | The value has another JSON type. Nothing is converted: `"100"` is not a number. |
| `invalid_format` | The text has the wrong form, such as a timestamp without an offset. |
| `invalid_enum` | The value is not one of the allowed values. |
| `too_long`, `too_short` | The text or array is longer or shorter than allowed. |
| `out_of_range` | The number or time is outside its range, or an amount has too many decimals. |
| `not_nullable` | The field cannot be null. |
| `unknown_field` | The request has no such field or query parameter. |
| `read_only_field` | The service sets the field, or this request cannot change it. |
| `duplicate_key` | The field or query parameter was sent more than once. |
| `invalid_cursor` | The cursor was not returned by this list with these filters. |
| `reference_not_found` | The field is not the id of a contact of this account, or the contact is deleted. |
"""


@dataclass(kw_only=True, slots=True)
class Invoice:
    """An invoice: a request for payment to a contact. The API cannot change invoices; events report their changes."""

    id: str
    """The unique identifier of the invoice, a UUID of version 7 that the service assigns."""
    invoice_number: str
    """The number of the invoice, such as `INV-0001`. Assigned by the service at creation by counting up within the account, and never reused. An imported invoice may have a number of another form."""
    contact_id: str | None
    """The contact who is to pay. It is kept when the contact is deleted. Null if none was given."""
    status: str
    """
    The status of the invoice. New values may be added, so accept those that you do not know.

    - `draft`: The invoice has not been sent yet.
    - `sent`: The invoice was sent to the customer.
    - `viewed`: The customer has seen the invoice.
    - `partial`: The invoice was paid in part.
    - `paid`: The invoice was paid in full.
    - `overdue`: The invoice was not paid in full by its due date.
    - `cancelled`: The invoice was voided, or refunded in full.
    """
    issue_date: date | None
    """The day on which the invoice was issued, in the account's time zone. Null if none was given."""
    due_date: date | None
    """The day by which the invoice is to be paid, in the account's time zone; after it, the invoice can become `overdue`. Null if it has none."""
    total: Decimal
    """The amount to pay in `currency`, an exact decimal number with no more decimals than the currency has."""
    currency: str
    """The currency of `total`: a three-letter code of ISO 4217 in upper case."""
    paid_at: datetime | None
    """When the invoice was paid in full. Null until then, and kept after a refund."""
    created_at: datetime
    """When the invoice was created. Unique among the account's invoices."""
    updated_at: datetime
    """When the invoice last changed. Equal to `created_at` until then, and unique among the account's invoices."""
    etag: str | None = None
    """The version of the record, which `update` and `delete` send as `If-Match`. None in lists and events."""


@dataclass(kw_only=True, slots=True)
class InvoiceCreatedEvent:
    """An invoice was created."""

    event: Literal['invoice.created']
    """The kind of the event."""
    data: Invoice
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class InvoicePaidEvent:
    """An invoice was paid in full."""

    event: Literal['invoice.paid']
    """The kind of the event."""
    data: Invoice
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class InvoiceRefundedEvent:
    """An invoice was refunded, in full or in part."""

    event: Literal['invoice.refunded']
    """The kind of the event."""
    data: RefundedInvoice
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class InvoiceResentEvent:
    """An invoice was sent again, without a change."""

    event: Literal['invoice.resent']
    """The kind of the event."""
    data: Invoice
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class InvoiceSentEvent:
    """An invoice was sent to the customer."""

    event: Literal['invoice.sent']
    """The kind of the event."""
    data: Invoice
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class InvoiceUpdatedEvent:
    """An invoice changed. If the change also fires a more specific kind, that one comes first."""

    event: Literal['invoice.updated']
    """The kind of the event."""
    data: Invoice
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class InvoiceVoidedEvent:
    """An invoice was voided."""

    event: Literal['invoice.voided']
    """The kind of the event."""
    data: Invoice
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class Job:
    """A job: work on a site."""

    id: str
    """The unique identifier of the job, a UUID of version 7 that the service assigns."""
    job_number: str
    """The number of the job, such as `JOB-0001`. Assigned by the service at creation: the numbers of an account count up without gaps and are never reused."""
    title: str
    """The work to do, as a single line."""
    status: JobStatus
    """The status of the work. Updates change it, and an invoice that is made from the job makes it `invoiced`."""
    job_type: str | None
    """The kind of work, in the account's own words. Null if none was given."""
    priority: str | None
    """How urgent the work is, in the account's own words. Null if it was not given."""
    contact_id: str | None
    """The contact the work is for. Set at creation, and kept when the contact is deleted. Null if none was given."""
    customer_name: str | None
    """The first and last name of the contact, or its company name if it has neither. Copied when the job is created; later changes of the contact do not affect it. Null without a contact, or if the contact has no name."""
    customer_email: str | None
    """The email address of the contact, copied when the job is created. Null without a contact, or if the contact has none."""
    customer_phone: str | None
    """The telephone number of the contact, copied when the job is created. Null without a contact, or if the contact has none."""
    site_address: str | None
    """The street address of the site. Set at creation. Null if it was not given."""
    site_suburb: str | None
    """The suburb of the site. Set at creation. Null if it was not given."""
    site_state: str | None
    """The state or province of the site. Set at creation. Null if it was not given."""
    site_postcode: str | None
    """The postal code of the site. Set at creation. Null if it was not given."""
    scheduled_start: datetime | None
    """When the work is planned to start. Null while it is not planned."""
    scheduled_end: datetime | None
    """When the work is planned to end. Never before `scheduled_start`. Null while it is not planned."""
    actual_start: datetime | None
    """When the status first became `in_progress`. The service sets it, once. Null until then."""
    actual_end: datetime | None
    """When the status first became `completed`. The service sets it, once. Null until then."""
    estimated_total: Decimal | None
    """The estimated price, an exact number with at most two decimals and no currency. Null if there is no estimate."""
    actual_total: Decimal | None
    """The final price, an exact number with at most two decimals and no currency. Null until an update sets it."""
    quote_id: str | None
    """The quote that the job was made from. Null if it was made from none."""
    invoice_id: str | None
    """The invoice that was made from the job. Null until then."""
    created_at: datetime
    """When the job was created. Unique among the account's jobs."""
    updated_at: datetime
    """When the job last changed. Equal to `created_at` until then, and unique among the account's jobs."""
    etag: str | None = None
    """The version of the record, which `update` and `delete` send as `If-Match`. None in lists and events."""


@dataclass(kw_only=True, slots=True)
class JobCompletedEvent:
    """The status of a job became `completed`, or the job was created with it."""

    event: Literal['job.completed']
    """The kind of the event."""
    data: Job
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class JobCreatedEvent:
    """A job was created."""

    event: Literal['job.created']
    """The kind of the event."""
    data: Job
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class JobScheduledEvent:
    """The status of a job became `scheduled`, or the job was created with it."""

    event: Literal['job.scheduled']
    """The kind of the event."""
    data: Job
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


JobStatus: TypeAlias = Literal['quoted', 'scheduled', 'in_progress', 'on_hold', 'completed', 'invoiced', 'cancelled']
"""
- `quoted`: The work has been offered but not agreed yet.
- `scheduled`: The work is planned.
- `in_progress`: The work has started.
- `on_hold`: The work has been interrupted.
- `completed`: The work is done.
- `invoiced`: The work has been invoiced.
- `cancelled`: The work was called off.
"""


@dataclass(kw_only=True, slots=True)
class JobUpdatedEvent:
    """A job changed. If the change also fires a more specific kind, that one comes first."""

    event: Literal['job.updated']
    """The kind of the event."""
    data: Job
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class OtherEvent:
    """An event of a kind or a form that this version does not know, or with a thin payload."""

    event: str
    """The kind of the event."""
    data: dict[str, Any]
    """The record, with exact numbers. In a thin payload it has its `id` alone."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""
    event_id: str | None = None
    """The id of the event, in a thin payload, with which it can be read."""


@dataclass(kw_only=True, slots=True)
class Payment:
    """A payment on an invoice: the `data` of the event `payment.succeeded`."""

    id: str
    """The unique identifier of the payment, a UUID of version 7 that the service assigns."""
    invoice_id: str
    """The invoice that was paid, in full or in part."""
    amount: Decimal
    """The amount of this payment in `currency`, an exact decimal number."""
    currency: str
    """The currency of the invoice: a three-letter code of ISO 4217 in upper case."""
    paid_at: datetime
    """When the payment was received."""


@dataclass(kw_only=True, slots=True)
class PaymentSucceededEvent:
    """A payment on an invoice was received."""

    event: Literal['payment.succeeded']
    """The kind of the event."""
    data: Payment
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class Ping:
    """The response body of `GET /ping`."""

    ok: bool
    """Always true: the API key is valid."""
    tenantId: str
    """The id of the account that the API key belongs to."""
    timestamp: datetime
    """The time of the server."""


@dataclass(kw_only=True, slots=True)
class Problem:
    """The body of a failure."""

    error: str
    """
    A sentence for people that says what is wrong and how to correct it. It may be reworded at any time, so programs
    should use `code` instead.
    """
    code: ErrorCode | None = None
    retry_after_ms: int | None = None
    """The number of milliseconds until the next request is accepted."""
    field: str | None = None
    """
    The first failing field, on 400 when a field failed: a dotted path into the body such as `line_items.0`, or the
    name of a query parameter or header.
    """
    errors: list[FieldError] | None = None
    """All failing fields, at most 100, on 400 when a field failed."""
    existing_id: str | None = None
    """The id of the contact that has the email address, on 409 `email_taken`."""
    error_description: str | None = None
    """What is wrong, at the endpoint for tokens."""


@dataclass(kw_only=True, slots=True)
class Quote:
    """A quote: an offer with a price."""

    id: str
    """The unique identifier of the quote, a UUID of version 7 that the service assigns."""
    quote_number: str
    """The number of the quote, such as `QUO-0001`. Assigned by the service at creation: the numbers of an account count up without gaps and are never reused."""
    contact_id: str | None
    """The contact the offer is for. Set at creation, and kept when the contact is deleted. It can be null only if the quote was not created through the API."""
    status: QuoteStatus
    """The status of the offer. It changes with an update, and when the customer accepts or declines the quote."""
    issue_date: date | None
    """The day on which the quote was created, in the account's time zone."""
    valid_until: date | None
    """The last day on which the offer is valid, in the account's time zone."""
    total: Decimal
    """The price in `currency`, an exact decimal number with no more decimals than the currency has."""
    currency: str
    """The currency of `total`: a three-letter code of ISO 4217 in upper case. Set at creation."""
    created_at: datetime
    """When the quote was created. Unique among the account's quotes."""
    updated_at: datetime
    """When the quote last changed. Equal to `created_at` until then, and unique among the account's quotes."""
    etag: str | None = None
    """The version of the record, which `update` and `delete` send as `If-Match`. None in lists and events."""


@dataclass(kw_only=True, slots=True)
class QuoteAcceptedEvent:
    """The status of a quote became `accepted`."""

    event: Literal['quote.accepted']
    """The kind of the event."""
    data: Quote
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class QuoteCreatedEvent:
    """A quote was created."""

    event: Literal['quote.created']
    """The kind of the event."""
    data: Quote
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class QuoteDeclinedEvent:
    """The status of a quote became `declined`."""

    event: Literal['quote.declined']
    """The kind of the event."""
    data: Quote
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


QuoteStatus: TypeAlias = Literal['draft', 'sent', 'viewed', 'accepted', 'declined', 'expired', 'converted']
"""
- `draft`: The quote has not been sent yet. Every quote starts with this status.
- `sent`: The quote was sent to the customer.
- `viewed`: The customer has seen the quote.
- `accepted`: The customer has accepted the offer.
- `declined`: The customer has declined the offer.
- `expired`: The offer is no longer valid. The service never sets this status by itself.
- `converted`: The offer has become a job or an invoice. The service never sets this status by itself.
"""


@dataclass(kw_only=True, slots=True)
class QuoteUpdatedEvent:
    """A quote changed. If the change also fires a more specific kind, that one comes first."""

    event: Literal['quote.updated']
    """The kind of the event."""
    data: Quote
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class RefundedInvoice:
    """An invoice after a refund: the `data` of the event `invoice.refunded`."""

    id: str
    """The unique identifier of the invoice, a UUID of version 7 that the service assigns."""
    invoice_number: str
    """The number of the invoice, such as `INV-0001`. Assigned by the service at creation by counting up within the account, and never reused. An imported invoice may have a number of another form."""
    contact_id: str | None
    """The contact who is to pay. It is kept when the contact is deleted. Null if none was given."""
    status: str
    """
    The status of the invoice. New values may be added, so accept those that you do not know.

    - `draft`: The invoice has not been sent yet.
    - `sent`: The invoice was sent to the customer.
    - `viewed`: The customer has seen the invoice.
    - `partial`: The invoice was paid in part.
    - `paid`: The invoice was paid in full.
    - `overdue`: The invoice was not paid in full by its due date.
    - `cancelled`: The invoice was voided, or refunded in full.
    """
    issue_date: date | None
    """The day on which the invoice was issued, in the account's time zone. Null if none was given."""
    due_date: date | None
    """The day by which the invoice is to be paid, in the account's time zone; after it, the invoice can become `overdue`. Null if it has none."""
    total: Decimal
    """The amount to pay in `currency`, an exact decimal number with no more decimals than the currency has."""
    currency: str
    """The currency of `total`: a three-letter code of ISO 4217 in upper case."""
    paid_at: datetime | None
    """When the invoice was paid in full. Null until then, and kept after a refund."""
    created_at: datetime
    """When the invoice was created. Unique among the account's invoices."""
    updated_at: datetime
    """When the invoice last changed. Equal to `created_at` until then, and unique among the account's invoices."""
    refunded_amount: Decimal
    """The amount of this refund in `currency`, an exact decimal number. Earlier refunds are not part of it."""
    refunded_at: datetime
    """When the refund was recorded."""


SelectedEvent: TypeAlias = Literal['*', 'invoice.created', 'invoice.sent', 'invoice.paid', 'invoice.voided', 'invoice.refunded', 'invoice.updated', 'invoice.resent', 'quote.created', 'quote.accepted', 'quote.declined', 'quote.updated', 'booking.created', 'booking.cancelled', 'booking.updated', 'job.created', 'job.scheduled', 'job.completed', 'job.updated', 'contact.created', 'contact.updated', 'contact.deleted', 'payment.succeeded', 'stay.created', 'stay.confirmed', 'stay.checked_in', 'stay.checked_out', 'stay.cancelled', 'stay.no_show', 'cohort.sessions_generated']
"""
- `*`: All kinds of events, including those that are added later. It is the only element then.
- `invoice.created`: An invoice was created.
- `invoice.sent`: An invoice was sent to the customer.
- `invoice.paid`: An invoice was paid in full.
- `invoice.voided`: An invoice was voided.
- `invoice.refunded`: An invoice was refunded, in full or in part.
- `invoice.updated`: An invoice changed. If the change also fires a more specific kind, that one comes first.
- `invoice.resent`: An invoice was sent again, without a change.
- `quote.created`: A quote was created.
- `quote.accepted`: The status of a quote became `accepted`.
- `quote.declined`: The status of a quote became `declined`.
- `quote.updated`: A quote changed. If the change also fires a more specific kind, that one comes first.
- `booking.created`: A booking was created.
- `booking.cancelled`: The status of a booking became `cancelled`.
- `booking.updated`: A booking changed. If the change also fires a more specific kind, that one comes first.
- `job.created`: A job was created.
- `job.scheduled`: The status of a job became `scheduled`, or the job was created with it.
- `job.completed`: The status of a job became `completed`, or the job was created with it.
- `job.updated`: A job changed. If the change also fires a more specific kind, that one comes first.
- `contact.created`: A contact was created.
- `contact.updated`: A contact changed.
- `contact.deleted`: A contact was deleted.
- `payment.succeeded`: A payment on an invoice was received.
- `stay.created`: A hotel stay was created.
- `stay.confirmed`: A hotel stay was confirmed.
- `stay.checked_in`: The guest of a hotel stay checked in.
- `stay.checked_out`: The guest of a hotel stay checked out.
- `stay.cancelled`: A hotel stay was cancelled.
- `stay.no_show`: A hotel stay was marked a no-show.
- `cohort.sessions_generated`: The sessions of a cohort were generated.
"""


EventSelection: TypeAlias = list[SelectedEvent]
"""The kinds of events that a subscription receives: 1 to 64 of them, or the single element `*` for all kinds, including those that are added later."""


@dataclass(kw_only=True, slots=True)
class StayCancelledEvent:
    """A hotel stay was cancelled."""

    event: Literal['stay.cancelled']
    """The kind of the event."""
    data: ExternalRecord
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class StayCheckedInEvent:
    """The guest of a hotel stay checked in."""

    event: Literal['stay.checked_in']
    """The kind of the event."""
    data: ExternalRecord
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class StayCheckedOutEvent:
    """The guest of a hotel stay checked out."""

    event: Literal['stay.checked_out']
    """The kind of the event."""
    data: ExternalRecord
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class StayConfirmedEvent:
    """A hotel stay was confirmed."""

    event: Literal['stay.confirmed']
    """The kind of the event."""
    data: ExternalRecord
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class StayCreatedEvent:
    """A hotel stay was created."""

    event: Literal['stay.created']
    """The kind of the event."""
    data: ExternalRecord
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class StayNoShowEvent:
    """A hotel stay was marked a no-show."""

    event: Literal['stay.no_show']
    """The kind of the event."""
    data: ExternalRecord
    """The record as it was right after the change."""
    delivered_at: datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account that a record belongs to."""


@dataclass(kw_only=True, slots=True)
class WebhookSubscription:
    """An endpoint that receives events, with the selection of events that are sent to it."""

    id: str
    """The unique identifier of the subscription, a UUID of version 7 that the service assigns."""
    url: str
    """The URL of the endpoint. Each delivery is a POST to it. If the operator sends the events of the subscription to a broker in place of deliveries, it is that of the broker, such as `nats://nats.example.com/svc`, without its credentials."""
    events: EventSelection
    """The kinds of events that are delivered to the endpoint. The single element `*` stands for all kinds, including those that are added later."""
    enabled: bool
    """Whether deliveries are sent. It is true at creation, changes with a PATCH, and becomes false when the service pauses the subscription after ten failed attempts in a row."""
    description: str | None
    """A description of the subscription, for your own use. Null if none was given."""
    created_at: datetime
    """When the subscription was created."""
    last_delivery_at: datetime | None
    """When the last delivery attempt ended. Null before the first attempt."""
    last_delivery_status: int | None
    """The result of the last delivery attempt: the HTTP status of the response, 0 for a network failure or a timeout, or -1 if nothing was sent because the URL is not `https` or its host is not public. Null before the first attempt."""
    disabled_reason: DisabledReason | None
    """The reason why the service paused the subscription. Null while the subscription is enabled, and while it is disabled by a PATCH."""
    paused_at: datetime | None
    """When the service paused the subscription. Null while it is not paused."""
    consecutive_failures: int
    """The number of delivery attempts that have failed in a row, one after the other: attempts that were in flight when one of them failed are not counted. A success sets it to 0, and so does a PATCH with `enabled` true. At 10 the service pauses the subscription."""
    etag: str | None = None
    """The version of the record, which `update` and `delete` send as `If-Match`. None in lists and events."""


@dataclass(kw_only=True, slots=True)
class WebhookSubscriptionWithSecret:
    """A new subscription with its signing secret. No later response contains the secret."""

    id: str
    """The unique identifier of the subscription, a UUID of version 7 that the service assigns."""
    url: str
    """The URL of the endpoint. Each delivery is a POST to it. If the operator sends the events of the subscription to a broker in place of deliveries, it is that of the broker, such as `nats://nats.example.com/svc`, without its credentials."""
    events: EventSelection
    """The kinds of events that are delivered to the endpoint. The single element `*` stands for all kinds, including those that are added later."""
    enabled: bool
    """Whether deliveries are sent. It is true at creation, changes with a PATCH, and becomes false when the service pauses the subscription after ten failed attempts in a row."""
    description: str | None
    """A description of the subscription, for your own use. Null if none was given."""
    created_at: datetime
    """When the subscription was created."""
    last_delivery_at: datetime | None
    """When the last delivery attempt ended. Null before the first attempt."""
    last_delivery_status: int | None
    """The result of the last delivery attempt: the HTTP status of the response, 0 for a network failure or a timeout, or -1 if nothing was sent because the URL is not `https` or its host is not public. Null before the first attempt."""
    disabled_reason: DisabledReason | None
    """The reason why the service paused the subscription. Null while the subscription is enabled, and while it is disabled by a PATCH."""
    paused_at: datetime | None
    """When the service paused the subscription. Null while it is not paused."""
    consecutive_failures: int
    """The number of delivery attempts that have failed in a row, one after the other: attempts that were in flight when one of them failed are not counted. A success sets it to 0, and so does a PATCH with `enabled` true. At 10 the service pauses the subscription."""
    secret: str
    """
    The signing secret: `whsec_` and the base64 of 32 random bytes. Store it now, as it is returned only once. The
    HMAC key of `X-SVC-Signature` is the whole text, including `whsec_`.
    """
    etag: str | None = None
    """The version of the record, which `update` and `delete` send as `If-Match`. None in lists and events."""


class BookingCreate(TypedDict):
    """A new booking. Its status is `confirmed`. Bookings may overlap."""

    contact_id: str
    """The contact the appointment is for: the `id` of a contact of the account that is not deleted."""
    service_name: str
    """The service that is booked. Must be a single line."""
    start_time: datetime
    """When the appointment starts, in RFC 3339 with an offset."""
    end_time: NotRequired[datetime | None]
    """When the appointment ends, in RFC 3339 with an offset. It must be after `start_time`. If it is left out or null, the appointment lasts 60 minutes."""
    notes: NotRequired[str | None]
    """Free text about the appointment. It may have several lines and is kept exactly as sent."""


class BookingUpdate(TypedDict):
    """Changes to a booking. A field that is left out keeps its value."""

    status: NotRequired[BookingStatus]
    """The new status of the appointment. Any status may follow any other. A change to `cancelled` fires `booking.cancelled`."""
    notes: NotRequired[str | None]
    """Free text about the appointment. It may have several lines and is kept exactly as sent. Null clears it."""
    start_time: NotRequired[datetime]
    """When the appointment starts, in RFC 3339 with an offset. `end_time` does not move with it, and must still be after it."""
    end_time: NotRequired[datetime]
    """When the appointment ends, in RFC 3339 with an offset. It must be after `start_time` once the change is applied."""


class ContactCreate(TypedDict):
    """A new contact. A field that is left out is null."""

    email: str
    """The email address. It must differ from those of all other contacts of the account, ignoring case and deleted contacts, unless the operator allows several contacts with one address."""
    first_name: NotRequired[str | None]
    """The given name. Must be a single line. Null if there is none."""
    last_name: NotRequired[str | None]
    """The family name. Must be a single line. Null if there is none."""
    phone: NotRequired[str | None]
    """The telephone number, in any notation. It is stored as sent. Must be a single line. Null if there is none."""
    company_name: NotRequired[str | None]
    """The name of the company that the contact is or works for. Must be a single line. Null if there is none."""
    city: NotRequired[str | None]
    """The town or city of the address. Must be a single line. Null if there is none."""
    state: NotRequired[str | None]
    """The state or province of the address. Must be a single line. Null if there is none."""
    postcode: NotRequired[str | None]
    """The postal code of the address. Must be a single line. Null if there is none."""


class ContactFilter(TypedDict):
    """Which records a list has. Without a filter, it has all."""

    email: NotRequired[str]
    """Returns only contacts with this email address, ignoring case."""
    include_deleted: NotRequired[bool]
    """Whether to return deleted contacts as well, which have the field `deleted_at`. Set it to true to learn about deletions when you keep a copy in sync."""


class ContactUpdate(TypedDict):
    """Changes to a contact. A field that is left out keeps its value, and null clears it. Jobs keep the name, email address and telephone number that the contact had when they were created."""

    email: NotRequired[str | None]
    """The email address. It must differ from those of all other contacts of the account, ignoring case and deleted contacts, unless the operator allows several contacts with one address. Null clears it."""
    first_name: NotRequired[str | None]
    """The given name. Must be a single line. Null if there is none."""
    last_name: NotRequired[str | None]
    """The family name. Must be a single line. Null if there is none."""
    phone: NotRequired[str | None]
    """The telephone number, in any notation. It is stored as sent. Must be a single line. Null if there is none."""
    company_name: NotRequired[str | None]
    """The name of the company that the contact is or works for. Must be a single line. Null if there is none."""
    city: NotRequired[str | None]
    """The town or city of the address. Must be a single line. Null if there is none."""
    state: NotRequired[str | None]
    """The state or province of the address. Must be a single line. Null if there is none."""
    postcode: NotRequired[str | None]
    """The postal code of the address. Must be a single line. Null if there is none."""


class InvoiceFilter(TypedDict):
    """Which records a list has. Without a filter, it has all."""

    status: NotRequired[InvoiceStatus]
    """Returns only invoices with this status."""
    number: NotRequired[str]
    """Returns only the invoice with exactly this `invoice_number`."""


InvoiceStatus: TypeAlias = Literal['draft', 'sent', 'viewed', 'partial', 'paid', 'overdue', 'cancelled']
"""
- `draft`: The invoice has not been sent yet.
- `sent`: The invoice was sent to the customer.
- `viewed`: The customer has seen the invoice.
- `partial`: The invoice was paid in part.
- `paid`: The invoice was paid in full.
- `overdue`: The invoice was not paid in full by its due date.
- `cancelled`: The invoice was voided, or refunded in full.
"""


class JobCreate(TypedDict):
    """A new job."""

    title: str
    """The work to do. Must be a single line."""
    status: NotRequired[JobStatus]
    """The initial status of the work. If it is left out, it is `quoted`. A job that is created as `scheduled` or `completed` fires the event of that name after `job.created`."""
    contact_id: NotRequired[str | None]
    """The contact the work is for: the `id` of a contact of the account that is not deleted. Its name, email address and telephone number are copied to the job."""
    job_type: NotRequired[str | None]
    """The kind of work, in your own words. Must be a single line."""
    priority: NotRequired[str | None]
    """How urgent the work is, in your own words. Must be a single line."""
    site_address: NotRequired[str | None]
    """The street address of the site. Must be a single line. It cannot be changed later."""
    site_suburb: NotRequired[str | None]
    """The suburb of the site. Must be a single line. It cannot be changed later."""
    site_state: NotRequired[str | None]
    """The state or province of the site. Must be a single line. It cannot be changed later."""
    site_postcode: NotRequired[str | None]
    """The postal code of the site. Must be a single line. It cannot be changed later."""
    scheduled_start: NotRequired[datetime | None]
    """When the work is planned to start, in RFC 3339 with an offset."""
    scheduled_end: NotRequired[datetime | None]
    """When the work is planned to end, in RFC 3339 with an offset. It must not be before `scheduled_start`; they may be equal."""
    estimated_total: NotRequired[Decimal | None]
    """The estimated price with at most two decimals, without a currency."""


class JobFilter(TypedDict):
    """Which records a list has. Without a filter, it has all."""

    status: NotRequired[JobStatus]
    """Returns only jobs with this status."""
    job_number: NotRequired[str]
    """Returns only the job with exactly this `job_number`."""


class JobUpdate(TypedDict):
    """Changes to a job. A field that is left out keeps its value."""

    title: NotRequired[str]
    """The work to do. Must be a single line."""
    status: NotRequired[JobStatus]
    """The new status of the work. Any status may follow any other. A change to `scheduled` or `completed` fires the event of that name. The first change to `in_progress` sets `actual_start`, and the first to `completed` sets `actual_end`."""
    job_type: NotRequired[str | None]
    """The kind of work, in your own words. Must be a single line. Null clears it."""
    priority: NotRequired[str | None]
    """How urgent the work is, in your own words. Must be a single line. Null clears it."""
    scheduled_start: NotRequired[datetime | None]
    """When the work is planned to start, in RFC 3339 with an offset. Null clears it."""
    scheduled_end: NotRequired[datetime | None]
    """When the work is planned to end, in RFC 3339 with an offset. It must not be before `scheduled_start` once the change is applied. Null clears it."""
    estimated_total: NotRequired[Decimal | None]
    """The estimated price with at most two decimals, without a currency. Null clears it."""
    actual_total: NotRequired[Decimal | None]
    """The final price with at most two decimals, without a currency. Null clears it."""


LineItem: TypeAlias = dict[str, Any]
"""A line of the offer, with any members."""


class NoFilter(TypedDict):
    """The filters of a list that has none."""


class QuoteCreate(TypedDict):
    """A new quote. Its status is `draft`, and its issue date is today in the account's time zone."""

    contact_id: str
    """The contact the offer is for: the `id` of a contact of the account that is not deleted."""
    total: Decimal
    """The price in `currency`, with no more decimals than the currency has: 2 for AUD, 0 for JPY."""
    currency: NotRequired[str | None]
    """The currency of `total`: the upper-case code of an active currency of ISO 4217. If it is left out or null, the account's own currency is used: AUD, unless the operator has set another."""
    valid_until: NotRequired[datetime | None]
    """The last day on which the offer is valid, as a date or a date-time. Of a date-time only the calendar date is used, as it is written, without conversion to another time zone. If the field is left out or null, the offer is valid until 30 days from today in the account's time zone."""
    line_items: NotRequired[list[LineItem]]
    """The lines of the offer. The service checks that each is an object and then drops them: they are not stored, and responses do not contain them."""


class QuoteFilter(TypedDict):
    """Which records a list has. Without a filter, it has all."""

    status: NotRequired[QuoteStatus]
    """Returns only quotes with this status."""


class QuoteUpdate(TypedDict):
    """Changes to a quote. A field that is left out keeps its value."""

    status: NotRequired[QuoteStatus]
    """The new status of the offer. Any status may follow any other. A change to `accepted` or `declined` fires the event of that name."""
    total: NotRequired[Decimal]
    """The price in the currency of the quote, with no more decimals than that currency has."""
    valid_until: NotRequired[datetime]
    """The last day on which the offer is valid, as a date or a date-time. Of a date-time only the calendar date is used, as it is written, without conversion to another time zone. It cannot be cleared."""


class WebhookCreate(TypedDict):
    """A new webhook subscription. It is enabled from the start."""

    url: str
    """The URL of the endpoint. It must use `https` and a public host, and have no user name or password."""
    events: EventSelection
    """The kinds of events to deliver, or `["*"]` for all of them, including those that are added later. Repeated kinds are stored once."""
    description: NotRequired[str | None]
    """A description of the subscription, for your own use. Must be a single line. Blank text is stored as null."""


class WebhookUpdate(TypedDict):
    """Changes to a webhook subscription. A field that is left out keeps its value."""

    url: NotRequired[str]
    """The URL of the endpoint. It must use `https` and a public host, and have no user name or password. Pending deliveries are sent to the new URL as well. `headers`, `authentication` and `client_certificate` were set for the host of the URL before it: another scheme, host or port gets none of them, so they become null unless the change sets them."""
    events: NotRequired[EventSelection]
    """The kinds of events to deliver from now on, or `["*"]` for all of them, including those that are added later."""
    enabled: NotRequired[bool]
    """Whether deliveries are sent. `true` enables the subscription, ends a pause and sets `consecutive_failures` to 0. `false` disables it and ends a pause as well: no deliveries are created for further events, and pending deliveries become held, so that they are sent only if they are replayed."""
    description: NotRequired[str | None]
    """A description of the subscription, for your own use. Must be a single line. Null clears it."""


WebhookEvent: TypeAlias = InvoiceCreatedEvent | InvoiceSentEvent | InvoicePaidEvent | InvoiceVoidedEvent | InvoiceRefundedEvent | InvoiceUpdatedEvent | InvoiceResentEvent | QuoteCreatedEvent | QuoteAcceptedEvent | QuoteDeclinedEvent | QuoteUpdatedEvent | BookingCreatedEvent | BookingCancelledEvent | BookingUpdatedEvent | JobCreatedEvent | JobScheduledEvent | JobCompletedEvent | JobUpdatedEvent | ContactCreatedEvent | ContactUpdatedEvent | ContactDeletedEvent | PaymentSucceededEvent | StayCreatedEvent | StayConfirmedEvent | StayCheckedInEvent | StayCheckedOutEvent | StayCancelledEvent | StayNoShowEvent | CohortSessionsGeneratedEvent | OtherEvent
"""The event of a delivery."""
