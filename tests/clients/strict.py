"""Reads responses of a server, of which SVC_URL and SVC_KEY tell, with the strict models that datamodel-code-generator makes
of the OpenAPI document: whatever the service accepts comes back in the types that the document promises."""

import json
import os
import urllib.request

from models import ContactList, ContactResponse, JobResponse, WebhookSubscriptionList
from models import WebhookSubscriptionWithSecretResponse

EMAILS = [".a@example.com", "a..b@example.com", "a.@example.com", "!#$%&'*+/=?^_`{|}~-@example.com", "x@1.2", "a@xn--p1ai.ru"]
URLS = [
    "http://127.0.0.1:9/{id}",
    "http://127.0.0.1:9/a b",
    "http://127.0.0.1:9/a|b",
    "http://127.0.0.1:9/%zz",
    "http://127.0.0.1:9/\u00e9?q=\u00e9#\u00e9",
    "HTTP://LOCALHOST:9",
    'http://127.0.0.1:9/"<>\\^`',
]
TIMES = ["2026-03-14T15:09:26Z", "2026-03-14T15:09:26.123456789+23:59", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"]


def call(method: str, path: str, body: object = None) -> str:
    request = urllib.request.Request(f"{os.environ['SVC_URL']}/api/v1{path}", method=method)
    request.add_header("Authorization", f"Bearer {os.environ['SVC_KEY']}")
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as response:
        return response.read().decode()


for email in EMAILS:
    created = ContactResponse.model_validate_json(call("POST", "/contacts", {"email": email, "first_name": "Ada"}))
    assert created.data.email == email, created
for url in URLS:
    body = {"url": url, "events": ["contact.created"]}
    subscribed = WebhookSubscriptionWithSecretResponse.model_validate_json(call("POST", "/webhooks", body))
    assert subscribed.data.url == url, subscribed
for time in TIMES:
    JobResponse.model_validate_json(call("POST", "/jobs", {"title": "Drain", "scheduled_start": time}))
ContactList.model_validate_json(call("GET", "/contacts?limit=200"))
WebhookSubscriptionList.model_validate_json(call("GET", "/webhooks?limit=200"))
