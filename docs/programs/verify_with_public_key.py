import base64
import re
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def verify_with_public_key(public_key, headers, body, max_age=300, now=None):
    """Whether svc sent `body` (bytes) at most `max_age` seconds before `now` (Unix seconds)."""
    id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    encoded = re.fullmatch("whpk_([A-Za-z0-9+/]{43}=)", public_key)
    # With a dot in the id, part of the body could be passed off as the timestamp.
    if not encoded or not re.fullmatch("[A-Za-z0-9_-]+", id) or not re.fullmatch("[0-9]{1,12}", timestamp):
        return False
    age = (time.time() if now is None else now) - int(timestamp)
    if max_age is not None and not -60 <= age <= max_age:
        return False
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(encoded[1]))
    signed = f"{id}.{timestamp}.".encode() + body
    # svc sends two signatures at most. More would only cost time.
    for signature in re.findall("v1a,([A-Za-z0-9+/]{86}==)", headers.get("webhook-signature", ""))[:2]:
        try:
            key.verify(base64.b64decode(signature), signed)
            return True
        except InvalidSignature:
            continue
    return False
