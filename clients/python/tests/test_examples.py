"""The examples and the README, with a server."""

# pyright: basic
from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from server import svc

from svc_client import Client, types

FOLDER = Path(__file__).parents[1]


@contextmanager
def uvicorn(module: str, folder: Path, environment: dict[str, str], port: int) -> Generator[subprocess.Popen[str], None, None]:
    """Serves an example."""
    command = [sys.executable, "-m", "uvicorn", f"{module}:app", "--port", str(port), "--app-dir", str(FOLDER / "examples")]
    # Its first line of output, once it is ready, is one of the log.
    with subprocess.Popen(
        command, cwd=folder, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stderr and program.stdout
        try:
            log: list[str] = []
            for line in program.stderr:
                log.append(line)
                if "Uvicorn running" in line:
                    break
            else:
                raise AssertionError("".join(log))
            yield program
        finally:
            program.terminate()


def free_port() -> int:
    """Returns a port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def test_the_nightly_sync_keeps_an_exact_copy(shared: dict[str, str], tmp_path: Path) -> None:
    client = Client(shared["SVC_URL"], shared["SVC_KEY"])
    ada = client.contacts.create({"email": "nightly@example.com"})
    command = [sys.executable, str(FOLDER / "examples" / "nightly_sync.py"), str(tmp_path / "copy.db")]

    def run() -> int:
        found = subprocess.run(command, env={**os.environ, **shared}, check=True, capture_output=True, text=True)
        return int(found.stdout.split()[0])

    def copied() -> dict[str, Any]:
        rows = sqlite3.connect(tmp_path / "copy.db").execute("SELECT id, record FROM records")
        return {id: json.loads(record) for id, record in rows}

    assert run() > 20
    everything = {it.id for it in client.contacts.list()} | {it.id for it in client.invoices.list()}
    everything |= {it.id for it in client.bookings.list()} | {it.id for it in client.quotes.list()}
    everything |= {it.id for it in client.jobs.list()}
    assert set(copied()) == everything and ada.id in everything
    # The last record of each kind comes once more.
    assert run() == 5
    client.contacts.update(ada, {"city": "Perth"})
    run()
    assert copied()[ada.id]["city"] == "Perth"
    client.contacts.delete(ada.id)
    run()
    assert ada.id not in copied()


def test_the_webhook_receiver_verifies_and_reads(shared: dict[str, str], tmp_path: Path) -> None:
    client, port = Client(shared["SVC_URL"], shared["SVC_KEY"]), free_port()
    webhook = client.webhooks.create({"url": f"http://127.0.0.1:{port}/", "events": ["contact.created"]})
    environment = {**shared, "SVC_WEBHOOK_SECRET": webhook.secret}
    with uvicorn("webhook_receiver", tmp_path, environment, port) as program:
        refused = httpx.post(f"http://127.0.0.1:{port}/", content=b"{}", headers={"X-SVC-Signature": "sha256=00"})
        assert refused.status_code == 401 and "X-SVC-Signature" in refused.text
        ada = client.contacts.create({"email": "receiver@example.com"})
        assert program.stdout
        lines = (line for line in program.stdout if line.startswith("contact."))
        assert next(lines) == f"contact.created {ada.id} receiver@example.com\n"
    client.webhooks.delete(webhook.id)


def test_the_app_is_connected_refreshed_and_disconnected(shared: dict[str, str], tmp_path: Path) -> None:
    port, svc_url = free_port(), shared["SVC_URL"]
    create = ["app", "create", "--name", "Planner", "--redirect-uri", "http://127.0.0.1/callback", "--scopes", "read", "--json"]
    made = json.loads(svc(shared, *create))
    environment = {"SVC_URL": svc_url, "SVC_CLIENT_ID": made["client_id"], "SVC_CLIENT_SECRET": made["client_secret"]}
    environment["SVC_REDIRECT_URI"] = f"http://127.0.0.1:{port}/callback"
    with uvicorn("oauth_app", tmp_path, environment, port), httpx.Client(timeout=30) as browser:
        home = f"http://127.0.0.1:{port}/"
        assert "Connect your account" in browser.get(home).text
        # The owner signs in to the dashboard and consents.
        signed_in = browser.post(f"{svc_url}/dashboard/sign-in", data={"token": shared["sign-in"]}, headers={"Origin": svc_url})
        assert signed_in.status_code == 303, signed_in.text
        url = browser.get(f"{home}connect").headers["location"]
        page = browser.get(url)
        fields = dict(re.findall('name="(csrf|account)" value="([^"]*)"', page.text))
        answer = browser.post(url, data={**fields, "decision": "allow"}, headers={"Origin": svc_url})
        assert answer.status_code == 303, answer.text
        connected = browser.get(answer.headers["location"], follow_redirects=True)
        assert "Contacts: " in connected.text and "@example" in connected.text, connected.text
        # An access token that is not valid is refreshed, stored and used.
        before = json.loads((tmp_path / "tokens.json").read_text())
        revoked = {"token": before["access_token"], "client_id": made["client_id"], "client_secret": made["client_secret"]}
        browser.post(f"{svc_url}/oauth/revoke", data=revoked).raise_for_status()
        assert "@example" in browser.get(home).text
        after = json.loads((tmp_path / "tokens.json").read_text())
        assert after["access_token"] != before["access_token"]
        # The end of the access.
        revoked["token"] = after["refresh_token"]
        browser.post(f"{svc_url}/oauth/revoke", data=revoked).raise_for_status()
        assert "Connect your account again" in browser.get(home).text
        assert not (tmp_path / "tokens.json").exists()


def test_the_code_of_the_readme_works(shared: dict[str, str]) -> None:
    blocks = re.findall("```python\n(.+?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, Any] = {}
    os.environ.update(shared)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    client: Client = names["client"]
    assert isinstance(client, Client) and isinstance(names["ada"], types.Contact)
