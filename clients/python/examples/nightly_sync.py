"""Keeps a copy of an account in a SQLite file.

Start it every night. The first run reads everything, and each later one what changed since. It can be killed at any time: the
next run goes on where the copy ends.

    export SVC_URL=http://127.0.0.1:8080 SVC_KEY=svc_live_…
    python clients/python/examples/nightly_sync.py copy.db
"""

import json
import os
import sqlite3
import sys
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from svc_client import Bookings, Client, Contacts, Invoices, Jobs, Quotes, SyncPosition


def text(value: Any) -> str:
    """Returns what JSON has no form for: times, dates, and amounts, which stay exact as text."""
    return value.astimezone(timezone.utc).isoformat() if isinstance(value, datetime) else str(value)


def sync(copy: sqlite3.Connection, name: str, collection: Contacts | Invoices | Bookings | Quotes | Jobs) -> int:
    """Brings the copy of one kind of records up to date. Returns how many changes were read."""
    stored = copy.execute("SELECT position FROM positions WHERE name = ?", [name]).fetchone()
    position: SyncPosition | None = json.loads(stored[0]) if stored else None
    changes = 0
    for page in collection.sync(position):
        with copy:  # One transaction: the records, and how far they go.
            for record in page.records:
                if getattr(record, "deleted_at", None):
                    copy.execute("DELETE FROM records WHERE name = ? AND id = ?", [name, record.id])
                else:
                    row = [name, record.id, json.dumps(asdict(record), default=text)]
                    copy.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", row)
            copy.execute("INSERT OR REPLACE INTO positions VALUES (?, ?)", [name, json.dumps(page.position)])
        changes += len(page.records)
    return changes


def main() -> None:
    """Brings the whole copy up to date."""
    copy = sqlite3.connect(sys.argv[1])
    copy.execute("CREATE TABLE IF NOT EXISTS records (name, id, record, PRIMARY KEY (name, id))")
    copy.execute("CREATE TABLE IF NOT EXISTS positions (name PRIMARY KEY, position)")
    with Client(os.environ["SVC_URL"], os.environ["SVC_KEY"]) as client:
        changes = sync(copy, "contacts", client.contacts)
        changes += sync(copy, "invoices", client.invoices)
        changes += sync(copy, "bookings", client.bookings)
        changes += sync(copy, "quotes", client.quotes)
        changes += sync(copy, "jobs", client.jobs)
    print(f"{changes} changes")


if __name__ == "__main__":
    main()
