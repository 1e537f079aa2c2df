"""Uses of a client that openapi-python-client generates from the OpenAPI document.

It is checked by mypy and must pass: each line with "type: ignore" is a mistake that mypy has to find, or it reports that
the comment is not needed.
"""

import datetime
from uuid import UUID

from generated.models import (
    BookingStatus,
    ContactUpdate,
    JobCreate,
    JobStatus,
    Quote,
    QuoteCreate,
    QuoteList,
    QuoteResponse,
    QuoteStatus,
    QuoteUpdate,
    RefundedInvoice,
    SelectedEvent,
    WebhookCreate,
)

contact = UUID("0195a3c8-8a00-7000-8000-00000000c001")
time = datetime.datetime(2026, 3, 22, 9, tzinfo=datetime.timezone.utc)
url = "https://hooks.example.com/svc"

# What has a default, or one of the account's own, is left out of the request.
assert QuoteCreate(contact_id=contact, total=480).to_dict() == {"contact_id": str(contact), "total": 480}
assert JobCreate(title="Repair").to_dict() == {"title": "Repair"}

good = [
    QuoteCreate(contact_id=contact, total=480, currency="NZD", valid_until=time).to_dict(),
    QuoteCreate(contact_id=contact, total=480, currency=None, valid_until=time).to_dict(),
    QuoteUpdate(status=QuoteStatus.ACCEPTED, valid_until=time).to_dict(),
    JobCreate(title="Repair", status=JobStatus.SCHEDULED, scheduled_start=time, contact_id=None).to_dict(),
    ContactUpdate(email=None).to_dict(),
    WebhookCreate(url=url, events=[SelectedEvent.ALL]).to_dict(),
    WebhookCreate(url=url, events=[SelectedEvent.INVOICE_PAID, SelectedEvent.CONTACT_CREATED]).to_dict(),
]
assert [request["valid_until"] for request in good[:2]] == ["2026-03-22T09:00:00+00:00"] * 2
assert [request["events"] for request in good[-2:]] == [["*"], ["invoice.paid", "contact.created"]]


def mistakes() -> None:
    """Is checked and never called."""
    QuoteCreate(contact_id="ada", total=480)  # type: ignore[arg-type]
    QuoteCreate(contact_id=contact, total=480, valid_until=20260413)  # type: ignore[arg-type]
    QuoteCreate(contact_id=contact, total=480, valid_until="soon")  # type: ignore[arg-type]
    QuoteCreate(contact_id=contact, total=480, curency="NZD")  # type: ignore[call-arg]
    QuoteUpdate(status="acepted")  # type: ignore[arg-type]
    QuoteUpdate(status=BookingStatus.CANCELLED)  # type: ignore[arg-type]
    QuoteUpdate(valid_until=None)  # type: ignore[arg-type]
    JobCreate(title="Repair", scheduled_start=1773500967)  # type: ignore[arg-type]
    JobCreate(title="Repair", contact_id=1)  # type: ignore[arg-type]
    ContactUpdate(email=1)  # type: ignore[arg-type]
    WebhookCreate(url=url, events=["invoice.payed"])  # type: ignore[list-item]
    WebhookCreate(url=url, events=[SelectedEvent.INVOICE_PAYED])  # type: ignore[attr-defined]


def responses(one: QuoteResponse, many: QuoteList, refund: RefundedInvoice) -> tuple[QuoteStatus, list[Quote], float]:
    """Responses and enums have one type wherever they are used."""
    return one.data.status, many.data, refund.refunded_amount
