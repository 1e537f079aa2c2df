"""A svc-server of its own."""

# pyright: basic
from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAMS = Path(os.environ.get("SVC_PROGRAMS", ROOT / "target" / "debug"))


@contextmanager
def demo(*options: str, oauth: bool = False) -> Generator[dict[str, str], None, None]:
    """Starts a server with the extensions, and yields what it exports for the shell and the link to sign in."""
    if not (PROGRAMS / "svc-server").exists():
        missing = f"svc-server is missing in {PROGRAMS}; build it, or set SVC_PROGRAMS"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    port = 0
    if oauth:
        # The address of the service, which apps compare, is set before it starts.
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = (*options, "--oauth", "on", "--public-url", f"http://127.0.0.1:{port}")
    command = [str(PROGRAMS / "svc-server"), "--demo", "--extensions", "on", "--listen", f"127.0.0.1:{port}", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout
        exports: dict[str, str] = {}
        try:
            for line in server.stdout:
                exports |= dict(re.findall(r"export (\w+)=(\S+)", line))
                exports |= {name: it for name, it in re.findall(r"(sign-in)\?token=(\S+)", line)}
                if "Stop with Ctrl-C" in line:
                    break
            else:
                raise AssertionError("the server did not start")
            yield exports
        finally:
            server.terminate()


def svc(exports: dict[str, str], *command: str) -> bytes:
    """Runs the command line beside the database of a server, and returns what it printed."""
    found = subprocess.run([PROGRAMS / "svc", *command], env={**os.environ, **exports}, check=True, capture_output=True)
    return found.stdout
