//! What is about SQLite: its file, its lock, its threads.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use serde_json::json;
use svc_core::env::Env;
use svc_core::store::{Access, Store, UnitOfWork};

use crate::harness::{Call, TestServer};

/// Another process holds the write lock: reads go on, and writes wait for it.
#[tokio::test]
async fn reads_go_on_while_another_process_writes() {
    let server = TestServer::new();
    let other = rusqlite::Connection::open(server.database.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE tenants SET name = 'held'").unwrap();
    server.expect(200, Call::get("/contacts")).await;
    let write = Call::post("/contacts", json!({ "email": "a@example.com" }));
    let sent = server.send(write);
    tokio::pin!(sent);
    assert!(sent.as_mut().now_or_never().is_none());
    for _ in 0..20 {
        assert_eq!(server.expect(200, Call::get("/contacts")).await.json()["data"].as_array().unwrap().len(), 1);
    }
    assert!(sent.as_mut().now_or_never().is_none(), "it waits for the lock");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(sent.await.status, 201);
}

/// Goes with a job, and tells whether its thread was panicking then.
struct Witness(std::sync::mpsc::Sender<bool>);

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.0.send(std::thread::panicking());
    }
}

/// Fields go in this order.
struct LastHandle {
    _store: Arc<dyn Store>,
    _witness: Witness,
}

/// A job may hold the last handle of its store, as those of a request do whose client has gone.
#[tokio::test]
async fn the_last_handle_may_go_with_a_job() {
    for access in [Access::Read, Access::Write] {
        let server = TestServer::new();
        let (path, held) = (server.database.path(), Arc::clone(&server.store));
        let (tell, told) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (arrived, arrival) = tokio::sync::oneshot::channel();
        let (wait, arrived) = (Mutex::new(wait), Mutex::new(Some(arrived)));
        let last = LastHandle { _store: held, _witness: Witness(tell) };
        let job: UnitOfWork = Box::new(move |_| {
            let _ = &last;
            let _ = arrived.lock().unwrap().take().unwrap().send(());
            let _ = wait.lock().unwrap().recv();
            async { Ok(()) }.boxed()
        });
        let store = Arc::clone(&server.store);
        let waiting = tokio::spawn(async move { store.run(access, "last", job).await });
        arrival.await.unwrap();
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        let TestServer { api, store, database: _database, .. } = server;
        drop((api, store));
        go.send(()).unwrap();
        let panicking = tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
        assert!(!panicking, "{access:?}");
        assert!(path.exists());
    }
}

/// Several nodes start at once on a database that none of them has made yet.
#[test]
fn many_can_open_a_fresh_database_at_once() {
    for round in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("svc.db");
        let barrier = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for node in 0..8 {
                let (path, barrier) = (&path, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let opened = svc_store::SqliteStore::open(path, Env::system());
                    assert!(opened.is_ok(), "round {round}, node {node}: {:?}", opened.err());
                });
            }
        });
    }
}
