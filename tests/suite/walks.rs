//! Following lists while other clients write (docs/contract.md, "Lists and incremental sync"): no row is skipped or
//! repeated, and every change is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::harness::{Call, SeededServer};

const ROWS: usize = 60;

async fn server_with_jobs() -> (Arc<SeededServer>, Vec<String>) {
    let server = SeededServer::new();
    let mut ids = vec![server.id("job_id")];
    for number in 1..ROWS {
        ids.push(server.expect(201, Call::post("/jobs", json!({ "title": format!("Job {number}") }))).await.id());
    }
    (Arc::new(server), ids)
}

/// Tasks that change rows throughout the list and create new ones until they are stopped.
struct Writers {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    tasks: Vec<JoinHandle<()>>,
}

impl Writers {
    fn start(server: &Arc<SeededServer>, ids: &[String]) -> Self {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let task = |seed: usize| {
            let (server, ids) = (Arc::clone(server), ids.to_vec());
            let (stop, written) = (Arc::clone(&stop), Arc::clone(&written));
            tokio::spawn(async move {
                for count in 1.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let id = &ids[(count * 37 + seed * 11) % ids.len()];
                    let body = json!({ "priority": format!("{seed}-{count}") });
                    server.expect(200, Call::patch(&format!("/jobs/{id}"), body)).await;
                    if count % 3 == 0 {
                        server.expect(201, Call::post("/jobs", json!({ "title": "New" }))).await;
                    }
                    written.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let tasks = (1..=2).map(task).collect();
        Self { stop, written, tasks }
    }

    /// Waits until one more write has completed, or all writers have ended.
    async fn progress(&self) {
        let before = self.written.load(Ordering::Relaxed);
        while self.written.load(Ordering::Relaxed) == before && self.tasks.iter().any(|task| !task.is_finished()) {
            tokio::task::yield_now().await;
        }
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    async fn end(&mut self) {
        self.stop();
        for task in self.tasks.drain(..) {
            task.await.unwrap();
        }
    }
}

/// Reads every page to the end, and waits for a concurrent write before each further page.
async fn walk(server: &SeededServer, query: &str, writers: Option<&Writers>, mut each: impl FnMut(&Value)) {
    let mut cursor = String::new();
    for _ in 0..10_000 {
        let page = server.expect(200, Call::get(&format!("/jobs?{query}{cursor}"))).await.json();
        page["data"].as_array().unwrap().iter().for_each(&mut each);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return,
        }
        if let Some(writers) = writers {
            writers.progress().await;
        }
    }
    panic!("{query} has no last page");
}

fn text(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn existing_rows_are_seen_exactly_once() {
    let (server, ids) = server_with_jobs().await;
    let mut writers = Writers::start(&server, &ids);
    for limit in [1, 7, 59] {
        let mut seen = Vec::new();
        let query = format!("limit={limit}");
        walk(&server, &query, Some(&writers), |row| seen.push((text(row, "created_at"), text(row, "id")))).await;
        assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "rows must be newest first and not repeated");
        let seen: BTreeSet<String> = seen.into_iter().map(|(_, id)| id).collect();
        assert!(ids.iter().all(|id| seen.contains(id)), "a row was skipped");
    }
    writers.end().await;
}

/// A client that syncs while others write has the last version of every row in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_that_follows_changes_misses_none() {
    let (server, ids) = server_with_jobs().await;
    let mut writers = Writers::start(&server, &ids);
    let mut copy: BTreeMap<String, Value> = BTreeMap::new();
    let (mut since, mut rows, mut ended) = ("2026-03-14T00:00:00Z".to_owned(), 0, false);
    // Each walk starts at the last change of the one before. The last walk starts after the last write.
    loop {
        let mut last = String::new();
        walk(&server, &format!("updated_since={since}&limit=7"), Some(&writers), |row| {
            let at = text(row, "updated_at");
            assert!(at > last, "changes must be oldest first and not repeated");
            last = at;
            rows += 1;
            copy.insert(text(row, "id"), row.clone());
            if rows > 4 * ROWS {
                writers.stop();
            }
        })
        .await;
        since = last;
        if ended {
            break;
        }
        if rows > 4 * ROWS {
            writers.end().await;
            ended = true;
        }
    }
    let mut truth = BTreeMap::new();
    walk(&server, "limit=200", None, |row| {
        truth.insert(text(row, "id"), row.clone());
    })
    .await;
    assert!(truth.len() > ROWS && copy == truth);
}

/// A row that changes after it was read appears again, with its change.
#[tokio::test]
async fn a_changed_row_appears_again() {
    let (server, ids) = server_with_jobs().await;
    let query = "updated_since=2026-03-14T00:00:00Z&limit=20";
    let first = server.expect(200, Call::get(&format!("/jobs?{query}"))).await.json();
    assert_eq!(text(&first["data"][0], "id"), ids[0]);
    server.expect(200, Call::patch(&format!("/jobs/{}", ids[0]), json!({ "priority": "high" }))).await;
    let mut rest = Vec::new();
    let mut cursor = text(&first, "next_cursor");
    while !cursor.is_empty() {
        let page = server.expect(200, Call::get(&format!("/jobs?{query}&cursor={cursor}"))).await.json();
        rest.extend(page["data"].as_array().unwrap().clone());
        cursor = text(&page, "next_cursor");
    }
    assert_eq!(rest.len(), ROWS - 20 + 1);
    let last = rest.last().unwrap();
    assert_eq!((text(last, "id"), text(last, "priority")), (ids[0].clone(), "high".to_owned()));
}

/// Rows that are deleted during a walk are left out, and no other row is.
#[tokio::test]
async fn deletions_during_a_walk_skip_no_other_row() {
    let server = SeededServer::new();
    let mut ids = Vec::new();
    for number in 0..30 {
        let body = json!({ "email": format!("p{number}@example.com") });
        ids.push(server.expect(201, Call::post("/contacts", body)).await.id());
    }
    ids.reverse();
    let first = server.expect(200, Call::get("/contacts?limit=10")).await.json();
    // The last row of the page, the next row, and one in the middle of the remaining rows.
    for gone in [9, 10, 20] {
        server.expect(204, Call::delete(&format!("/contacts/{}", ids[gone]))).await;
    }
    let cursor = text(&first, "next_cursor");
    let rest = server.expect(200, Call::get(&format!("/contacts?limit=200&cursor={cursor}"))).await.json();
    let rest: Vec<String> = rest["data"].as_array().unwrap().iter().map(|row| text(row, "id")).collect();
    let mut want: Vec<String> = ids[11..].iter().filter(|id| **id != ids[20]).cloned().collect();
    want.push(server.id("contact_id"));
    assert_eq!(rest, want);
}
