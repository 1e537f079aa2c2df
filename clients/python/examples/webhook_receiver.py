"""Receives webhooks with FastAPI: verifies each delivery, stores it in SQLite, responds, and reads the contact it is about.

A delivery has the record as it was at its event. The receiver reads it again, as deliveries come in no order, and two
changes of one contact then need no sorting.

    pip install ./clients/python fastapi uvicorn
    export SVC_URL=http://127.0.0.1:8080 SVC_KEY=svc_live_… SVC_WEBHOOK_SECRET=whsec_…
    uvicorn --app-dir clients/python/examples webhook_receiver:app --port 9000
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import BackgroundTasks, FastAPI, Request, Response

from svc_client import AsyncClient, types
from svc_client.error_classes import NotFound
from svc_client.webhooks import Verifier, VerifyError

# While the secret is being rotated, it takes both: Verifier(old, new).
verifier = Verifier(os.environ["SVC_WEBHOOK_SECRET"])
client = AsyncClient(os.environ["SVC_URL"], os.environ["SVC_KEY"])
inbox = sqlite3.connect("inbox.db")
inbox.execute("CREATE TABLE IF NOT EXISTS inbox (id PRIMARY KEY, kind, contact_id, is_done DEFAULT FALSE)")
working = asyncio.Lock()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    """Does what an earlier run has left, while deliveries arrive, and closes the connections at the end."""
    async with client:
        left = asyncio.create_task(work())
        yield
        await asyncio.gather(left, return_exceptions=True)


app = FastAPI(lifespan=lifespan)


@app.post("/")
async def receive(request: Request, tasks: BackgroundTasks) -> Response:
    """Stores a delivery. The work comes after the response."""
    body = await request.body()  # The bytes as they came: JSON that was parsed and written again has another signature.
    try:
        event = verifier.event(request.headers, body)
    except VerifyError as error:
        return Response(f"{error}\n", status_code=401)
    match event:
        case types.ContactCreatedEvent() | types.ContactUpdatedEvent() | types.ContactDeletedEvent():
            # The id is the same on every attempt and replay: a delivery that comes again is stored already.
            row = [request.headers["webhook-id"], event.event, event.data.id]
            with inbox:
                inbox.execute("INSERT OR IGNORE INTO inbox (id, kind, contact_id) VALUES (?, ?, ?)", row)
            tasks.add_task(work)
        case _:
            pass  # Kinds that this program does not know are no errors: more may be added.
    return Response(status_code=204)


async def work() -> None:
    """Does what is stored. After a failure it stays stored, and the next delivery or start tries again."""
    async with working:
        for id, kind, contact_id in inbox.execute("SELECT id, kind, contact_id FROM inbox WHERE NOT is_done").fetchall():
            await describe(kind, contact_id)
            with inbox:
                inbox.execute("UPDATE inbox SET is_done = TRUE WHERE id = ?", [id])


async def describe(kind: str, id: str) -> None:
    """Reads the contact as it is now."""
    try:
        contact = await client.contacts.get(id)
        print(f"{kind} {contact.id} {contact.email}", flush=True)
    except NotFound:
        print(f"{kind} {id} is deleted", flush=True)
