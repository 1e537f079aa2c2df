"""A server for tests that share one."""

# pyright: basic
from __future__ import annotations

from collections.abc import Generator

import pytest
from server import demo


@pytest.fixture(scope="session")
def shared() -> Generator[dict[str, str], None, None]:
    """What a server exports that several tests share, with apps and without rate limits."""
    with demo("--no-rate-limit", oauth=True) as exports:
        yield exports
