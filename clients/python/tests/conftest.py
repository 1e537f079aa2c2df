"""A server for tests that share one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from server import demo


@pytest.fixture(scope="session")
def shared() -> Iterator[dict[str, str]]:
    """What a server exports that several tests share, with apps and without rate limits."""
    with demo("--no-rate-limit", oauth=True) as exports:
        yield exports
