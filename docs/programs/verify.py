import hashlib
import hmac
import json
import time
from datetime import datetime


def verify(secret, signature, body, max_age=300, now=None):
    """Whether svc sent `body` (bytes) at most `max_age` seconds before `now` (Unix seconds)."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if not secret or not hmac.compare_digest(expected.encode(), (signature or "").encode()):
        return False
    if max_age is None:
        return True
    try:
        delivered_at = json.loads(body)["delivered_at"].replace("Z", "+00:00")
        age = (time.time() if now is None else now) - datetime.fromisoformat(delivered_at).timestamp()
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return -60 <= age <= max_age
