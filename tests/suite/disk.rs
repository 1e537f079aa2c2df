//! Failing fsyncs step by step: a server process on a disk that fails, is killed or loses power, and starts again.

use std::path::PathBuf;

use http::StatusCode;
use serde_json::json;
use svc_test_support::database::Database;
use svc_test_support::disk::{FailingDisk, Failure};
use svc_test_support::http::{HttpClient, TestRequest};
use svc_test_support::node::{Node, Program};
use svc_test_support::tenant;

/// More commits than the write-ahead log holds before it is checkpointed.
const MANY: u32 = 800;

struct FailingServer {
    database: Database,
    disk: FailingDisk,
    program: Program,
    http: HttpClient,
    key: String,
    _folder: tempfile::TempDir,
}

impl FailingServer {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = FailingDisk::build(folder.path()).unwrap();
        let database = Database::new(None).unwrap();
        let (_, key) = tenant::make(&*database.open().await.unwrap()).await.unwrap();
        let file = Some(PathBuf::from(env!("CARGO_BIN_EXE_svc-server-tested")));
        let program = Program { file, log: "off", variables: disk.variables().into() };
        Self { database, disk, program, http: HttpClient::default(), key, _folder: folder }
    }

    async fn start(&self) -> Node {
        self.program.start(&self.database, &["--no-rate-limit"]).await.unwrap()
    }

    async fn create(&self, node: &Node, name: &str) -> StatusCode {
        let body = json!({ "email": format!("{name}@example.com"), "first_name": "x".repeat(80) });
        self.http.send(node.address, &TestRequest::post("/contacts", &self.key, &body)).await.unwrap().status
    }

    async fn has(&self, node: &Node, name: &str) -> bool {
        let path = format!("/contacts?email={name}@example.com");
        let response = self.http.send(node.address, &TestRequest::get(&path, &self.key)).await.unwrap();
        assert_eq!(response.status, 200, "{}", response.body);
        !response.body["data"].as_array().unwrap().is_empty()
    }

    async fn cut_power(&self, node: Node) {
        node.kill().await.unwrap();
        self.disk.cut_power(&self.database.folder().unwrap()).unwrap();
    }
}

/// When an fsync fails, SQLite rolls the commit back but leaves its pages in the log.
#[tokio::test]
async fn a_refused_write_does_not_appear_after_a_kill() {
    let fixture = FailingServer::new().await;
    let node = fixture.start().await;
    assert_eq!(fixture.create(&node, "before").await, 201);
    fixture.disk.fail(Failure::Fsync).unwrap();
    assert_eq!(fixture.create(&node, "refused").await, 503);
    assert!(fixture.has(&node, "before").await && !fixture.has(&node, "refused").await);
    node.kill().await.unwrap();
    fixture.disk.heal();
    let node = fixture.start().await;
    assert!(fixture.has(&node, "before").await && !fixture.has(&node, "refused").await);
    assert_eq!(fixture.create(&node, "after").await, 201);
}

/// A server that starts after a kill reads pages from the log that may never have reached the disk.
#[tokio::test]
async fn a_write_after_a_kill_does_not_depend_on_unsynced_pages() {
    let fixture = FailingServer::new().await;
    let node = fixture.start().await;
    // This creates the log.
    assert_eq!(fixture.create(&node, "before").await, 201);
    fixture.disk.fail(Failure::Fsync).unwrap();
    assert_eq!(fixture.create(&node, "refused").await, 503);
    node.kill().await.unwrap();
    fixture.disk.heal();
    let node = fixture.start().await;
    assert_eq!(fixture.create(&node, "after").await, 201);
    fixture.cut_power(node).await;
    let node = fixture.start().await;
    assert!(fixture.has(&node, "after").await && !fixture.has(&node, "refused").await);
}

/// A checkpoint that a reader interrupts leaves its fsync to the next checkpoint. If that fsync fails, the pages of
/// the first checkpoint are lost although SQLite counts them as written.
#[tokio::test]
async fn a_failed_checkpoint_is_repeated_from_the_start() {
    let fixture = FailingServer::new().await;
    let node = fixture.start().await;
    let many = async |name: &str| {
        for number in 0..MANY {
            assert_eq!(fixture.create(&node, &format!("{name}{number}")).await, 201);
        }
    };
    many("a").await;
    {
        let reader = rusqlite::Connection::open(fixture.database.folder().unwrap().join("svc.db")).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        reader.query_row("SELECT count(*) FROM contacts", [], |_| Ok(())).unwrap();
        many("b").await;
    }
    fixture.disk.fail(Failure::Checkpoint).unwrap();
    many("c").await;
    fixture.disk.heal();
    many("d").await;
    fixture.cut_power(node).await;
    let checked = svc_store::check(&fixture.database.url).await.unwrap();
    assert_eq!(checked.findings, []);
    let node = fixture.start().await;
    for name in ["a", "b", "c", "d"] {
        assert!(fixture.has(&node, &format!("{name}0")).await, "{name}");
        assert!(fixture.has(&node, &format!("{name}{}", MANY - 1)).await, "{name}");
    }
}
