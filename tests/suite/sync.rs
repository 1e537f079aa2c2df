//! The script docs/programs/sync.py, which keeps a copy of an account in sync.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::ListeningServer;
use crate::harness::{Call, SeededServer};
use crate::python;

/// Makes pages small, and kills the script when it has read as many pages as `PAGES` says, before it stores the last one.
const DRIVER: &str = "
pages, read = int(os.environ['PAGES']), fetch
def fetch(collection, query):
    global pages
    page = read(collection, {**query, 'limit': 7})
    pages -= 1
    if pages < 0:
        os._exit(9)
    return page
main()
";

/// Runs the script until it is killed after this many pages. Returns whether it ended by itself, or `None` without Python.
async fn run(server: &ListeningServer, copy: &Path, pages: usize) -> Option<bool> {
    let program = include_str!("../../docs/programs/sync.py").replace("if __name__ == \"__main__\":\n    main()\n", "");
    let (url, key) = (format!("http://{}", server.address), server.inner.key("read").text.clone());
    let (copy, pages) = (copy.to_str().unwrap().to_owned(), pages.to_string());
    let output = tokio::task::spawn_blocking(move || {
        let variables = [("SVC_URL", url.as_str()), ("SVC_KEY", &key), ("PAGES", &pages)];
        python::run(&format!("{program}{DRIVER}"), &[&copy], &variables, b"")
    });
    let output = output.await.unwrap()?;
    match output.status.code() {
        Some(0) => Some(true),
        Some(9) => Some(false),
        _ => panic!("{}", String::from_utf8_lossy(&output.stderr)),
    }
}

type Records = BTreeMap<(String, String), Value>;

/// Returns what the copy has.
fn copied(copy: &Path) -> Records {
    let copy = rusqlite::Connection::open(copy).unwrap();
    let mut select = copy.prepare("SELECT collection, id, record FROM records").unwrap();
    let rows = select.query_map([], |row| {
        Ok(((row.get(0)?, row.get(1)?), serde_json::from_str(&row.get::<_, String>(2)?).unwrap()))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Returns what the account has, deleted contacts included.
async fn held(server: &SeededServer) -> Records {
    let mut records = Records::new();
    for collection in ["contacts", "invoices", "bookings", "quotes", "jobs"] {
        let deleted = if collection == "contacts" { "&include_deleted=true" } else { "" };
        let list = server.expect(200, Call::get(&format!("/{collection}?limit=200{deleted}"))).await.json();
        assert_eq!(list["next_cursor"], Value::Null);
        for record in list["data"].as_array().unwrap() {
            records.insert((collection.to_owned(), record["id"].as_str().unwrap().to_owned()), record.clone());
        }
    }
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_of_the_documentation_keeps_an_exact_copy() {
    let server = ListeningServer::new(SeededServer::new()).await;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    let mut contacts = Vec::new();
    for number in 0..25 {
        let contact = json!({ "email": format!("{number}@example.com") });
        contacts.push(server.inner.expect(201, Call::post("/contacts", contact)).await.id());
    }
    let first = contacts.pop().unwrap();
    server.inner.expect(204, Call::delete(&format!("/contacts/{first}"))).await;
    // Each run is killed a page later than the one before it, and records change between the runs.
    for pages in 0.. {
        let Some(finished) = run(&server, &copy, pages).await else { return };
        if finished {
            break;
        }
        let changed = &contacts[pages % contacts.len()];
        server
            .inner
            .expect(200, Call::patch(&format!("/contacts/{changed}"), json!({ "city": pages.to_string() })))
            .await;
        server.inner.expect(201, Call::post("/jobs", json!({ "title": format!("Job {pages}") }))).await;
    }
    assert_eq!(copied(&copy), held(&server.inner).await);

    let gone = contacts.pop().unwrap();
    server.inner.expect(204, Call::delete(&format!("/contacts/{gone}"))).await;
    assert_ne!(copied(&copy), held(&server.inner).await);
    assert_eq!(run(&server, &copy, 100).await, Some(true));
    let copied = copied(&copy);
    assert_eq!(copied, held(&server.inner).await);
    assert_ne!(copied[&("contacts".to_owned(), gone)]["deleted_at"], Value::Null);
}
