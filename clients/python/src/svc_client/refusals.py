# Written by generate.py from the OpenAPI document. Do not edit it.
# ruff: noqa: E501
"""The reasons for which deliveries are refused, and the forms that their parts have."""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "empty_secret": "the secret is empty; pass the `secret` that was returned when the webhook was created",
    "secret_whitespace": "the secret contains white space; remove it, such as the line feed at the end of a file",
    "secret_not_base64": "the secret is not `whsec_` followed by base64; pass the whole secret unchanged",
    "public_key_as_secret": "the secret is a public key, with which anyone could sign; pass it as a public key",
    "empty_public_key": "the public key is empty; pass the public key of the webhook, which begins with `whpk_`",
    "not_public_key": "the public key does not begin with `whpk_`; pass it unchanged, and no secret or private key",
    "public_key_not_base64": "the public key is not base64 after `whpk_`; pass it unchanged, without white space",
    "public_key_wrong_length": "the public key does not have 32 bytes after `whpk_`; pass it unchanged",
    "invalid_public_key": "the public key is not one of Ed25519; pass the public key of the webhook unchanged",
    "no_secret": "X-SVC-Signature is made with the secret, and the verifier has only public keys; add the secret",
    "empty_header": "the signature header is empty or missing; check that no proxy removes it",
    "missing_prefix": "the signature does not begin with `sha256=`; pass X-SVC-Signature unchanged",
    "wrong_length": "the signature does not have 64 digits after `sha256=`; pass X-SVC-Signature unchanged and once",
    "not_hex": "the signature is not hex; pass X-SVC-Signature unchanged",
    "upper_case_hex": "the signature is in upper-case hex; pass X-SVC-Signature unchanged",
    "mismatch": "the signature does not match; pass the bytes of the body as received, and the whole secret or public key of this webhook",
    "missing_delivered_at": "the body has no string `delivered_at`, which the maximum age requires; pass the whole body",
    "invalid_delivered_at": "`delivered_at` is not an RFC 3339 time in UTC; pass the whole body",
    "stale": "the delivery was sent longer ago than the maximum age; check the clock of this machine",
    "from_future": "the delivery was sent in the future; check the clock of this machine",
    "malformed_body": "the body is signed and is not an event; check that the sender is SVC",
    "invalid_id": "webhook-id is empty, missing or contains a dot; pass the header unchanged",
    "invalid_timestamp": "webhook-timestamp is missing or not in Unix seconds; pass the header unchanged",
    "no_v1_signature": "webhook-signature has no entry that begins with `v1,`; pass the whole header",
    "not_base64": "webhook-signature is not base64 of 32 bytes after `v1,`; pass the header unchanged",
    "no_v1a_signature": "webhook-signature has no entry that begins with `v1a,`; set `signature` of the webhook to `ed25519`",
    "v1a_not_base64": "webhook-signature is not base64 of 64 bytes after `v1a,`; pass the header unchanged",
    "too_many_signatures": "webhook-signature has more entries than the service sends; pass the header unchanged and once"
}
FORMS: dict[str, dict[str, str]] = {
    "secret": {
        "empty_secret": ".+",
        "public_key_as_secret": "(?!whpk_).+",
        "secret_whitespace": "\\S+"
    },
    "public_key": {
        "empty_public_key": ".+",
        "not_public_key": "whpk_.*"
    },
    "signature": {
        "missing_prefix": "sha256=.*",
        "wrong_length": ".{71}|.*[^\\x00-\\x7f].*",
        "not_hex": ".{7}[0-9a-fA-F]+",
        "upper_case_hex": ".{7}[0-9a-f]+"
    },
    "webhook-id": {
        "invalid_id": "[^.]+"
    },
    "webhook-timestamp": {
        "invalid_timestamp": "[0-9]{1,18}"
    },
    "webhook-signature": {
        "empty_header": ".+"
    }
}
