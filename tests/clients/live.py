"""Uses a client that openapi-python-client makes of the OpenAPI document with a server, of which SVC_URL and SVC_KEY tell:
create, list by cursors, change a version, be refused, reach the rate limit.

mypy checks it as well."""

import os

from generated import AuthenticatedClient
from generated.api.contacts import create_contact, list_contacts, update_contact
from generated.api.ping import ping
from generated.models import (
    Contact,
    ContactCreate,
    ContactList,
    ContactResponse,
    ContactUpdate,
    Error,
    ErrorCode,
    FieldErrorCode,
    RateLimitError,
)
from generated.types import UNSET

client = AuthenticatedClient(base_url=f"{os.environ['SVC_URL']}/api/v1", token=os.environ["SVC_KEY"])


def create(name: str, key: str) -> Contact:
    body = ContactCreate(email=f"{name}@python.example.com", first_name=name.title())
    created = create_contact.sync(client=client, body=body, idempotency_key=key)
    assert isinstance(created, ContactResponse), created
    return created.data


# Create. A repeat under the same key returns the same record.
grace = create("grace", "python")
assert create("grace", "python") == grace
assert grace.first_name == "Grace"

# List by cursors.
create("ada", "python 2")
create("alan", "python 3")
newest: list[Contact] = []
cursor = None
while len(newest) < 3:
    page = list_contacts.sync(client=client, limit=1, cursor=cursor or UNSET)
    assert isinstance(page, ContactList), page
    newest += page.data
    cursor = page.next_cursor
    assert cursor is not None
assert [contact.email for contact in newest] == [f"{name}@python.example.com" for name in ("alan", "ada", "grace")]

# Change a version, and be refused once it is old.
read = create_contact.sync_detailed(
    client=client,
    body=ContactCreate(email="grace@python.example.com", first_name="Grace"),
    idempotency_key="python",
)
change = ContactUpdate(phone="0491 570 156")
etag = read.headers["ETag"]
changed = update_contact.sync(grace.id, client=client, body=change, if_match=etag)
assert isinstance(changed, ContactResponse) and changed.data.phone == "0491 570 156", changed
stale = update_contact.sync_detailed(grace.id, client=client, body=change, if_match=etag)
assert stale.status_code == 412 and isinstance(stale.parsed, Error), stale
assert stale.parsed.code == ErrorCode.PRECONDITION_FAILED

# A field that is not valid is named.
refused = create_contact.sync_detailed(client=client, body=ContactCreate(email="nobody"))
assert refused.status_code == 400 and isinstance(refused.parsed, Error), refused
assert refused.parsed.field == "email" and refused.parsed.errors, refused
failing = refused.parsed.errors[0]
assert failing.field == "email" and failing.code == FieldErrorCode.INVALID_FORMAT, failing

# The rate limit says when the next request is accepted.
for _ in range(1000):
    response = ping.sync_detailed(client=client)
    if response.status_code == 429:
        break
assert isinstance(response.parsed, RateLimitError), response
assert response.parsed.code == "rate_limited" and response.parsed.retry_after_ms > 0, response
assert int(response.headers["Retry-After"]) > 0
