"""A server that responds as the script of a case says, and checks the requests."""

# pyright: basic
from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qsl, urlsplit

CASE_FIELDS = {"name", "client", "server", "script", "routes", "steps", "waits_ms", "stored"}
REQUEST_FIELDS = {"request", "query", "headers", "json", "text", "form", "signed", "repeat", "count", "barrier", "respond"}
RESPONSE_FIELDS = {"status", "headers", "body", "json", "text", "problem", "fault"}
FAULTS = {None, "close", "truncate", "hang", "stall", "flood"}


@dataclass
class Received:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def read_request(stream: socket.socket) -> Received | None:
    """Reads a request, or returns None if the connection ends before."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = stream.recv(65536)
        if not chunk:
            return None
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    line, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    headers = dict(pairs)
    assert len(headers) == len(pairs), f"a header comes twice: {pairs}"
    while len(body) < int(headers.get("content-length", "0")):
        body += stream.recv(65536)
    return Received(method, target, headers, body)


@dataclass
class HostileServer:
    """Serves a script in its order, or routes in any order."""

    table: dict[str, Any]
    case: dict[str, Any]
    on_request: Callable[[int], None] = lambda count: None
    errors: list[str] = field(default_factory=list[str])
    count: int = 0
    names: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        assert set(self.case) <= CASE_FIELDS, set(self.case) - CASE_FIELDS
        entries: list[dict[str, Any]] = self.case.get("script") or self.case.get("routes") or []
        for entry in entries:
            respond = entry["respond"]
            assert set(entry) <= REQUEST_FIELDS and set(respond) <= RESPONSE_FIELDS and respond.get("fault") in FAULTS, entry
        self.script = [entry for entry in self.case.get("script") or [] for _ in range(entry.get("repeat", 1))]
        self.routes: list[dict[str, Any]] | None = self.case.get("routes")
        self.taken = [0 for _ in self.routes or []]
        self.barriers = [threading.Barrier(entry.get("count", 1)) for entry in self.routes or []]
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        if self.case.get("server") == "absent":
            self.listener.close()
            return
        assert "server" not in self.case
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Ends the server, and checks that it was asked for everything."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        assert not self.errors, self.errors
        assert not self.script, f"{len(self.script)} requests are left over: {self.script[0]}"
        for taken, entry in zip(self.taken, self.routes or [], strict=True):
            assert taken == entry.get("count", taken), f"{taken} requests of {entry}"

    def _accept(self) -> None:
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[stream], daemon=True).start()

    def _serve(self, stream: socket.socket) -> None:
        # A client that is cancelled or has read enough closes the connection in between.
        with stream, contextlib.suppress(ConnectionError):
            request = read_request(stream)
            if request is None:
                return
            try:
                respond, wait = self._next(request)
            except (AssertionError, IndexError, ValueError) as error:
                self.errors.append(f"{request}: {error!r}")
                stream.sendall(b"HTTP/1.1 599 Unexpected request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            if wait:
                wait.wait(timeout=30)
            self._respond(stream, respond)

    def _next(self, request: Received) -> tuple[dict[str, Any], threading.Barrier | None]:
        with self.lock:
            self.count += 1
            if self.routes is None:
                entry = self.script.pop(0)
                self._check(entry, request)
                return entry["respond"], None
            for index, entry in enumerate(self.routes):
                try:
                    self._check(entry, request)
                except AssertionError:
                    continue
                self.taken[index] += 1
                assert self.taken[index] <= entry.get("count", self.taken[index]), "it came too often"
                return entry["respond"], self.barriers[index] if entry.get("barrier") else None
            raise AssertionError("no route is for it")

    def _check(self, entry: dict[str, Any], request: Received) -> None:
        url = urlsplit(request.target)
        assert f"{request.method} {url.path}" == entry["request"], entry["request"]
        if "query" in entry:
            pairs = parse_qsl(url.query, keep_blank_values=True)
            assert len(dict(pairs)) == len(pairs) and dict(pairs) == entry["query"], f"{pairs}, not {entry['query']}"
        for name, value in entry.get("headers", {}).items():
            found = request.headers.get(name)
            if value is not None and value.startswith("$"):
                assert found is not None, f"there is no {name}"
                known = self.names.setdefault(value, found)
                assert known == found, f"{name} is {found}, not {known}"
                assert len(set(self.names.values())) == len(self.names), f"{value} is that of another name: {self.names}"
            else:
                assert found == value, f"{name} is {found!r}, not {value!r}"
        if "json" in entry:
            assert json.loads(request.body) == entry["json"], request.body
        if "text" in entry:
            assert request.body.decode() == entry["text"], request.body
        if "form" in entry:
            assert dict(parse_qsl(request.body.decode(), strict_parsing=True)) == entry["form"], request.body
        if entry.get("signed"):
            secret = self.case["client"]["signing_secret"]
            timestamp, digest = request.headers["x-svc-timestamp"], hashlib.sha256(request.body).hexdigest()
            lines = "\n".join([timestamp, request.method, request.target, digest])
            mac = hmac.new(secret.encode(), lines.encode(), hashlib.sha256).hexdigest()
            assert request.headers["x-svc-signature"] == f"sha256={mac}", "the signature is wrong"

    def _respond(self, stream: socket.socket, respond: dict[str, Any]) -> None:
        fault = respond.get("fault")
        if fault == "hang":
            self.on_request(self.count)
            stream.recv(1)
        if fault in ("close", "hang"):
            return
        headers = dict(respond.get("headers", {}))
        if "problem" in respond:
            body = json.dumps({"error": "It is wrong.", "code": respond["problem"]}).encode()
            headers.setdefault("x-request-id", "req-7")
        elif "text" in respond:
            body = respond["text"].encode()
        elif "body" in respond:
            body = json.dumps(self.table["bodies"][respond["body"]]).encode()
        else:
            body = json.dumps(respond["json"]).encode() if "json" in respond else b""
        headers.setdefault("content-type", "application/json")
        headers["connection"] = "close"
        if fault != "flood" and respond.get("status") not in (204, 304):
            headers["content-length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        stream.sendall(f"HTTP/1.1 {respond.get('status', 200)} Status\r\n{head}\r\n".encode())
        if fault == "flood":
            for _ in range(1024):
                stream.sendall(b" " * 65536)
        else:
            stream.sendall(body[: len(body) // 2] if fault in ("truncate", "stall") else body)
        self.on_request(self.count)
        if fault == "stall":
            stream.recv(1)


class LossyProxy:
    """Forwards requests to a server, and closes the connection in place of the first responses."""

    def __init__(self, upstream: str, lost: int) -> None:
        """Loses so many responses."""
        self.upstream, self.lost = urlsplit(upstream), lost
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Ends the proxy, and checks that it lost as many responses as it should."""
        self.listener.close()
        assert self.lost <= 0, f"{self.lost} responses were not lost"

    def _accept(self) -> None:
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            with stream:
                request = read_request(stream)
                if request is None:
                    continue
                headers = request.headers | {"connection": "close"}
                head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                with socket.create_connection((self.upstream.hostname or "", self.upstream.port or 0)) as server:
                    server.sendall(f"{request.method} {request.target} HTTP/1.1\r\n{head}\r\n".encode() + request.body)
                    response = b"".join(iter(lambda: server.recv(65536), b""))
                self.lost -= 1
                if self.lost < 0:
                    stream.sendall(response)


def http_date(seconds: float) -> str:
    """Returns a time as a header has it."""
    return formatdate(seconds, usegmt=True)
