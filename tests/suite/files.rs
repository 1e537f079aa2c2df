//! What is specific to SQLite: its file, its write lock and its threads.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use serde_json::json;
use svc_core::env::Env;
use svc_core::store::{Access, Store, UnitOfWork};

use crate::harness::{Call, SeededServer};

/// While another process holds the write lock, reads continue and writes wait.
#[tokio::test]
async fn reads_continue_while_another_process_holds_the_write_lock() {
    let server = SeededServer::new();
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
    assert!(sent.as_mut().now_or_never().is_none(), "the write did not wait for the lock");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(sent.await.status, 201);
}

/// Reports, when it is dropped, whether its thread is panicking.
struct PanicProbe(std::sync::mpsc::Sender<bool>);

impl Drop for PanicProbe {
    fn drop(&mut self) {
        let _ = self.0.send(std::thread::panicking());
    }
}

/// The fields are dropped in this order.
struct LastHandle {
    _store: Arc<dyn Store>,
    _probe: PanicProbe,
}

/// A transaction may own the last handle of its store, for example after the client of its request has disconnected.
#[tokio::test]
async fn the_last_handle_may_be_dropped_with_a_transaction() {
    for access in [Access::Read, Access::Write] {
        let server = SeededServer::new();
        let (path, held) = (server.database.path(), Arc::clone(server.store()));
        let (report, reported) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (arrived, arrival) = tokio::sync::oneshot::channel();
        let (wait, arrived) = (Mutex::new(wait), Mutex::new(Some(arrived)));
        let last = LastHandle { _store: held, _probe: PanicProbe(report) };
        let work: UnitOfWork = Box::new(move |_| {
            let _ = &last;
            let _ = arrived.lock().unwrap().take().unwrap().send(());
            let _ = wait.lock().unwrap().recv();
            async { Ok(()) }.boxed()
        });
        let store = Arc::clone(server.store());
        let waiting = tokio::spawn(async move { store.run(access, "last", work).await });
        arrival.await.unwrap();
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        let SeededServer { server, database: _database, .. } = server;
        drop(server);
        go.send(()).unwrap();
        let panicking = tokio::task::spawn_blocking(move || reported.recv().unwrap()).await.unwrap();
        assert!(!panicking, "{access:?}");
        assert!(path.exists());
    }
}

/// Several nodes start at the same time on a database that does not exist yet.
#[test]
fn many_processes_can_create_one_database_at_the_same_time() {
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
