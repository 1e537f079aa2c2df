//! The server program as operators start it: its output, log and exit codes.

use std::net::Ipv4Addr;
use std::ops::Deref;
use std::process::{ExitStatus, Stdio};

use http::Method;
use serde_json::{Value, json};
use svc_test_support::Fixture;
use svc_test_support::node::{self, Node};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::client::Connection;
use crate::harness::Response;

/// A running server process.
pub(crate) struct Program(Node);

impl Deref for Program {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.0
    }
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = node::command(env!("CARGO_BIN_EXE_svc-server-tested"));
    command.args(arguments).stderr(Stdio::piped());
    command
}

impl Program {
    /// Starts the server and waits until it prints its address.
    pub(crate) async fn start(command: Command) -> Self {
        let node = Node::start(command).await.unwrap();
        assert!(node.address.ip() == Ipv4Addr::LOCALHOST && node.address.port() != 0, "{}", node.address);
        Self(node)
    }

    async fn connect(&self) -> Connection {
        Connection::to(self.address).await
    }

    /// Sends a request and checks the response against the OpenAPI document.
    pub(crate) async fn send(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut request =
            format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let mut connection = self.connect().await;
        connection.write(format!("{request}\r\n{body}")).await;
        connection.response(method, target).await
    }

    /// Stops the server with a signal, and returns its exit status, the rest of stdout, and stderr.
    pub(crate) async fn stop(self, signal: &str) -> (ExitStatus, String, String) {
        self.0.stop_by(signal).await.unwrap()
    }

    /// Returns the guide that the demo prints.
    async fn guide(&mut self) -> String {
        let mut guide = String::new();
        while !guide.contains("Stop with Ctrl-C.") {
            let line = self.0.line().await.unwrap();
            assert!(!line.is_empty(), "{guide}");
            guide += &line;
        }
        guide
    }
}

pub(crate) fn database() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("svc.db").display());
    (folder, url)
}

#[tokio::test]
async fn a_signal_stops_the_server_with_exit_code_0() {
    for signal in ["TERM", "INT"] {
        let (_folder, url) = database();
        let program =
            Program::start(command(&["--listen", "127.0.0.1:0", "--database-url", &url, "--shutdown-grace", "10s"]))
                .await;
        for path in ["/healthz", "/readyz", "/api/v1/openapi.json"] {
            assert_eq!(program.send("GET", path, &[], "").await.status, 200, "{path}");
        }
        assert_eq!(program.send("GET", "/api/v1/ping", &[], "").await.status, 401);
        // An idle connection does not delay the stop.
        let mut idle = program.connect().await;
        idle.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
        idle.response("GET", "/healthz").await;
        let (status, rest, stderr) = program.stop(signal).await;
        assert_eq!((status.code(), rest.as_str()), (Some(0), ""), "{signal}: {stderr}");
        assert!(stderr.contains("stopped"), "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        assert!(idle.is_closed().await);
    }
}

/// Names and `:PORT` stand for several addresses, and the server accepts connections at each of them.
#[tokio::test]
async fn a_server_listens_on_all_addresses_of_a_name() {
    for (listen, start) in [("localhost:0", "listening on http://localhost:"), (":0", "listening on http://0.0.0.0:")] {
        let (_folder, url) = database();
        let flags = ["--listen", listen, "--ops-listen", listen, "--database-url", &url];
        let mut server = command(&flags).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).await.unwrap();
        let Some(port) = line.strip_prefix(start) else { panic!("{line:?}") };
        let port: u16 = port.trim_end().parse().unwrap();
        let mut hosts = vec![std::net::IpAddr::from([127, 0, 0, 1])];
        if listen == ":0" && std::net::TcpListener::bind("[::1]:0").is_ok() {
            hosts.push(std::net::Ipv6Addr::LOCALHOST.into());
        }
        for host in hosts {
            let mut connection = Connection::to((host, port).into()).await;
            connection.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
            assert_eq!(connection.response("GET", "/healthz").await.status, 200, "{listen} {host}");
        }
        server.kill().await.unwrap();
    }
}

#[tokio::test]
async fn the_health_check_of_an_image_finds_the_server_and_says_why_it_does_not() {
    let (folder, url) = database();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let file = folder.path().join("svc.toml");
    std::fs::write(&file, format!("ops-listen = ':{port}'\n")).unwrap();
    let check = async |arguments: &[&str]| {
        let output = command(&[&["healthcheck"], arguments].concat()).env("SVC_CONFIG", &file).output().await.unwrap();
        assert!(output.stdout.is_empty());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, reason) = check(&[]).await;
    assert_eq!((code, reason.lines().count()), (Some(1), 1), "{reason}");
    assert!(reason.starts_with(&format!("unhealthy: cannot connect to :{port}: Connection refused")), "{reason}");
    let mut server = command(&["--listen", "127.0.0.1:0", "--database-url", &url]);
    server.env("SVC_CONFIG", &file);
    let program = Program::start(server).await;
    for arguments in [&[][..], &["--ready"]] {
        assert_eq!(check(arguments).await, (Some(0), String::new()), "{arguments:?}");
    }
    program.stop("TERM").await;
}

#[tokio::test]
async fn a_key_file_that_others_can_read_is_warned_about() {
    use std::os::unix::fs::PermissionsExt as _;

    let (folder, url) = database();
    let stderr = async || {
        let program = Program::start(command(&["--listen", "127.0.0.1:0", "--database-url", &url])).await;
        program.stop("TERM").await.2
    };
    let warning = "other users may read or change the file of the secret key";
    assert!(!stderr().await.contains(warning));
    let key = folder.path().join("svc.db.key");
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(stderr().await.contains(warning));
}

/// Two servers start at the same time on a database that does not exist yet.
#[tokio::test]
async fn two_servers_can_create_and_share_a_database() {
    let (_folder, url) = database();
    let start = || Program::start(command(&["--listen", "127.0.0.1:0", "--database-url", &url]));
    let (one, two) = tokio::join!(start(), start());
    for program in [one, two] {
        assert_eq!(program.send("GET", "/readyz", &[], "").await.status, 200);
        assert_eq!(program.stop("TERM").await.0.code(), Some(0));
    }
}

#[tokio::test]
async fn options_can_be_set_by_environment_variables_and_in_a_file() {
    let (folder, url) = database();
    let file = folder.path().join("svc.toml");
    std::fs::write(&file, "listen = '127.0.0.1:0'\nrate-limit = 3\n").unwrap();
    let mut command = command(&[]);
    command.env("SVC_CONFIG", file).env("SVC_DATABASE_URL", &url).env("SVC_RATE_LIMIT", "2");
    let program = Program::start(command).await;
    let response = program.send("GET", "/api/v1/ping", &[], "").await;
    assert_eq!(response.header("x-ratelimit-limit"), Some("2"));
    program.stop("TERM").await;
}

#[tokio::test]
async fn a_server_that_cannot_start_prints_an_error_and_its_exit_code() {
    let (folder, url) = database();
    let not_a_database = folder.path().join("text.db");
    std::fs::write(&not_a_database, "This is no database, and far too short to be one.".repeat(100)).unwrap();
    let text = format!("sqlite://{}", not_a_database.display());
    let missing = format!("sqlite://{}", folder.path().join("no/such/folder/svc.db").display());
    for (code, arguments) in [
        (2, vec!["--listen", "nowhere"]),
        (2, vec!["--write-rate-limit", "invoices=5"]),
        (2, vec!["--rate-limit", "0"]),
        (2, vec!["--database-url", "mysql://localhost/svc"]),
        (2, vec!["--nonsense"]),
        (5, vec!["--listen", "127.0.0.1:0", "--database-url", &missing]),
        (5, vec!["--listen", "127.0.0.1:0", "--database-url", &text]),
        (1, vec!["--listen", "192.0.2.1:1", "--database-url", &url]),
    ] {
        let output = command(&arguments).output().await.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty() && !stderr.is_empty() && !stderr.contains("panicked"), "{stderr}");
    }
    let help = command(&["--help"]).output().await.unwrap();
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("Examples:"));
}

/// Splits a line into words as a shell does, with single quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    for c in line.trim().chars() {
        match c {
            '\'' => (quoted, any) = (!quoted, true),
            ' ' if !quoted => {
                if any {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            c => {
                word.push(c);
                any = true;
            }
        }
    }
    assert!(!quoted, "unclosed quote: {line}");
    words.push(word);
    words
}

/// Sends the request of a `curl` command, and returns its request line and the response.
async fn curl(program: &Program, line: &str) -> (String, Response) {
    let words = words(line);
    assert_eq!(words[..2], ["curl", "-s"]);
    let (mut url, mut headers, mut body) = (None, Vec::new(), None);
    let mut rest = words[2..].iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-H" => headers.push(rest.next().unwrap().split_once(": ").unwrap()),
            "-d" => body = rest.next(),
            address => assert!(url.replace(address.to_owned()).is_none(), "{line}"),
        }
    }
    let url = url.unwrap();
    let target = url.strip_prefix(&format!("http://{}", program.address)).unwrap();
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let body = body.map_or("", String::as_str);
    let response = program.send(method.as_str(), target, &headers, body).await;
    (format!("{method} {target}"), response)
}

#[tokio::test]
async fn the_commands_in_the_demo_guide_work() {
    let mut program = Program::start(command(&["--demo", "--listen", "127.0.0.1:0"])).await;
    let guide = program.guide().await;
    let mut tried = Vec::new();
    for line in guide.lines().filter(|line| line.trim().starts_with("curl ")) {
        let (request, response) = curl(&program, line).await;
        let json = response.json();
        let rows = json["data"].as_array().map(Vec::len);
        tried.push(format!(
            "{request} {}{}",
            response.status,
            rows.map(|rows| format!(" {rows} rows")).unwrap_or_default()
        ));
    }
    assert_eq!(
        tried,
        [
            "GET /api/v1/ping 200",
            "GET /api/v1/contacts?limit=3 200 3 rows",
            "GET /api/v1/invoices?status=paid&limit=2 200 2 rows",
            "POST /api/v1/contacts 201",
            "GET /api/v1/openapi.json 200",
        ]
    );
    let exported = |name| guide.lines().find_map(|line| line.strip_prefix("export ")?.strip_prefix(name)).unwrap();
    assert_eq!(exported("SVC_URL="), format!("http://{}", program.address));
    assert!(exported("SVC_DATABASE_URL=").starts_with("sqlite:///"), "{guide}");
    assert!(guide.contains(&format!("(account {})", exported("SVC_TENANT="))), "{guide}");
    let key = guide.lines().find_map(|line| line.strip_prefix("API key: ")).unwrap();
    assert_eq!(exported("SVC_KEY="), key);
    let authorization = format!("Bearer {key}");
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    for collection in ["contacts", "invoices", "quotes", "bookings", "jobs"] {
        let response = program.send("GET", &format!("/api/v1/{collection}"), &headers, "").await;
        assert!(!response.json()["data"].as_array().unwrap().is_empty(), "{collection}");
    }
    let local = json!({ "url": "http://127.0.0.1:9/hook", "events": ["stay.created"] }).to_string();
    assert_eq!(program.send("POST", "/api/v1/webhooks", &headers, &local).await.status, 201);
    let (status, ..) = program.stop("TERM").await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn a_demo_that_is_started_again_has_the_same_tenant_and_a_new_key() {
    let (_folder, url) = database();
    let mut guides = Vec::new();
    for _ in 0..2 {
        let mut program = Program::start(command(&["--demo", "--listen", "127.0.0.1:0", "--database-url", &url])).await;
        let guide = program.guide().await;
        let find = |name: &str| guide.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        let (tenant, key) = (find("export SVC_TENANT="), find("export SVC_KEY="));
        let authorization = format!("Bearer {key}");
        let list = program.send("GET", "/api/v1/jobs", &[("Authorization", &authorization)], "").await;
        guides.push((tenant, key, list.json()));
        program.stop("TERM").await;
    }
    let [(tenant, first, jobs), (same_tenant, second, same_jobs)] = &guides[..] else { panic!("{guides:?}") };
    assert_eq!((tenant, jobs), (same_tenant, same_jobs));
    assert_ne!(first, second);
}

/// Webhooks to private addresses are for development only.
#[tokio::test]
async fn private_webhook_addresses_require_their_flag() {
    for (flags, status) in [(&[][..], 400), (&["--allow-private-webhooks"][..], 201)] {
        let (_folder, url) = database();
        let all = [&["--listen", "127.0.0.1:0", "--database-url", url.as_str()], flags].concat();
        let store = svc_store::open(&url, svc_core::env::Env::system()).await.unwrap();
        let key = format!("Bearer {}", Fixture::on(store).await.key().await.text);
        let program = Program::start(command(&all)).await;
        let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
        let body = "{\"url\":\"http://127.0.0.1:9/\",\"events\":[\"stay.created\"]}";
        assert_eq!(program.send("POST", "/api/v1/webhooks", &headers, body).await.status, status);
        program.stop("TERM").await;
    }
}

#[tokio::test]
async fn the_log_is_json_and_contains_no_secret() {
    let mut command = command(&["--demo", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    command.env("SVC_LOG", "info,svc_server=trace,svc_core=trace,svc_store=trace");
    let mut program = Program::start(command).await;
    let guide = program.guide().await;
    let key = guide.lines().find_map(|line| line.strip_prefix("API key: ")).unwrap().to_owned();
    let authorization = format!("Bearer {key}");
    let good = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    let wrong = [("Authorization", "Bearer svc_live_WRONGKEY0000"), ("Cookie", "session=COOKIEVALUE")];
    let mut secrets = vec![key[9..].to_owned()];
    let contact = json!({ "email": "hidden.person@example.com", "first_name": "BODYVALUE" }).to_string();
    let idempotent = [good[0], good[1], ("Idempotency-Key", "IDEMPOTENCYVALUE")];
    let signed = [good[0], good[1], ("X-SVC-Signature", "sha256=SIGNATUREVALUE")];
    let hook = json!({ "url": "https://127.0.0.1:1/URLVALUE", "events": ["stay.created"] }).to_string();
    for (status, method, target, headers, body) in [
        (201, "POST", "/api/v1/contacts", &idempotent[..], contact.as_str()),
        (409, "POST", "/api/v1/contacts", &signed, &contact),
        (200, "GET", "/api/v1/contacts?email=hidden.person@example.com", &good, ""),
        (400, "GET", "/api/v1/contacts?token=QUERYVALUE", &good, ""),
        (400, "POST", "/api/v1/contacts", &good, "{\"email\":\"BODYVALUE"),
        (400, "POST", "/api/v1/contacts", &good, "{\"BODYVALUE\":1}"),
        (401, "GET", "/api/v1/contacts?token=QUERYVALUE", &wrong, ""),
        (404, "GET", "/nothing?token=QUERYVALUE", &wrong, ""),
        (201, "POST", "/api/v1/webhooks", &good, &hook),
    ] {
        let response = program.send(method, target, headers, body).await;
        assert_eq!(response.status, status, "{method} {target}: {}", response.text);
        if let Some(secret) = response.data()["secret"].as_str() {
            secrets.push(secret.trim_start_matches("whsec_").to_owned());
        }
    }
    assert_eq!(secrets.len(), 2);
    let (status, rest, log) = program.stop("TERM").await;
    assert_eq!(status.code(), Some(0));
    // The receiver of the demo says what it verified meanwhile.
    assert!(rest.lines().all(|line| line.ends_with(" received at /accounting: signature verified")), "{rest}");
    let tokens =
        ["WRONGKEY", "BODYVALUE", "QUERYVALUE", "COOKIEVALUE", "IDEMPOTENCYVALUE", "SIGNATUREVALUE", "URLVALUE"];
    secrets.extend(tokens.map(str::to_owned));
    secrets.extend(["hidden.person", "whsec_", "svc_live_", "Bearer", "?"].map(str::to_owned));
    for secret in secrets {
        assert!(!log.contains(&secret), "{secret} is in the log:\n{log}");
    }
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let requests: Vec<&Value> = lines.iter().filter(|line| line["target"] == "svc_server::access").collect();
    assert_eq!(requests.len(), 9, "each request has one line in the log");
    let first = requests[0];
    for name in ["timestamp", "level", "request_id", "tenant", "key", "peer", "micros"] {
        assert!(!first[name].is_null(), "{name}: {first}");
    }
    let logged = |line: &Value| json!([line["method"], line["path"], line["operation"], line["status"], line["code"]]);
    assert_eq!(logged(first), json!(["POST", "/api/v1/contacts", "createContact", 201, null]));
    assert_eq!(logged(requests[6]), json!(["GET", "/api/v1/contacts", "listContacts", 401, "invalid_key"]));
}

/// Every flag in the usage lines of the documentation must exist.
#[test]
fn flags_in_the_documentation_exist() {
    let command = <svc_server::program::config::Config as clap::CommandFactory>::command();
    let known: Vec<&str> = command.get_opts().filter_map(|flag| flag.get_long()).collect();
    let pages = [(include_str!("../../docs/operations/tls.md"), 3), (include_str!("../../svc-server/README.md"), 3)];
    for (readme, least) in pages {
        let lines = readme.lines().filter(|line| line.trim().starts_with("svc-server "));
        let flags = lines.flat_map(|line| line.split(" #").next().unwrap_or_default().split_whitespace());
        let flags: Vec<&str> = flags.filter_map(|word| word.strip_prefix("--")).collect();
        assert!(flags.len() >= least, "{flags:?}");
        assert!(flags.iter().all(|flag| known.contains(flag)), "{flags:?}");
    }
}
