"""Verifies that a webhook delivery was sent by SVC a short time ago and was not changed on its way, and reads its event."""

from __future__ import annotations

import base64
import hmac
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

import msgspec

from . import _typing, types
from .core import decoder

_MESSAGES = {
    "empty_secret": "the secret is empty; pass the `secret` that was returned when the subscription was created",
    "secret_whitespace": "the secret contains white space; remove it, such as the line feed at the end of a file",
    "secret_not_base64": "the secret is not `whsec_` followed by base64; pass the whole secret unchanged",
    "public_key_as_secret": "the secret is a public key, with which anyone could sign; pass it in `public_keys`",
    "empty_public_key not_public_key public_key_not_base64 public_key_wrong_length invalid_public_key": "the public key "
    "is not `whpk_` followed by the base64 of 32 bytes; pass it unchanged, and neither the secret nor a private key",
    "no_secret": "X-SVC-Signature is made with the secret, and there are only public keys; pass the secret as well",
    "empty_header": "the signature header is empty or missing; check that no proxy removes it",
    "missing_prefix wrong_length not_hex upper_case_hex": "X-SVC-Signature is not `sha256=` followed by 64 lower-case hex "
    "digits; pass it unchanged and once",
    "mismatch": "the signature is not that of this body; pass its bytes as received, and the whole secret or public key",
    "missing_delivered_at invalid_delivered_at": "the body has no time `delivered_at`; pass the whole body of a delivery",
    "stale": "the delivery is older than the maximum age; check the clock, or raise the maximum age",
    "from_future": "the delivery was sent in the future; check the clock",
    "malformed_body": "the body is not that of an event",
    "invalid_id invalid_timestamp": "webhook-id or webhook-timestamp is missing or not valid; pass both unchanged",
    "no_v1_signature not_base64": "webhook-signature has no entry `v1,` and the base64 of 32 bytes; pass it unchanged",
    "no_v1a_signature v1a_not_base64 too_many_signatures": "webhook-signature has no entry `v1a,` and the base64 of 64 "
    "bytes, or more than 8; pass it unchanged, and set `signature` of the subscription to `ed25519`",
}


class VerifyError(ValueError):
    """The reason why a delivery was refused. Respond with 401: SVC sends it again later."""

    def __init__(self, code: str, detail: str = "") -> None:
        """Has the message of the code."""
        super().__init__(code, detail)
        self.code = code
        """The name of the reason, such as `mismatch`. It does not change."""

    def __str__(self) -> str:
        text = next(text for codes, text in _MESSAGES.items() if self.code in codes.split())
        return ": ".join(filter(None, [f"{text} ({self.code})", self.args[1]]))


@dataclass(kw_only=True, slots=True)
class OtherEvent:
    """An event of a kind or a form that this version does not know, or of a subscription with thin payloads."""

    event: str
    """The kind of the event."""
    data: dict[str, Any]
    """The record, with exact numbers. In a thin payload it has the `id` alone."""
    delivered_at: _typing.datetime
    """When this attempt was made."""
    tenant_id: str
    """The id of the account."""
    event_id: str | None = None
    """The id of the event, in a thin payload. `Extensions.events` reads it."""


@dataclass
class _Sent:
    delivered_at: str


_KINDS = {it.__annotations__["event"].split("'")[1]: it for it in get_args(types.WebhookEvent)}


class Verifier:
    """Verifies deliveries with one or more secrets or public keys. Create one, and share it."""

    def __init__(
        self, *secrets: str, public_keys: Iterable[str] = (), max_age: float | None = 300, future_tolerance: float = 60
    ) -> None:
        """Takes both secrets, or both public keys, while they are being rotated.

        Deliveries that were sent more than `max_age` seconds ago are refused, unless it is None, and so are those from more
        than `future_tolerance` seconds in the future. Public keys need `pip install svc-client[ed25519]`.
        """
        self._max_age, self._future_tolerance = max_age, future_tolerance
        self._public_keys = [_public_key(key) for key in public_keys]
        for secret in secrets if secrets or self._public_keys else [""]:
            _require(secret, "empty_secret")
            _require(not secret.startswith("whpk_"), "public_key_as_secret")
            _require(not re.search(r"\s", secret), "secret_whitespace")
        self._secrets = secrets

    def verify(self, headers: Mapping[str, str], body: bytes, *, now: float | None = None) -> None:
        """Raises a VerifyError unless a signature in the headers is that of the body, and its age is right at `now`.

        The headers of Standard Webhooks are verified if they are there, and otherwise `X-SVC-Signature`.
        """
        found = {name.lower(): value for name, value in headers.items()}
        if "webhook-signature" in found:
            sent = self._check_standard(found, body)
        else:
            self._check_own(found.get("x-svc-signature", ""), body)
            sent = _delivered_at(body) if self._max_age is not None else 0
        age = (time.time() if now is None else now) - sent
        if self._max_age is not None:
            _require(age <= self._max_age, "stale", f"it was sent {age:.0f} s ago")
            _require(-age <= self._future_tolerance, "from_future", f"it was sent {-age:.0f} s ahead")

    def event(
        self, headers: Mapping[str, str], body: bytes, *, now: float | None = None
    ) -> types.WebhookEvent | OtherEvent:
        """Verifies a delivery and returns its event, such as a `types.InvoicePaidEvent`, with amounts as Decimal."""
        self.verify(headers, body, now=now)
        try:
            other: OtherEvent = decoder(OtherEvent).decode(body)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise VerifyError("malformed_body", str(error)) from None
        try:
            return other if other.event_id else decoder(_KINDS.get(other.event, OtherEvent)).decode(body)
        except msgspec.ValidationError:
            return other

    def _check_own(self, signature: str, body: bytes) -> None:
        _require(signature, "empty_header")
        _require(self._secrets, "no_secret")
        _require(signature.startswith("sha256="), "missing_prefix")
        digits = signature[7:]
        _require(len(digits.encode()) == 64, "wrong_length")
        _require(re.fullmatch("[0-9a-fA-F]+", digits), "not_hex")
        _require(digits == digits.lower(), "upper_case_hex")
        # Every secret is tried, so that the time does not reveal which one matched.
        macs = [hmac.new(secret.encode(), body, "sha256").hexdigest() for secret in self._secrets]
        _require(any([hmac.compare_digest(mac, digits) for mac in macs]), "mismatch")

    def _check_standard(self, headers: Mapping[str, str], body: bytes) -> float:
        id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        # With a dot in the id, part of the body could be passed off as the timestamp.
        _require(id and "." not in id, "invalid_id")
        _require(re.fullmatch("[0-9]{1,18}", timestamp), "invalid_timestamp")
        _require(headers["webhook-signature"], "empty_header")
        entries, signed = headers["webhook-signature"].split(" "), f"{id}.{timestamp}.".encode() + body
        keys = [_base64(secret.removeprefix("whsec_")) for secret in self._secrets]
        _require(all(keys), "secret_not_base64")
        macs = [hmac.digest(key or b"", signed, "sha256") for key in keys]
        by_secret = _failure(entries, "v1", 32, lambda it: any([hmac.compare_digest(mac, it) for mac in macs]))
        by_key = _failure(entries, "v1a", 64, lambda it: any(_is_signed(key, it, signed) for key in self._public_keys))
        if by_secret and by_key:
            # With both kinds of keys, the error is about the entries that are there.
            is_about_keys = not self._secrets or (by_secret == "no_v1_signature" and by_key != "no_v1a_signature")
            raise VerifyError(by_key if self._public_keys and is_about_keys else by_secret)
        return int(timestamp)


def _require(condition: object, code: str, detail: str = "") -> None:
    if not condition:
        raise VerifyError(code, detail)


def _delivered_at(body: bytes) -> float:
    try:
        sent: str = decoder(_Sent).decode(body).delivered_at
    except (msgspec.MsgspecError, RecursionError):
        raise VerifyError("missing_delivered_at") from None
    form = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?Z", sent, re.ASCII)
    try:
        return datetime.fromisoformat(f"{form and form[1]}+00:00").timestamp() + float(form and form[2] or 0)
    except ValueError:
        raise VerifyError("invalid_delivered_at") from None


def _base64(text: str) -> bytes | None:
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return found if base64.b64encode(found).decode() == text else None


def _failure(entries: list[str], version: str, size: int, is_signed: Callable[[bytes], bool]) -> str | None:
    """Returns why no entry of this version is a signature."""
    found = [_base64(entry.partition(",")[2]) or b"" for entry in entries if entry.startswith(f"{version},")]
    if not found:
        return f"no_{version}_signature"
    # Each public key costs a hash of the whole body, so that one long header could occupy the receiver.
    if len(found) > 8 and version == "v1a":
        return "too_many_signatures"
    if any(len(signature) != size for signature in found):
        return "not_base64" if version == "v1" else "v1a_not_base64"
    return None if any([is_signed(signature) for signature in found]) else "mismatch"


def _is_signed(key: Any, signature: bytes, signed: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def _public_key(text: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    _require(text, "empty_public_key")
    _require(text.startswith("whpk_"), "not_public_key")
    key = _base64(text.removeprefix("whpk_"))
    if key is None or len(key) != 32:
        raise VerifyError("public_key_not_base64" if key is None else "public_key_wrong_length")
    # The point must be on the curve: x² = (y² - 1) / (d y² + 1) modulo p.
    p, y = 2**255 - 19, int.from_bytes(key, "little") % 2**255
    x2 = (y * y - 1) * pow(1 - 121665 * pow(121666, -1, p) * y * y, -1, p)
    _require(y < p and pow(x2, (p - 1) // 2, p) in (0, 1), "invalid_public_key")
    return Ed25519PublicKey.from_public_bytes(key)
