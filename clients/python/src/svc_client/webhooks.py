"""Verifies that a webhook delivery was sent by SVC a short time ago and was not changed on its way, and reads its event."""

from __future__ import annotations

import base64
import hmac
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args

import msgspec

from . import types
from ._typing import datetime
from .core import decoder
from .refusals import FORMS, TEXTS


class VerifyError(ValueError):
    """The reason why a delivery was refused. Respond with 401: SVC sends it again later."""

    def __init__(self, code: str, detail: str = "") -> None:
        """Has the message of the code."""
        super().__init__(code, detail)
        self.code = code
        """The name of the reason, such as `mismatch`. It does not change."""

    def __str__(self) -> str:
        return ": ".join(filter(None, [f"{TEXTS[self.code]} ({self.code})", self.args[1]]))


@dataclass
class _Sent:
    delivered_at: str


_KINDS = {it.__annotations__["event"].split("'")[1]: it for it in get_args(types.WebhookEvent) if it is not types.OtherEvent}


class Verifier:
    """Verifies deliveries with one or more secrets or public keys. Create one, and share it."""

    def __init__(
        self, *secrets: str, public_keys: Iterable[str] = (), max_age: float | None = 300, future_tolerance: float = 60
    ) -> None:
        """Takes both secrets, or both public keys, while they are being rotated.

        Deliveries that were sent more than `max_age` seconds ago are refused, unless it is None, and so are those from more
        than `future_tolerance` seconds in the future. Public keys need the extra `ed25519`.
        """
        self._max_age, self._future_tolerance = max_age, future_tolerance
        self._public_keys = [_public_key(key) for key in public_keys]
        for secret in secrets if secrets or self._public_keys else [""]:
            _check("secret", secret)
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

    def event(self, headers: Mapping[str, str], body: bytes, *, now: float | None = None) -> types.WebhookEvent:
        """Verifies a delivery and returns its event, such as a `types.InvoicePaidEvent`, with amounts as Decimal.

        An event of a kind or a form that this version does not know, or with a thin payload, is a `types.OtherEvent`.
        """
        self.verify(headers, body, now=now)
        try:
            other: types.OtherEvent = decoder(types.OtherEvent).decode(body)
        except (msgspec.MsgspecError, RecursionError, ArithmeticError) as error:
            raise VerifyError("malformed_body", str(error)) from None
        try:
            return other if other.event_id else decoder(_KINDS.get(other.event, types.OtherEvent)).decode(body)
        except msgspec.ValidationError:
            return other

    def _check_own(self, signature: str, body: bytes) -> None:
        _require(signature, "empty_header")
        _require(self._secrets, "no_secret")
        _check("signature", signature)
        # Every secret is tried, so that the time does not reveal which one matched.
        macs = ["sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest() for secret in self._secrets]
        _require(any([hmac.compare_digest(mac, signature) for mac in macs]), "mismatch")

    def _check_standard(self, headers: Mapping[str, str], body: bytes) -> float:
        id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        # With a dot in the id, part of the body could be passed off as the timestamp.
        for part in ("webhook-id", "webhook-timestamp", "webhook-signature"):
            _check(part, headers.get(part, ""))
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


def _check(part: str, text: str) -> None:
    """Checks a part of a delivery against the form that each code stands for."""
    for code, form in FORMS[part].items():
        _require(re.fullmatch(form, text, re.DOTALL), code)


def _delivered_at(body: bytes) -> float:
    try:
        sent: str = decoder(_Sent).decode(body).delivered_at
    except (msgspec.MsgspecError, RecursionError, ArithmeticError):
        raise VerifyError("missing_delivered_at") from None
    try:
        return msgspec.convert(sent, datetime).timestamp()
    except msgspec.ValidationError:
        raise VerifyError("invalid_delivered_at") from None


def _base64(text: str) -> bytes | None:
    with suppress(ValueError):
        found = base64.b64decode(text, validate=True)
        return found if base64.b64encode(found).decode() == text else None
    return None


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

    with suppress(InvalidSignature):
        return key.verify(signature, signed) is None
    return False


def _public_key(text: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    _check("public_key", text)
    key = _base64(text.removeprefix("whpk_"))
    if key is None or len(key) != 32:
        raise VerifyError("public_key_not_base64" if key is None else "public_key_wrong_length")
    # The point must be on the curve: x² = (y² - 1) / (d y² + 1) modulo p.
    p, y = 2**255 - 19, int.from_bytes(key, "little") % 2**255
    x2 = (y * y - 1) * pow(1 - 121665 * pow(121666, -1, p) * y * y, -1, p)
    _require(y < p and pow(x2, (p - 1) // 2, p) in (0, 1), "invalid_public_key")
    return Ed25519PublicKey.from_public_bytes(key)
