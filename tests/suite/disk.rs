//! What a failing fsync leaves behind, step by step: the server as a process on a disk that fails.

use std::path::PathBuf;

use http::StatusCode;
use serde_json::json;
use svc_tests::database::Database;
use svc_tests::disk::{FailingDisk, Failure};
use svc_tests::http::{Ask, Http};
use svc_tests::node::{Node, Program};
use svc_tests::tenant;

/// More than lie in the write-ahead log before it is brought into the main file.
const MANY: u32 = 400;

struct Bench {
    database: Database,
    disk: FailingDisk,
    program: Program,
    http: Http,
    key: String,
    _folder: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = FailingDisk::build(folder.path()).unwrap();
        let database = Database::new(None).unwrap();
        let (_, key) = tenant::make(&*database.open().await.unwrap()).await.unwrap();
        let file = Some(PathBuf::from(env!("CARGO_BIN_EXE_svc-server-tested")));
        let program = Program { file, log: "off", variables: disk.variables().into() };
        Self { database, disk, program, http: Http::default(), key, _folder: folder }
    }

    async fn start(&self) -> Node {
        self.program.start(&self.database, &["--no-rate-limit"]).await.unwrap()
    }

    async fn create(&self, node: &Node, name: &str) -> StatusCode {
        let body = json!({ "email": format!("{name}@example.com"), "first_name": "x".repeat(80) });
        self.http.send(node.address, &Ask::post("/contacts", &self.key, &body)).await.unwrap().status
    }

    async fn has(&self, node: &Node, name: &str) -> bool {
        let path = format!("/contacts?email={name}@example.com");
        let response = self.http.send(node.address, &Ask::get(&path, &self.key)).await.unwrap();
        assert_eq!(response.status, 200, "{}", response.body);
        !response.body["data"].as_array().unwrap().is_empty()
    }

    async fn cut_power(&self, node: Node) {
        node.kill().await.unwrap();
        self.disk.cut_power(&self.database.folder().unwrap()).unwrap();
    }
}

/// SQLite undoes a commit whose fsync fails, but leaves it in its log.
#[tokio::test]
async fn what_was_refused_does_not_come_back_after_a_kill() {
    let bench = Bench::new().await;
    let node = bench.start().await;
    assert_eq!(bench.create(&node, "before").await, 201);
    bench.disk.fail(Failure::Fsync).unwrap();
    assert_eq!(bench.create(&node, "refused").await, 503);
    assert!(bench.has(&node, "before").await && !bench.has(&node, "refused").await);
    node.kill().await.unwrap();
    bench.disk.heal();
    let node = bench.start().await;
    assert!(bench.has(&node, "before").await && !bench.has(&node, "refused").await);
    assert_eq!(bench.create(&node, "after").await, 201);
}

/// Whoever starts after a kill reads from the log what may never have reached the disk.
#[tokio::test]
async fn what_was_acknowledged_after_a_kill_hangs_on_nothing_that_was_lost() {
    let bench = Bench::new().await;
    let node = bench.start().await;
    // The log has begun.
    assert_eq!(bench.create(&node, "before").await, 201);
    bench.disk.fail(Failure::Fsync).unwrap();
    assert_eq!(bench.create(&node, "refused").await, 503);
    node.kill().await.unwrap();
    bench.disk.heal();
    let node = bench.start().await;
    assert_eq!(bench.create(&node, "after").await, 201);
    bench.cut_power(node).await;
    let node = bench.start().await;
    assert!(bench.has(&node, "after").await && !bench.has(&node, "refused").await);
}

/// A checkpoint that a reader cuts short leaves its fsync to the next one. When that fails, what the first one wrote is
/// lost, though SQLite counts it as written.
#[tokio::test]
async fn a_checkpoint_that_fails_is_made_again_from_its_beginning() {
    let bench = Bench::new().await;
    let node = bench.start().await;
    let many = async |name: &str| {
        for number in 0..MANY {
            assert_eq!(bench.create(&node, &format!("{name}{number}")).await, 201);
        }
    };
    many("a").await;
    {
        let reader = rusqlite::Connection::open(bench.database.folder().unwrap().join("svc.db")).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        reader.query_row("SELECT count(*) FROM contacts", [], |_| Ok(())).unwrap();
        many("b").await;
    }
    bench.disk.fail(Failure::Checkpoint).unwrap();
    many("c").await;
    bench.disk.heal();
    many("d").await;
    bench.cut_power(node).await;
    let checked = svc_store::check(&bench.database.url).await.unwrap();
    assert_eq!(checked.findings, []);
    let node = bench.start().await;
    for name in ["a", "b", "c", "d"] {
        assert!(bench.has(&node, &format!("{name}0")).await, "{name}");
        assert!(bench.has(&node, &format!("{name}{}", MANY - 1)).await, "{name}");
    }
}
