"""The behaviours of clients/cases.json, each with both clients."""

# pyright: basic
from __future__ import annotations

import base64
import json
import signal
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hostile import HostileServer, LossyProxy
from server import demo, svc
from steps import Cancelled, Runner, load, matches, parsed, plain

from svc_client import AsyncClient, AsyncTokenSource, Client, RetryPolicy, Tokens, TokenSource, types
from svc_client.extensions import AsyncExtensions, Extensions
from svc_client.webhooks import Verifier, VerifyError

FOLDER = Path(__file__).parents[2]
TABLE = load(str(FOLDER / "cases.json"))
VECTORS = load(str(FOLDER / TABLE["vectors"]))
SETTINGS = {
    "path", "signing_secret", "tokens", "attempts", "total_ms", "first_wait_ms", "longest_wait_ms", "timeout_ms", "real_waits",
    "key", "lose_responses", "clock_ahead_ms",
}  # fmt: skip


def test_the_table_has_no_parts_that_this_test_does_not_run() -> None:
    assert set(TABLE) == {"version", "now", "key", "vectors", "bodies", "hostile", "live", "webhooks"}
    assert TABLE["version"] == 1


class World:
    """A clock, waits that take no time, and a store of tokens."""

    def __init__(self, settings: dict[str, Any], is_async: bool) -> None:
        """Begins at the time of the table."""
        assert set(settings) <= SETTINGS, set(settings) - SETTINGS
        self.settings, self.is_async = settings, is_async
        self.now = parsed(TABLE["now"]).timestamp()
        self.waits: list[float] = []
        self.stored: list[dict[str, str]] = []
        self.failures = settings.get("tokens", {}).get("store_fails", 0)
        # Calls are cancelled in waits that take their time, once they have begun.
        self.on_wait: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        """Moves the clock on."""
        self.waits.append(seconds * 1000)
        self.now += seconds

    async def sleep_async(self, seconds: float) -> None:
        """Moves the clock on."""
        self.sleep(seconds)

    def wait(self, seconds: float) -> None:
        """Takes its time, and is cancelled meanwhile."""
        threading.Timer(0.2, self.on_wait).start()
        time.sleep(seconds)

    async def wait_async(self, seconds: float) -> None:
        """Takes its time, and is cancelled meanwhile."""
        threading.Timer(0.2, self.on_wait).start()
        await anyio.sleep(seconds)

    def store(self, tokens: Tokens) -> None:
        """Notes the tokens, unless it is to fail."""
        if self.failures:
            self.failures -= 1
            raise OSError("the disk is full")
        self.stored.append({"access_token": tokens.access_token, "refresh_token": tokens.refresh_token})

    async def store_async(self, tokens: Tokens) -> None:
        """Notes the tokens, unless it is to fail."""
        self.store(tokens)

    def client(self, url: str, key: str, signing_secret: str | None = None, **env: Any) -> Any:
        """Returns a client with the settings of the case, in this world or with another clock."""
        given = self.settings
        policy = RetryPolicy(
            attempts=given.get("attempts", 4),
            total=given.get("total_ms", 90_000) / 1000,
            first_wait=given.get("first_wait_ms", 250) / 1000,
            longest_wait=given.get("longest_wait_ms", 10_000) / 1000,
        )
        if not env:
            waits = (self.wait, self.wait_async) if given.get("real_waits") else (self.sleep, self.sleep_async)
            env = {"now": lambda: self.now, "sleep": waits[self.is_async]}
        settings: dict[str, Any] = {"timeout": given.get("timeout_ms", 30_000) / 1000, "retry": policy, **env}
        settings["signing_secret"] = signing_secret or given.get("signing_secret")
        if tokens := given.get("tokens"):
            kind: Any = AsyncTokenSource if self.is_async else TokenSource
            store = self.store_async if self.is_async else self.store
            first = Tokens(tokens["access_token"], tokens["refresh_token"])
            source = kind(tokens["client_id"], first, store, client_secret=tokens.get("client_secret"))
            return (AsyncClient if self.is_async else Client)(url, tokens=source, **settings)
        return (AsyncClient if self.is_async else Client)(url, key, **settings)


def runner(client: Any) -> Runner:
    """Returns what runs the steps of a case."""
    is_async = isinstance(client, AsyncClient)
    return Runner(client, AsyncExtensions(client) if is_async else Extensions(client), is_async)


def cancel(*_: Any) -> None:
    """Ends the call that runs, as the handler of SIGINT does."""
    raise Cancelled


def cases(part: str) -> Any:
    """Returns a parameter for each case of a part of the table."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in TABLE[part]])


both: Any = pytest.mark.parametrize("is_async", [pytest.param(False, id="sync"), pytest.param(True, id="async")])


@both
@cases("hostile")
def test_hostile(case: dict[str, Any], is_async: bool) -> None:
    server = HostileServer(TABLE, case)
    world = World(case.get("client", {}), is_async)
    client = world.client(server.url + world.settings.get("path", ""), TABLE["key"])
    steps = runner(client)
    if "real_waits" in world.settings:
        world.on_wait = lambda: steps.cancel()
    else:
        server.on_request = steps.on_request
    signal.signal(signal.SIGUSR1, cancel)
    steps.run(case["steps"], uuid.uuid4().hex)
    server.close()
    if "stored" in case:
        assert world.stored == case["stored"]
    if "waits_ms" in case:
        assert len(world.waits) == len(case["waits_ms"]), world.waits
        for wait, (least, greatest) in zip(world.waits, case["waits_ms"], strict=True):
            assert least - 0.001 <= wait <= greatest + 0.001, world.waits


@both
@cases("live")
def test_live(case: dict[str, Any], is_async: bool) -> None:
    assert set(case) <= {"name", "client", "steps"}
    world = World(case.get("client", {}), is_async)
    with demo() as exports:
        url, key, secret = exports["SVC_URL"], exports["SVC_KEY"], None
        if world.settings.get("key") == "signed":
            made = json.loads(svc(exports, "key", "create", "--scopes", "read,write", "--signed", "--json"))
            key, secret = made["key"], made["signing_secret"]
        proxy = LossyProxy(url, world.settings["lose_responses"]) if "lose_responses" in world.settings else None
        ahead = world.settings.get("clock_ahead_ms", 0) / 1000
        client = world.client(proxy.url if proxy else url, key, secret, now=lambda: time.time() + ahead)
        steps = runner(client)
        steps.run(case["steps"], uuid.uuid4().hex)
        if proxy:
            proxy.close()


def verifier(case: dict[str, Any]) -> Verifier:
    """Returns a verifier with the settings of a case."""
    keys, age = case.get("public_keys", []), case.get("max_age_seconds", 300)
    return Verifier(*case.get("secrets", []), public_keys=keys, max_age=age)


@cases("webhooks")
def test_webhooks(case: dict[str, Any]) -> None:
    fields = {"name", "secrets", "public_keys", "headers", "body", "now", "max_age_seconds", "result", "error"}
    assert set(case) <= fields and ("result" in case) != ("error" in case), case
    if "error" in case:
        with pytest.raises(VerifyError) as refused:
            verifier(case).event(case["headers"], case["body"].encode(), now=case["now"])
        assert refused.value.code == case["error"] and case["error"] in str(refused.value)
    else:
        found = verifier(case).event(case["headers"], case["body"].encode(), now=case["now"])
        matches(plain(found), case["result"])
        assert not isinstance(found, types.OtherEvent), "an event of a known kind has its type"


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector["name"]) for vector in VECTORS])
def test_vectors(vector: dict[str, Any]) -> None:
    body = base64.b64decode(vector["body_base64"]) if "body_base64" in vector else vector["body"].encode()
    names = {"signature": "X-SVC-Signature", "webhook_id": "webhook-id"}
    names |= {"webhook_timestamp": "webhook-timestamp", "webhook_signature": "webhook-signature"}
    # Servers hand the bytes of a header over as latin-1.
    headers = {it: vector[name].encode().decode("latin-1") for name, it in names.items() if name in vector}
    given: dict[str, Any] = {"secrets": [vector["secret"]] if "secret" in vector else []}
    given |= {"public_keys": [vector["public_key"]] if "public_key" in vector else []}
    given["max_age_seconds"] = vector.get("max_age_seconds")
    try:
        verifier(given).verify(headers, body, now=vector.get("now"))
    except VerifyError as error:
        assert not vector["valid"] and error.code == vector["error"]
    else:
        assert vector["valid"] or vector.get("lenient")
