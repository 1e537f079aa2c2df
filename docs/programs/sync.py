"""Keeps a copy of an account in a SQLite file (docs/sync.md)."""

import json, os, sqlite3, sys, time, urllib.error, urllib.parse, urllib.request

COLLECTIONS = ["contacts", "invoices", "bookings", "quotes", "jobs"]

def fetch(collection, query):
    url = f"{os.environ['SVC_URL']}/api/v1/{collection}?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {os.environ['SVC_KEY']}"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                sys.exit(f"{url}: {error.code} {error.read().decode()}")
            time.sleep(int(error.headers.get("Retry-After", "1")))

def sync(copy, collection):
    saved = copy.execute("SELECT since FROM progress WHERE collection = ?", [collection]).fetchone()
    query = {"updated_since": saved[0] if saved else "1970-01-01T00:00:00Z", "limit": 200}
    if collection == "contacts":
        query["include_deleted"] = "true"
    while True:
        page = fetch(collection, query)
        with copy:  # one transaction: the records, and how far they go
            for record in page["data"]:
                row = [collection, record["id"], json.dumps(record)]
                copy.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", row)
            if page["data"]:
                row = [collection, page["data"][-1]["updated_at"]]
                copy.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", row)
        if page["next_cursor"] is None:
            return
        query["cursor"] = page["next_cursor"]

def main():
    copy = sqlite3.connect(sys.argv[1])
    copy.execute("CREATE TABLE IF NOT EXISTS records (collection, id, record, PRIMARY KEY (collection, id))")
    copy.execute("CREATE TABLE IF NOT EXISTS progress (collection PRIMARY KEY, since)")
    for collection in COLLECTIONS:
        sync(copy, collection)

if __name__ == "__main__":
    main()
