"""The steps of a case, with the client without async and the one with it."""

# pyright: basic
from __future__ import annotations

import asyncio
import http.server
import json
import re
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from queue import Queue
from typing import Any

from svc_client import ApiError, SvcError, TokensNotStored, TransportError, UnexpectedResponse
from svc_client.webhooks import Verifier

STEP_FIELDS = {
    "call", "collection", "id", "record", "input", "idempotency_key", "filter", "limit", "cursor", "updated_since", "position",
    "events", "trigger", "take", "parallel", "cancel_after_requests", "within_ms", "repeat_until_error", "result", "error",
    "partial",
}  # fmt: skip
ERROR_FIELDS = {
    "kind", "status", "code", "message", "field", "errors", "existing_id", "retry_after_ms", "request_id", "attempts",
    "transport", "start",
}  # fmt: skip
MONEY = {"total", "estimated_total", "actual_total"}
TIMES = {"start_time", "end_time", "scheduled_start", "scheduled_end", "valid_until", "since", "until"}


class Cancelled(BaseException):
    """What ends a call of the client without async, as KeyboardInterrupt does."""


def parsed(text: str) -> datetime:
    """Returns a time as a program has it."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def typed(values: dict[str, Any]) -> dict[str, Any]:
    """Returns an input with the types of the client."""
    found = dict(values)
    for name, value in values.items():
        if value is not None and name in MONEY:
            found[name] = Decimal(value)
        elif value is not None and name in TIMES:
            found[name] = parsed(value)
    return found


def plain(value: Any) -> Any:
    """Returns a result as the table has it. A binary float has no form there."""
    if is_dataclass(value):
        return {it.name: plain(getattr(value, it.name)) for it in fields(value)}
    if isinstance(value, list):
        return [plain(it) for it in value]
    if isinstance(value, dict):
        return {name: plain(it) for name, it in value.items()}
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date):
        return value.isoformat()
    assert value is None or isinstance(value, (str, int)), f"{value!r} is of another type"
    return value


def matches(found: Any, expected: Any, path: str = "result") -> None:
    """Checks that a result has what is expected."""
    if isinstance(expected, dict):
        assert isinstance(found, dict), f"{path} is {found!r}, not {expected!r}"
        for name, value in expected.items():
            assert name in found, f"{path} has no {name}: {found!r}"
            matches(found[name], value, f"{path}.{name}")
    elif isinstance(expected, list):
        assert isinstance(found, list), f"{path} is {found!r}"
        assert len(found) == len(expected), f"{path} is {found!r}, not {expected!r}"
        for index, value in enumerate(expected):
            matches(found[index], value, f"{path}.{index}")
    else:
        assert found == expected, f"{path} is {found!r}, not {expected!r}"


def described(error: BaseException) -> dict[str, Any]:
    """Returns an error as the table has it."""
    if isinstance(error, (Cancelled, asyncio.CancelledError)):
        return {"kind": "cancelled"}
    if isinstance(error, (ValueError, TypeError, ArithmeticError)):
        return {"kind": "invalid_argument"}
    assert isinstance(error, SvcError), f"{error!r} is another error"
    kinds = {ApiError: "api", TransportError: "transport", UnexpectedResponse: "unexpected_response"}
    kinds[TokensNotStored] = "tokens_not_stored"
    found: dict[str, Any] = {"kind": next(kind for base, kind in kinds.items() if isinstance(error, base))}
    found |= {name: getattr(error, name) for name in ("status", "code", "message", "request_id", "attempts")}
    found["retry_after_ms"] = None if error.retry_after is None else round(error.retry_after * 1000)
    if isinstance(error, ApiError):
        found |= {"field": error.field, "errors": plain(error.errors), "existing_id": error.existing_id}
    if isinstance(error, TransportError):
        found["transport"] = error.kind
    if isinstance(error, UnexpectedResponse):
        found["start"] = error.start
        assert len(error.start) <= 200
    assert str(error) and repr(error)
    return found


def fails_as(error: BaseException, expected: dict[str, Any]) -> None:
    """Checks that an error is the one that is expected."""
    assert set(expected) <= ERROR_FIELDS, expected
    found = described(error)
    wait = expected.get("retry_after_ms")
    if isinstance(wait, dict):
        assert wait["from"] <= found["retry_after_ms"] <= wait["to"], found
        expected = {name: value for name, value in expected.items() if name != "retry_after_ms"}
    matches(found, expected, "error")


def invoke(client: Any, extensions: Any, step: dict[str, Any], results: list[Any]) -> Any:
    """Makes the call of a step: returns its result, or an iterator. With async, what to await or iterate over."""
    call = step["call"]
    if call == "ping":
        return client.ping()
    if call in ("sync_events", "delivery", "replay_delivery", "bulk_replay", "webhook_deliveries", "replay_webhook"):
        if call == "sync_events":
            return extensions.sync_events(step["position"])
        if call == "webhook_deliveries":
            return extensions.deliveries(step["id"], step.get("filter"))
        if call == "replay_webhook":
            return extensions.replay(step["id"], typed(step["input"]))
        return getattr(extensions, call)(step["id"])
    collection = extensions.events if step["collection"] == "events" else getattr(client, step["collection"])
    record = results[step["record"]] if "record" in step else step.get("id")
    since = parsed(step["updated_since"]) if "updated_since" in step else None
    if call == "get":
        return collection.get(step["id"])
    if call == "get_if_changed":
        return collection.get_if_changed(record)
    if call == "create":
        return collection.create(typed(step["input"]), idempotency_key=step.get("idempotency_key"))
    if call == "update":
        return collection.update(record, typed(step["input"]))
    if call == "delete":
        return collection.delete(record)
    if call == "page":
        listed = {"limit": step.get("limit"), "cursor": step.get("cursor"), "updated_since": since}
        return collection.page(step.get("filter"), **listed)
    if call == "all":
        limit = {"limit": step["limit"]} if "limit" in step else {}
        return collection.list(step.get("filter"), updated_since=since, **limit)
    if call == "sync":
        return collection.sync(step["position"])
    raise AssertionError(f"no call is named {call}")


class Runner:
    """Runs the steps of one case with a client."""

    def __init__(self, client: Any, extensions: Any, is_async: bool) -> None:
        """Has what all steps share."""
        self.client, self.extensions, self.is_async = client, extensions, is_async
        self.results: list[Any] = []
        self.cancel: Callable[[], None] = lambda: None
        self.cancel_after = 0

    def on_request(self, count: int) -> None:
        """Cancels the call once the server has seen so many requests."""
        if self.cancel_after and count >= self.cancel_after:
            self.cancel()

    def run(self, steps: list[dict[str, Any]], unique: str) -> None:
        """Runs one step after the other."""
        for step in steps:
            assert set(step) <= STEP_FIELDS and ("result" in step) != ("error" in step), step
            step = self._resolved(step, unique)
            begun = time.monotonic()
            self.results.append(self._step(step))
            assert (time.monotonic() - begun) * 1000 <= step.get("within_ms", 60_000), "it took too long"

    def _step(self, step: dict[str, Any]) -> Any:
        self.cancel_after = step.get("cancel_after_requests", 0)
        partial: list[Any] = []
        if "repeat_until_error" in step:
            for _ in range(step["repeat_until_error"]):
                try:
                    self._call(step, partial)
                except SvcError as error:
                    return fails_as(error, step["error"])
            raise AssertionError("no call failed")
        try:
            results = self._parallel(step) if "parallel" in step else [self._call(step, partial)]
        except (Exception, Cancelled, asyncio.CancelledError) as error:
            if "error" not in step or isinstance(error, AssertionError):
                raise
            fails_as(error, step["error"])
            if "partial" in step:
                matches(plain(partial), step["partial"], "partial")
            return None
        assert "error" not in step, f"it returned {results}"
        for result in results:
            matches(plain(result), step["result"])
        return results[0]

    def _parallel(self, step: dict[str, Any]) -> list[Any]:
        if self.is_async:

            async def gather() -> list[Any]:
                calls = [invoke(self.client, self.extensions, step, self.results) for _ in range(step["parallel"])]
                return list(await asyncio.gather(*calls))

            return self.loop.run_until_complete(gather())
        with ThreadPoolExecutor(step["parallel"]) as pool:
            return list(pool.map(lambda _: self._call(step, []), range(step["parallel"])))

    def _call(self, step: dict[str, Any], partial: list[Any]) -> Any:
        if step["call"] == "receive":
            return self._receive(step)
        if self.is_async:
            return self.loop.run_until_complete(self._call_async(step, partial))
        thread = threading.get_ident()
        self.cancel = lambda: signal.pthread_kill(thread, signal.SIGUSR1)
        found = invoke(self.client, self.extensions, step, self.results)
        if not hasattr(found, "__next__"):
            return found
        for item in found:
            partial.append(item)
            if len(partial) == step.get("take"):
                break
        return partial

    async def _call_async(self, step: dict[str, Any], partial: list[Any]) -> Any:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task

        def cancel() -> None:
            loop.call_soon_threadsafe(task.cancel)

        self.cancel = cancel
        found = invoke(self.client, self.extensions, step, self.results)
        if not hasattr(found, "__anext__"):
            return await found
        async for item in found:
            partial.append(item)
            if len(partial) == step.get("take"):
                break
        return partial

    def _receive(self, step: dict[str, Any]) -> Any:
        received: Queue[tuple[dict[str, str], bytes]] = Queue()

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.put((dict(self.headers.items()), body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            webhook = {"url": f"http://127.0.0.1:{server.server_port}/svc", "events": step["events"]}
            created = self._call({"call": "create", "collection": "webhooks", "input": webhook}, [])
            self._call({"call": "create", "collection": "contacts", "input": step["trigger"]}, [])
            headers, body = received.get(timeout=30)
            server.shutdown()
        return Verifier(created.secret).event(headers, body)

    def _resolved(self, value: Any, unique: str) -> Any:
        """Returns a step with the results of earlier ones in place of their names."""
        if isinstance(value, list):
            return [self._resolved(it, unique) for it in value]
        if isinstance(value, dict):
            return {name: self._resolved(it, unique) for name, it in value.items()}
        if not isinstance(value, str):
            return value
        if re.fullmatch(r"\$[0-9]+(\.\w+)+", value):
            index, *path = value[1:].split(".")
            found = plain(self.results[int(index)])
            for name in path:
                found = found[int(name)] if name.isdigit() else found[name]
            return found
        return value.replace("{unique}", unique)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the case."""
        if not hasattr(self, "_loop"):
            self._loop = asyncio.new_event_loop()
        return self._loop


def load(path: str) -> Any:
    """Reads a table. Its floats are read as they are, since no result may have one."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)
