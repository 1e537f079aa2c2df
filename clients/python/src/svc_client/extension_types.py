# Written by generate.py from the OpenAPI document. Do not edit it.
# ruff: noqa: E501
"""The types of what a service with `--extensions on` has beyond the contract."""

from __future__ import annotations

from dataclasses import dataclass
from svc_client._typing import Literal, NotRequired, datetime
from svc_client.types import DisabledReason, EventSelection
from typing import Any, TypeAlias, TypedDict


AnyObject: TypeAlias = dict[str, Any]
"""A JSON object with any members."""


@dataclass(kw_only=True, slots=True)
class AttemptLog:
    """The log of an attempt at a delivery."""

    attempt: int
    """The number of the attempt within its delivery, from 1 on."""
    started_at: datetime
    """When it started."""
    duration_ms: int
    """How long it took, in milliseconds."""
    status: int
    """The HTTP status, 0 for a network failure or timeout, -1 for an address that is not allowed."""
    error: str | None
    """The error of a failed attempt: its class, a colon, and what happened. Null if it succeeded."""
    response_body: str | None
    """The first 16 KiB of the response body. Null if there is none, or if it was deleted because the subscription had too many that day."""
    response_truncated: bool
    """Whether the response body was longer than that, or was deleted."""
    remote_addr: str | None
    """The IP address and port that the request was sent to. Null if none was."""


@dataclass(kw_only=True, slots=True)
class BasicAuthentication:
    """A user name, which has no colon, and a password (RFC 7617)."""

    type: Literal['basic']
    username: str


@dataclass(kw_only=True, slots=True)
class BearerAuthentication:
    """A token that does not change (RFC 6750)."""

    type: Literal['bearer']


@dataclass(kw_only=True, slots=True)
class CertificateAuthority:
    """
    The certificate authorities that are trusted at the endpoint in place of the public ones. A response has the fingerprints of
    their certificates.
    """

    sha256: list[str]
    """The SHA-256 fingerprints of the certificates, in hexadecimal."""


@dataclass(kw_only=True, slots=True)
class ClientCertificate:
    """The certificate that deliveries show to the endpoint (mutual TLS). A response has its fingerprint alone."""

    sha256: str
    """The SHA-256 fingerprint of the certificate, in hexadecimal."""


@dataclass(kw_only=True, slots=True)
class Delivery:
    """One event on its way to one webhook subscription."""

    id: str
    """The unique identifier of the delivery, the same on every attempt and every replay."""
    event_id: str
    """The `id` of the event that is delivered."""
    event: str
    """The kind of that event, such as `contact.created`."""
    subscription_id: str
    """The `id` of the webhook subscription that receives it."""
    status: DeliveryStatus
    """The status: `pending`, `succeeded`, `failed` or `held`."""
    attempts: int
    """The number of attempts over all replays."""
    last_status: int | None
    """The HTTP status of the last attempt, 0 for a network failure or timeout, -1 for an address that is not allowed. Null before the first one ended."""
    next_attempt_at: datetime | None
    """When the next attempt is due. Null unless the delivery is pending, and while it waits for an earlier one of its record."""
    failure_reason: FailureReason | None
    """Why the delivery failed, if it was not for the outcome of its last attempt. Null otherwise."""
    created_at: datetime
    """When the event happened."""


@dataclass(kw_only=True, slots=True)
class DeliveryDetails:
    """A delivery with its event and the log of its newest attempts."""

    delivery: Delivery
    """The delivery itself."""
    event: Event
    """The event that is delivered."""
    log: list[AttemptLog]
    """The log of its newest attempts, 20 at most, the first of them first. `attempts` of the delivery is how many there were in all; the list of its attempts has the earlier ones."""


DeliveryStatus: TypeAlias = Literal['pending', 'succeeded', 'failed', 'held']
"""
- `pending`: An attempt is due at `next_attempt_at`, or is being made.
- `succeeded`: The endpoint responded with a status of 2xx.
- `failed`: All attempts of the retry schedule failed, or the endpoint responded with 410, and a replay sends the delivery again. Or the subscription was deleted.
- `held`: The subscription was disabled or paused. A replay sends the delivery.
"""


EndpointAuthentication: TypeAlias = dict[str, Any]


@dataclass(kw_only=True, slots=True)
class Event:
    """Something that happened to a record of an account."""

    id: str
    """The unique identifier of the event, a UUID of version 7."""
    tenant_id: str
    """The `id` of the account."""
    kind: str
    """The kind of event, such as `contact.created`."""
    data: AnyObject
    """The record as it was right after the change."""
    is_test: bool
    """Whether the event is a test of one webhook subscription."""
    created_at: datetime
    """When it happened. Unique within the account."""
    etag: str | None = None
    """The version of the record, which `update` and `delete` send as `If-Match`. None in lists and events."""


FailureReason: TypeAlias = Literal['subscription_deleted']
"""- `subscription_deleted`: The subscription was deleted while the delivery was pending or held."""


@dataclass(kw_only=True, slots=True)
class OAuth2Authentication:
    """An access token that the service gets with client credentials (RFC 6749, section 4.4)."""

    type: Literal['oauth2']
    token_url: str
    client_id: str
    scope: str | None = None


Ordering: TypeAlias = Literal['none', 'record']
"""
- `none`: None.
- `record`: That of an event waits until those of earlier events of the same record have succeeded or have been given up.
"""


Payload: TypeAlias = Literal['contract', 'thin']
"""
- `contract`: The record as it was right after the change, as the contract says.
- `thin`: The `id` of the record alone. The event is read by its `event_id`.
"""


@dataclass(kw_only=True, slots=True)
class Replay:
    """A bulk replay with its progress."""

    id: str
    """The unique identifier of the replay, a UUID of version 7."""
    tenant_id: str
    """The `id` of the account."""
    subscription_id: str
    """The `id` of the webhook subscription whose deliveries are sent again."""
    since: datetime
    """The start of the time span."""
    until: datetime
    """The end of the time span, which is not part of it."""
    statuses: list[DeliveryStatus]
    """The statuses of the deliveries that are sent again."""
    missed: bool
    """Whether matching events without a delivery are sent as well."""
    position: datetime
    """How far the replay has come: events before this time are done."""
    total: int
    """How many deliveries or events the replay has to go through, counted up to 10,000, which stands for that many or more. 0 if it is not known."""
    done: int
    """How many of them the replay has gone through so far."""
    percent: int
    """How much of the replay is done, in percent."""
    replayed: int
    """How many deliveries became due through this replay so far."""
    broken_off: bool
    """Whether the replay ended early, since its subscription was disabled, paused or deleted meanwhile."""
    created_at: datetime
    """When the replay was requested."""
    finished_at: datetime | None
    """When the replay ended. Null while it is running."""


SignatureScheme: TypeAlias = Literal['hmac', 'ed25519']
"""
- `hmac`: With the secret of the subscription, by HMAC-SHA256.
- `ed25519`: With a private key of the service as well, by Ed25519: a receiver needs the public key alone.
"""


@dataclass(kw_only=True, slots=True)
class SigningKey:
    """A pair of Ed25519 keys that signs the deliveries of a subscription. Its JSON has the public key alone."""

    public_key: str
    """The public key: `whpk_` and its 32 bytes in base64."""
    expires_at: datetime | None
    """When the key signs no more, if it was replaced: the end of the overlap of the rotation."""


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
    headers: list[str] | None = None
    """The names of the headers that each delivery has in addition. Their values are secret. Null unless set."""
    authentication: EndpointAuthentication | None = None
    """How deliveries are authenticated at the endpoint, without the secret. Null unless set."""
    filter: str | None = None
    """Which events of these kinds are delivered, by what is in them. Null unless set: then all are."""
    payload: Payload | None = None
    """The `data` in the body of a delivery, if it is not the record. Null unless set."""
    max_per_second: int | None = None
    """The highest rate of deliveries, in deliveries a second. Null unless set."""
    max_in_flight: int | None = None
    """The highest number of delivery attempts at the same time. Null unless set."""
    timeout: int | None = None
    """The timeout of a delivery attempt in seconds. Null unless set: then it is that of the service."""
    retry_schedule: list[int] | None = None
    """The waits before the retries of a delivery in seconds. Null unless set: then they are those of the service."""
    ordering: Ordering | None = None
    """Which deliveries wait for earlier ones. Null unless set: then none do."""
    signature: SignatureScheme | None = None
    """How deliveries are signed, if it is not with the secret alone. Null unless set."""
    signing_keys: list[SigningKey] | None = None
    """The public keys that verify the `v1a` signatures of deliveries, the newest first. Null unless `signature` is `ed25519`."""
    client_certificate: ClientCertificate | None = None
    """The certificate that deliveries show to the endpoint, without its key. Null unless set."""
    certificate_authority: CertificateAuthority | None = None
    """The certificate authorities that are trusted at the endpoint. Null unless set: then they are the public ones."""
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
    headers: list[str] | None = None
    """The names of the headers that each delivery has in addition. Their values are secret. Null unless set."""
    authentication: EndpointAuthentication | None = None
    """How deliveries are authenticated at the endpoint, without the secret. Null unless set."""
    filter: str | None = None
    """Which events of these kinds are delivered, by what is in them. Null unless set: then all are."""
    payload: Payload | None = None
    """The `data` in the body of a delivery, if it is not the record. Null unless set."""
    max_per_second: int | None = None
    """The highest rate of deliveries, in deliveries a second. Null unless set."""
    max_in_flight: int | None = None
    """The highest number of delivery attempts at the same time. Null unless set."""
    timeout: int | None = None
    """The timeout of a delivery attempt in seconds. Null unless set: then it is that of the service."""
    retry_schedule: list[int] | None = None
    """The waits before the retries of a delivery in seconds. Null unless set: then they are those of the service."""
    ordering: Ordering | None = None
    """Which deliveries wait for earlier ones. Null unless set: then none do."""
    signature: SignatureScheme | None = None
    """How deliveries are signed, if it is not with the secret alone. Null unless set."""
    signing_keys: list[SigningKey] | None = None
    """The public keys that verify the `v1a` signatures of deliveries, the newest first. Null unless `signature` is `ed25519`."""
    client_certificate: ClientCertificate | None = None
    """The certificate that deliveries show to the endpoint, without its key. Null unless set."""
    certificate_authority: CertificateAuthority | None = None
    """The certificate authorities that are trusted at the endpoint. Null unless set: then they are the public ones."""
    etag: str | None = None
    """The version of the record, which `update` and `delete` send as `If-Match`. None in lists and events."""


class BasicCredentials(TypedDict):
    """A user name, which has no colon, and a password (RFC 7617)."""

    type: Literal['basic']
    username: str
    password: str


class BearerCredentials(TypedDict):
    """A token that does not change (RFC 6750)."""

    type: Literal['bearer']
    token: str


class ClientCertificateWithKey(TypedDict):
    """A certificate with its private key."""

    certificate: str
    """The certificate, followed by those between it and its authority, in PEM."""
    private_key: str
    """Its private key in PEM (PKCS#8, PKCS#1 or SEC1), not encrypted."""


class EventFilter(TypedDict):
    """Which records a list has. Without a filter, it has all."""

    kind: NotRequired[EventKind]
    """Returns only events of this kind."""
    record_id: NotRequired[str]
    """Returns only events in the history of the record with this `id`. Those of a payment are in that of its invoice."""
    since: NotRequired[datetime]
    """Returns only events at or after this time, in RFC 3339 with an offset."""
    until: NotRequired[datetime]
    """Returns only events before this time, in RFC 3339 with an offset."""
    order: NotRequired[EventOrder]
    """Which events come first: `newest_first`, or `oldest_first` to follow what happens. Without it, the newest."""


EventKind: TypeAlias = Literal['invoice.created', 'invoice.sent', 'invoice.paid', 'invoice.voided', 'invoice.refunded', 'invoice.updated', 'invoice.resent', 'quote.created', 'quote.accepted', 'quote.declined', 'quote.updated', 'booking.created', 'booking.cancelled', 'booking.updated', 'job.created', 'job.scheduled', 'job.completed', 'job.updated', 'contact.created', 'contact.updated', 'contact.deleted', 'payment.succeeded', 'stay.created', 'stay.confirmed', 'stay.checked_in', 'stay.checked_out', 'stay.cancelled', 'stay.no_show', 'cohort.sessions_generated']
"""
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


EventOrder: TypeAlias = Literal['newest_first', 'oldest_first']
"""
- `newest_first`: The newest event comes first.
- `oldest_first`: The oldest event comes first.
"""


HeaderValues: TypeAlias = dict[str, str]
"""The values of headers by their names."""


class OAuth2Credentials(TypedDict):
    """An access token that the service gets with client credentials (RFC 6749, section 4.4)."""

    type: Literal['oauth2']
    token_url: str
    client_id: str
    client_secret: str
    scope: NotRequired[str | None]


Credentials: TypeAlias = BasicCredentials | BearerCredentials | OAuth2Credentials
"""What deliveries are authenticated with at the endpoint."""


class ReplaySelection(TypedDict):
    """The deliveries that a bulk replay sends."""

    since: datetime
    """The start of the time span: deliveries of events at or after this time are sent."""
    until: NotRequired[datetime | None]
    """The end of the time span: deliveries of events before this time are sent. Without it, or with null, it is now."""
    statuses: NotRequired[list[DeliveryStatus] | None]
    """The statuses of the deliveries that are sent. Without it, with null or empty, they are `failed` and `held`."""
    missed: NotRequired[bool | None]
    """Whether matching events are sent as well that have no delivery, because the subscription was disabled or did not exist. Without it, or with null, they are not."""


class SecretRotation(TypedDict):
    """The rotation of a signing secret."""

    overlap: NotRequired[int | None]
    """The number of seconds for which the previous secret signs as well. Without it, or with null, it is 86,400: 24 hours."""


class WebhookCreate(TypedDict):
    """A new webhook subscription. It is enabled from the start."""

    url: str
    """The URL of the endpoint. It must use `https` and a public host, and have no user name or password."""
    events: EventSelection
    """The kinds of events to deliver, or `["*"]` for all of them, including those that are added later. Repeated kinds are stored once."""
    description: NotRequired[str | None]
    """A description of the subscription, for your own use. Must be a single line. Blank text is stored as null."""
    headers: NotRequired[HeaderValues | None]
    """Headers that each delivery has in addition, as an object with their values by their names, at most 20. The values are secret: no response has them. Headers that the service or HTTP sets itself are refused."""
    authentication: NotRequired[Credentials | None]
    """How deliveries are authenticated at the endpoint: `basic` with `username` and `password`, `bearer` with `token`, or `oauth2` with `token_url`, `client_id`, `client_secret` and perhaps `scope`. No response has the secret."""
    filter: NotRequired[str | None]
    """Which events of these kinds are delivered, by what is in them, such as `data.city == "Perth"`. Without it, all are."""
    payload: NotRequired[Payload | None]
    """The `data` in the body of a delivery: `contract` for the record, which is the default, or `thin` for its `id`."""
    max_per_second: NotRequired[int | None]
    """The highest rate of deliveries, in deliveries a second. Without it, the endpoint gets as many as it takes."""
    max_in_flight: NotRequired[int | None]
    """The highest number of delivery attempts at the same time. Without it, there are up to 64 while they succeed."""
    timeout: NotRequired[int | None]
    """The timeout of a delivery attempt in seconds. Without it, it is that of the service: 10 seconds by default."""
    retry_schedule: NotRequired[list[int] | None]
    """The waits before the retries of a delivery in seconds. Without it, they are those of the service."""
    ordering: NotRequired[Ordering | None]
    """Which deliveries wait for earlier ones: `none`, which is the default, or with `record` those of the same record, until the earlier ones have succeeded or were given up."""
    signature: NotRequired[SignatureScheme | None]
    """How deliveries are signed: `hmac`, which is the default, or `ed25519`, which adds a signature that is verified with a public key."""
    client_certificate: NotRequired[ClientCertificateWithKey | None]
    """The certificate that deliveries show to the endpoint (mutual TLS), with its private key. No response has the key."""
    certificate_authority: NotRequired[str | None]
    """The certificates of the authorities that are trusted at the endpoint in place of the public ones, in PEM."""
    secret: NotRequired[str | None]
    """The signing secret, for a receiver that has one from another sender: `whsec_` and the base64 of 24 to 64 bytes. Without it, the service makes one."""


class WebhookDeliveryFilter(TypedDict):
    """Which records a list has. Without a filter, it has all."""

    status: NotRequired[DeliveryStatus]
    """Returns only deliveries with this status."""
    kind: NotRequired[EventKind]
    """Returns only deliveries of events of this kind."""
    since: NotRequired[datetime]
    """Returns only deliveries of events at or after this time, in RFC 3339 with an offset."""
    until: NotRequired[datetime]
    """Returns only deliveries of events before this time, in RFC 3339 with an offset."""


class WebhookTest(TypedDict):
    """A test of a webhook subscription."""

    kind: NotRequired[EventKind | None]
    """The kind of the event. Without it, or with null, it is the first kind that the subscription is for."""


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
    headers: NotRequired[HeaderValues | None]
    """Headers that each delivery has in addition, as an object with their values by their names, at most 20. They replace all that were set. Null clears them."""
    authentication: NotRequired[Credentials | None]
    """How deliveries are authenticated at the endpoint: `basic` with `username` and `password`, `bearer` with `token`, or `oauth2` with `token_url`, `client_id`, `client_secret` and perhaps `scope`. Null clears it."""
    filter: NotRequired[str | None]
    """Which events of these kinds are delivered from now on, by what is in them. Null clears it."""
    payload: NotRequired[Payload | None]
    """The `data` in the body of a delivery: `contract` for the record, or `thin` for its `id`. Null is `contract`."""
    max_per_second: NotRequired[int | None]
    """The highest rate of deliveries, in deliveries a second. Null clears it."""
    max_in_flight: NotRequired[int | None]
    """The highest number of delivery attempts at the same time. Null clears it."""
    timeout: NotRequired[int | None]
    """The timeout of a delivery attempt in seconds. Null restores that of the service."""
    retry_schedule: NotRequired[list[int] | None]
    """The waits before the retries of a delivery in seconds. Null restores those of the service."""
    ordering: NotRequired[Ordering | None]
    """Which deliveries wait for earlier ones: `none`, or `record` for those of the same record. Null is `none`. It applies to the events from now on."""
    signature: NotRequired[SignatureScheme | None]
    """How deliveries are signed: `hmac`, or `ed25519`, which adds a signature that is verified with a public key. Null is `hmac`."""
    client_certificate: NotRequired[ClientCertificateWithKey | None]
    """The certificate that deliveries show to the endpoint (mutual TLS), with its private key. The next attempt shows it. Null clears it."""
    certificate_authority: NotRequired[str | None]
    """The certificates of the authorities that are trusted at the endpoint in place of the public ones, in PEM. Null clears it."""
