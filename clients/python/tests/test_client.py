"""What is particular to this client: its types, its threads and its event loops."""

# pyright: basic
from __future__ import annotations

import asyncio
import gzip
import logging
import pickle
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import anyio
import httpx
import pytest
from hostile import HostileServer
from steps import load
from test_cases import FOLDER, TABLE

from svc_client import (
    ApiError,
    AsyncClient,
    AsyncTokenSource,
    Client,
    RetryPolicy,
    SvcError,
    Tokens,
    TokenSource,
    TransportError,
    UnexpectedResponse,
    error_classes,
    types,
)
from svc_client.core import Response, failure, text
from svc_client.extension_types import Event, WebhookSubscription
from svc_client.webhooks import Verifier, VerifyError

ID = "0195a3c8-8a00-7000-8000-00000000c001"
ADA = {"headers": {"etag": '"v1"'}, "body": "ada"}
DOCUMENT = FOLDER.parent / "svc-server" / "openapi" / "v1.json"
NEVER = RetryPolicy(attempts=1)


def serve(*responses: dict[str, Any], request: str = f"GET /api/v1/contacts/{ID}") -> HostileServer:
    """Starts a server that responds to one request after the other."""
    return HostileServer(TABLE, {"name": "a test", "script": [{"request": request, "respond": it} for it in responses]})


def client(server: HostileServer, **settings: Any) -> Client:
    """Returns a client of a server, whose waits take no time."""
    return Client(server.url, TABLE["key"], **{"sleep": lambda _: None, **settings})


def test_inputs_that_are_not_exact_are_refused_before_they_are_sent() -> None:
    nobody = Client("http://127.0.0.1:9", TABLE["key"])
    total: Any = 9.95
    with pytest.raises(TypeError, match=r"9\.95 is no exact amount; pass a Decimal"):
        nobody.quotes.create({"contact_id": ID, "total": total})
    with pytest.raises(TypeError, match="no exact amount"):
        nobody.quotes.create({"contact_id": ID, "total": Decimal(1), "line_items": [{"quantity": 0.5}]})
    with pytest.raises(ValueError, match="no offset"):
        nobody.jobs.update(ID, {"scheduled_start": datetime(2026, 3, 14)})
    with pytest.raises(TypeError, match="no exact amount"):
        nobody.quotes.create({"contact_id": ID, "total": Decimal("NaN")})
    with pytest.raises(ValueError, match="no version"):
        server = serve({"body": "page_1"}, request="GET /api/v1/contacts")
        nobody.contacts.update(client(server).contacts.page().data[0], {"city": "Perth"})


def test_times_are_sent_in_utc() -> None:
    sydney = timezone(timedelta(hours=11))
    assert text(datetime(2026, 3, 15, 2, 9, 26, 535897, sydney)) == "2026-03-14T15:09:26.535897Z"


def test_settings_that_cannot_work_are_refused() -> None:
    source = TokenSource("svcapp_a", Tokens("svc_oat_1", "svc_ort_1"), lambda _: None)
    refused: list[dict[str, Any]] = [{}, {"key": "k", "tokens": source}, {"tokens": source, "signing_secret": "s"}]
    for settings in [*refused, {"key": "a b"}, {"key": ""}]:
        with pytest.raises(ValueError):
            Client("https://svc.example.com", **settings)
    for url in ("svc.example.com", "ftp://svc.example.com", "https://ada:secret@svc.example.com", "https://", "http:///x"):
        with pytest.raises(ValueError):
            Client(url, "svc_live_k")


def test_a_time_without_an_offset_in_a_response_is_refused() -> None:
    body = {"data": {**TABLE["bodies"]["ada"]["data"], "created_at": "2026-03-14T15:09:26.535897"}}
    with pytest.raises(UnexpectedResponse, match="timezone"):
        client(serve({"headers": {"etag": '"v1"'}, "json": body})).contacts.get(ID)


def test_a_value_of_an_enum_of_a_later_version_is_kept() -> None:
    job = dict.fromkeys([it.name for it in fields(types.Job)])
    job |= {"id": ID, "job_number": "J", "title": "Tap", "status": "in_dispute", "created_at": "2026-03-14T15:09:26.535897Z"}
    job["updated_at"] = job["created_at"]
    server = serve({"headers": {"etag": '"v1"'}, "json": {"data": job}}, request=f"GET /api/v1/jobs/{ID}")
    assert str(client(server).jobs.get(ID).status) == "in_dispute"


def test_errors_have_the_class_of_their_code_and_can_be_pickled() -> None:
    server = serve({"status": 404, "problem": "not_found"})
    with pytest.raises(error_classes.NotFound) as missing:
        client(server).contacts.get(ID)
    copy = pickle.loads(pickle.dumps(missing.value))
    assert isinstance(copy, error_classes.NotFound) and vars(copy) == vars(missing.value)
    assert str(copy) == "It is wrong. (status 404, code not_found, request req-7)"
    unknown = failure(Response(418, {}, b'{"error": "I am a teapot.", "code": "teapot"}'), 0)
    assert type(unknown) is ApiError and unknown.code == "teapot"  # type: ignore[comparison-overlap]


def test_every_code_of_the_document_has_a_class() -> None:
    codes = load(str(DOCUMENT))["components"]["schemas"]["Error"]["properties"]["code"]["enum"]
    assert set(error_classes.BY_CODE) == set(codes)


def test_nothing_shows_a_secret() -> None:
    source = TokenSource("svcapp_a", Tokens("svc_oat_1", "svc_ort_1"), lambda _: None, client_secret="svc_ocs_s")
    shown = repr(Client("https://svc.example.com", "svc_live_k", signing_secret="svcsig_s")) + repr(source)
    shown += repr(Tokens("svc_oat_1", "svc_ort_1")) + repr(Verifier("whsec_c2VjcmV0"))
    assert not any(secret in shown for secret in ("svc_live", "svcsig", "svc_oat", "svc_ort", "svc_ocs", "whsec"))


def test_the_log_has_no_query_and_no_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "svc_client")
    server = serve({"status": 503, "problem": "unavailable"}, {"body": "page_1"}, request="GET /api/v1/contacts")
    client(server).contacts.page({"email": "ada@example.com"})
    assert "GET /api/v1/contacts is tried again" in caplog.text and "status 200 after 2 attempts" in caplog.text
    assert "ada@example.com" not in caplog.text and TABLE["key"] not in caplog.text


def test_other_deadlines_share_the_connections() -> None:
    server = serve({"fault": "hang"})
    given = client(server)
    begun = time.monotonic()
    with pytest.raises(TransportError) as late:
        given.with_options(timeout=0.2, retry=NEVER).contacts.get(ID)
    assert late.value.kind == "timed_out" and time.monotonic() - begun < 5
    assert given.settings.timeout == 30 and given.settings.retry.attempts == 4


def test_a_body_that_drips_is_given_up_in_time() -> None:
    def drip(request: httpx.Request) -> httpx.Response:
        def body() -> Any:
            for _ in range(100):
                time.sleep(0.05)
                yield b" "

        return httpx.Response(200, content=body())

    http = httpx.Client(transport=httpx.MockTransport(drip))
    given = Client("https://svc.example.com", "svc_live_k", http=http, timeout=0.3, retry=NEVER)
    begun = time.monotonic()
    with pytest.raises(TransportError) as late:
        given.ping()
    assert late.value.kind == "timed_out" and time.monotonic() - begun < 2


def test_programs_can_be_tested_with_a_transport_of_httpx() -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer svc_live_k"
        return httpx.Response(200, headers={"etag": '"v1"'}, json=TABLE["bodies"]["ada"])

    http = httpx.Client(transport=httpx.MockTransport(respond))
    assert Client("https://svc.example.com", "svc_live_k", http=http).contacts.get(ID).first_name == "Ada"


def test_a_body_that_is_compressed_is_read_and_one_that_cannot_be_is_an_error() -> None:
    body = gzip.compress(b'{"ok": true, "tenantId": "t", "timestamp": "2026-03-14T15:09:26.535897Z"}')
    for content, error in ((body, None), (b"no gzip", TransportError)):

        def respond(_: httpx.Request, content: bytes = content) -> httpx.Response:
            return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(content))

        http = httpx.Client(transport=httpx.MockTransport(respond))
        given = Client("https://svc.example.com", "svc_live_k", http=http, retry=NEVER)
        if error is None:
            assert given.ping().tenantId == "t"
        else:
            with pytest.raises(error):
                given.ping()


@pytest.mark.parametrize("status", [200, 201, 204, 302, 304, 400, 404, 418, 500])
def test_nothing_but_an_error_of_a_call_is_raised_whatever_a_server_sends(status: int) -> None:
    bodies = [
        b"[" * 100_000,
        b'{"data":' * 100_000,
        b"\xff\xfe",
        b'{"data": {"a": 1e99999999999999999999}}',
        b"null",
        b'"',
        b"{}",
    ]
    heads: list[dict[str, Any]] = [
        {},
        {"retry-after": "Mon, 01 Jan 0001 00:00:00 -0000"},
        {"location": "//["},
        {"etag": b"\xff"},
    ]
    sent = iter([(head, body) for head in heads for body in bodies for _ in range(4)])

    def respond(_: httpx.Request) -> httpx.Response:
        head, body = next(sent)
        return httpx.Response(status, headers=head, content=body)

    given = Client(
        "https://svc.example.com", "svc_live_k", http=httpx.Client(transport=httpx.MockTransport(respond)), retry=NEVER
    )
    calls: list[Callable[[], object]] = [given.ping, given.jobs.page, lambda: given.jobs.get(ID)]
    calls.append(lambda: given.jobs.create({"title": "Tap"}))
    for _ in range(len(heads) * len(bodies)):
        for call in calls:
            with pytest.raises(SvcError):
                call()
    assert next(sent, None) is None


def test_redirects_are_not_followed_by_a_client_that_follows_them() -> None:
    server = serve({"status": 302, "headers": {"location": "/elsewhere"}})
    given = client(server, http=httpx.Client(follow_redirects=True, auth=("ada", "secret")))
    with pytest.raises(UnexpectedResponse):
        given.contacts.get(ID)
    server.close()


def test_a_lost_delete_succeeds_with_trio_as_well() -> None:
    server = serve({"fault": "close"}, {"status": 404, "problem": "not_found"}, request=f"DELETE /api/v1/contacts/{ID}")

    async def delete() -> None:
        async with AsyncClient(server.url, TABLE["key"], retry=RetryPolicy(first_wait=0.001)) as given:
            await given.contacts.delete(ID)

    anyio.run(delete, backend="trio")
    server.close()


def test_a_cancelled_scope_ends_a_call_with_trio() -> None:
    server = serve({"fault": "hang"})

    async def get() -> bool:
        with anyio.move_on_after(0.2) as scope:
            await AsyncClient(server.url, TABLE["key"]).contacts.get(ID)
        return scope.cancelled_caught

    assert anyio.run(get, backend="trio")


def test_a_refresh_that_is_cancelled_leaves_the_tokens_to_the_next_call() -> None:
    token = {"request": "POST /oauth/token", "respond": {"fault": "hang"}}
    refused = {"request": f"GET /api/v1/contacts/{ID}", "respond": {"status": 401, "problem": "invalid_token"}}
    given = {"request": "POST /oauth/token", "respond": {"body": "tokens_2"}}
    found = {"request": f"GET /api/v1/contacts/{ID}", "headers": {"authorization": "Bearer svc_oat_2"}, "respond": ADA}
    server = HostileServer(TABLE, {"name": "a test", "script": [refused, token, refused, given, found]})
    stored: list[Tokens] = []

    async def store(tokens: Tokens) -> None:
        stored.append(tokens)

    async def run() -> None:
        source = AsyncTokenSource("svcapp_a", Tokens("svc_oat_1", "svc_ort_1"), store)
        async with AsyncClient(server.url, tokens=source) as app:
            call = asyncio.create_task(app.contacts.get(ID))
            loop = asyncio.get_running_loop()

            def cancel(count: int) -> None:
                if count == 2:
                    loop.call_soon_threadsafe(call.cancel)

            server.on_request = cancel
            with pytest.raises(asyncio.CancelledError):
                await call
            assert (await app.contacts.get(ID)).first_name == "Ada"

    asyncio.run(run())
    assert [it.access_token for it in stored] == ["svc_oat_2"]
    server.close()


def test_all_calls_that_were_signed_by_a_wrong_clock_are_made_again() -> None:
    stamps: list[str] = []

    async def run() -> None:
        both = anyio.Event()

        async def respond(request: httpx.Request) -> httpx.Response:
            stamps.append(request.headers["x-svc-timestamp"])
            if len(stamps) > 2:
                return httpx.Response(204)
            if len(stamps) == 2:
                both.set()
            await both.wait()
            refused = {"error": "It is wrong.", "code": "signature_invalid"}
            return httpx.Response(401, json=refused, headers={"date": "Sat, 14 Mar 2026 15:00:00 GMT"})

        http = httpx.AsyncClient(transport=httpx.MockTransport(respond))
        now = datetime(2026, 3, 14, 14, tzinfo=timezone.utc).timestamp
        async with AsyncClient("http://svc.example.com", TABLE["key"], signing_secret="svcsig_x", http=http, now=now) as svc:
            async with anyio.create_task_group() as calls:
                calls.start_soon(svc.contacts.delete, ID)
                calls.start_soon(svc.contacts.delete, ID)

    anyio.run(run)
    assert sorted(stamps[2:]) == ["1773500400.000000", "1773500400.000001"]


def test_threads_share_a_client() -> None:
    server = HostileServer(TABLE, {"name": "a test", "routes": [{"request": f"GET /api/v1/contacts/{ID}", "respond": ADA}]})
    given, found = client(server), [0]
    lock = threading.Lock()

    def get() -> None:
        for _ in range(10):
            assert given.contacts.get(ID).first_name == "Ada"
            with lock:
                found[0] += 1

    threads = [threading.Thread(target=get) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [80]


def test_a_thin_payload_and_a_kind_of_a_later_version_are_other_events() -> None:
    verifier = Verifier("whsec_c2VjcmV0", max_age=None)

    def event(body: str) -> types.WebhookEvent:
        import hmac

        mac = hmac.new(b"whsec_c2VjcmV0", body.encode(), "sha256").hexdigest()
        return verifier.event({"X-SVC-Signature": f"sha256={mac}"}, body.encode())

    tail = f'"delivered_at":"2026-03-14T09:26:53.000000Z","tenant_id":"{ID}"}}'
    thin = event(f'{{"event":"invoice.paid","event_id":"e1","data":{{"id":"i1"}},{tail}')
    assert isinstance(thin, types.OtherEvent) and thin.event_id == "e1" and thin.data == {"id": "i1"}
    later = event(f'{{"event":"order.shipped","data":{{"id":1,"total":0.1}},{tail}')
    assert isinstance(later, types.OtherEvent) and later.data["total"] == Decimal("0.1")
    stay = event(f'{{"event":"stay.created","data":{{"id":4711,"rate":99.95}},{tail}')
    assert isinstance(stay, types.StayCreatedEvent) and stay.data["rate"] == Decimal("99.95")
    with pytest.raises(VerifyError) as refused:
        event('{"event":7}')
    assert refused.value.code == "malformed_body"


def test_the_types_of_both_documents_are_apart() -> None:
    assert {it.name for it in fields(WebhookSubscription)} > {it.name for it in fields(types.WebhookSubscription)}
    assert "etag" in {it.name for it in fields(Event)}
    assert {it.name for it in fields(types.Problem)} >= {"error", "code", "field", "errors", "existing_id", "retry_after_ms"}
