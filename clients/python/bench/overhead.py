"""Measures the overhead of a call against plain httpx, in one run.

    export SVC_URL=http://127.0.0.1:8080 SVC_KEY=svc_live_…
    python overhead.py

It needs a server without rate limits (`--no-rate-limit`). Each round makes the same request with plain httpx, which parses the
JSON, and with the client, on connections that are open. Without a network, both get the response from memory, so that the rest
is their own work.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable

import httpx

from svc_client import AsyncClient, Client

ROUNDS, CALLS = 40, 25
URL, KEY = os.environ["SVC_URL"], os.environ["SVC_KEY"]
HEADERS = {"Authorization": f"Bearer {KEY}"}


def report(name: str, plain: list[float], ours: list[float]) -> None:
    """Prints the medians of the rounds."""
    before, after = statistics.median(plain) / CALLS * 1e6, statistics.median(ours) / CALLS * 1e6
    print(f"{name}: httpx {before:.0f} µs, svc-client {after:.0f} µs, ratio {after / before:.2f}")


def measured(call: Callable[[], object]) -> float:
    """Returns how long a round takes."""
    begun = time.perf_counter()
    for _ in range(CALLS):
        call()
    return time.perf_counter() - begun


async def measured_async(call: Callable[[], Awaitable[object]]) -> float:
    """Returns how long a round takes."""
    begun = time.perf_counter()
    for _ in range(CALLS):
        await call()
    return time.perf_counter() - begun


def main() -> None:
    """Measures one record and a page of 50, without async."""
    with Client(URL, KEY) as client, httpx.Client() as http:
        record = client.contacts.page(limit=1).data[0]
        calls: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
            (
                "one record, sync",
                lambda: http.get(f"{URL}/api/v1/contacts/{record.id}", headers=HEADERS).raise_for_status().json(),
                lambda: client.contacts.get(record.id),
            ),
            (
                "a page of 50 jobs, sync",
                lambda: http.get(f"{URL}/api/v1/jobs?limit=50", headers=HEADERS).raise_for_status().json(),
                lambda: client.jobs.page(limit=50),
            ),
        ]
        kept = http.get(f"{URL}/api/v1/contacts/{record.id}", headers=HEADERS)
        memory = httpx.Client(
            transport=httpx.MockTransport(lambda _: httpx.Response(200, headers=kept.headers, content=kept.content))
        )
        inside = Client(URL, KEY, http=memory)
        calls.append(
            (
                "one record, without a network",
                lambda: memory.get(f"{URL}/api/v1/contacts/{record.id}", headers=HEADERS).raise_for_status().json(),
                lambda: inside.contacts.get(record.id),
            )
        )
        for name, plain, ours in calls:
            rounds = [(measured(plain), measured(ours)) for _ in range(ROUNDS)]
            report(name, [it[0] for it in rounds], [it[1] for it in rounds])
    asyncio.run(main_async(record.id))


async def main_async(id: str) -> None:
    """Measures one record, with async."""
    async with AsyncClient(URL, KEY) as client, httpx.AsyncClient() as http:

        async def plain() -> object:
            response = await http.get(f"{URL}/api/v1/contacts/{id}", headers=HEADERS)
            return response.raise_for_status().json()

        async def ours() -> object:
            return await client.contacts.get(id)

        rounds = [(await measured_async(plain), await measured_async(ours)) for _ in range(ROUNDS)]
        report("one record, async", [it[0] for it in rounds], [it[1] for it in rounds])


if __name__ == "__main__":
    main()
