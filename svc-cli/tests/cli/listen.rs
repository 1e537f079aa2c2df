use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use svc_core::env::Env;
use svc_core::resources::crud;
use svc_core::values::{Secret, TenantId, parse_uuid};
use svc_core::webhooks::signatures;
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

use crate::harness::{Session, text, until};

const SECRET: &str = "whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=";
const OLD_SECRET: &str = "whsec_FXE7hanIybXwTvLAFfk4bZJjPTSZFkGlkzTgRNJBC+4=";

/// A running `svc listen`, which is killed when it is dropped.
pub(crate) struct Listening {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    first_line: String,
    address: String,
}

impl Listening {
    fn start(session: &Session, args: &[&str]) -> Self {
        Self::start_program(session.program(&[&["listen", "--port", "0"], args].concat()))
    }

    pub(crate) fn start_program(mut program: Command) -> Self {
        let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first_line = String::new();
        stdout.read_line(&mut first_line).unwrap();
        let address = first_line.trim_end().trim_end_matches("\"}").rsplit_once("http://").unwrap().1.to_owned();
        Self { child, stdout: Some(stdout), first_line, address }
    }

    /// Sends a request and returns the response.
    fn send(&self, head: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let length = body.len();
        write!(stream, "{head}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n").unwrap();
        // A request that is refused early is not read to its end.
        let _ = stream.write_all(body);
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        text(&response)
    }

    /// Posts a delivery as the server does.
    fn deliver(&self, body: &str, secret: &str) -> String {
        let signature = signatures::webhook_signature(&Secret::new(secret), body.as_bytes());
        let head = format!(
            "POST /hook HTTP/1.1\r\nContent-Type: application/json\r\nX-SVC-Event: contact.created\r\n\
             X-SVC-Delivery: 0195a3c8-0000-7000-8000-000000000006\r\nX-SVC-Attempt: 2\r\nX-SVC-Signature: {signature}"
        );
        self.send(&head, body.as_bytes())
    }

    /// Stops the program and returns what it printed after its first line. It prints a delivery before it responds.
    fn end(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut rest = String::new();
        self.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        rest
    }

    /// Interrupts the program as Ctrl-C does. Returns its exit code, what it printed after its first line, and its stderr.
    pub(crate) fn interrupt(mut self) -> (Option<i32>, String, String) {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let code = self.child.wait().unwrap().code();
        let (mut rest, mut errors) = (String::new(), String::new());
        self.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (code, rest, errors)
    }

    /// Stops the program and returns what it printed after its first line, one JSON document per line.
    fn end_json(self) -> Vec<Value> {
        self.end().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // The program is still running only if the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn body() -> String {
    let now = Env::system().now();
    format!(
        r#"{{"event":"contact.created","data":{{"id":"7","total":99.50}},"delivered_at":"{now}","tenant_id":"0195a3c8-0000-7000-8000-000000000001"}}"#
    )
}

#[test]
fn output_for_people() {
    let mut session = Session::new();
    let listening = Listening::start(&session, &["--secret", SECRET]);
    let responses = [
        listening.deliver(&body(), SECRET),
        listening.deliver(&body(), OLD_SECRET),
        listening.send("POST / HTTP/1.1", b"\x1b[2Jhello"),
        listening.send("POST / HTTP/1.1", &vec![b' '; (2 << 20) + 1]),
        listening.send("GET / HTTP/1.1", b""),
        listening.send("POST / HTTP/1.1\r\nX-SVC-Event: job.created\r\nX-SVC-Test: true", b"{}"),
    ];
    let statuses = responses.each_ref().map(|response| response.split(' ').nth(1).unwrap_or_default());
    assert_eq!([statuses[0], statuses[1], statuses[2], statuses[4]], ["204", "401", "401", "405"]);
    assert!(responses[4].to_lowercase().contains("allow: post"));
    let first = listening.first_line.clone();
    session.append("$ svc listen --port 0 --secret whsec_…\n").append(&first).append(&listening.end());
    let listening = Listening::start(&session, &["--secret", SECRET, "--json"]);
    let first = listening.first_line.clone();
    listening.deliver(&body(), SECRET);
    session
        .append("$ svc listen --port 0 --secret whsec_… --json\n")
        .append(&first)
        .append(&listening.end())
        .assert("listen");
}

#[test]
fn output_for_programs() {
    let session = Session::new();
    for print in ["--print-json", "--json"] {
        let listening = Listening::start(&session, &["--secret", SECRET, "--secret", OLD_SECRET, print]);
        let first: Value = serde_json::from_str(&listening.first_line).unwrap();
        assert_eq!(first["listening"], format!("http://{}", listening.address));
        listening.deliver(&body(), SECRET);
        listening.deliver(&body(), OLD_SECRET);
        listening.deliver(&body(), "whsec_other");
        let printed = listening.end_json();
        let verified: Vec<bool> = printed.iter().map(|line| line["verified"].as_bool().unwrap()).collect();
        assert_eq!(verified, [true, true, false]);
        let (good, bad) = (&printed[0], &printed[2]);
        assert_eq!((&good["error"], good["answered"].as_u64()), (&Value::Null, Some(204)));
        assert_eq!((good["event"].as_str(), good["attempt"].as_u64()), (Some("contact.created"), Some(2)));
        assert_eq!(good["delivery_id"], "0195a3c8-0000-7000-8000-000000000006");
        assert_eq!(good["body"]["data"]["total"], 99.5);
        assert!(good["age_ms"].as_i64().is_some() && good["received_at"].is_string());
        assert!(bad["error"].as_str().unwrap().contains("does not match"));
        assert_eq!(bad["answered"], 401);
    }
}

#[test]
fn deliveries_of_more_than_five_minutes_ago_are_refused_by_default() {
    let session = Session::new();
    let recorded = r#"{"event":"contact.created","data":{},"delivered_at":"2001-01-01T00:00:00.000000Z"}"#;
    let standard = |listening: &Listening, id: &str| {
        let at = Env::system().now().as_micros() / 1_000_000;
        let signature =
            signatures::standard_webhook_signature(&Secret::new(SECRET), "a", &at.to_string(), recorded.as_bytes());
        let headers = format!("webhook-id: {id}\r\nwebhook-timestamp: {at}\r\nwebhook-signature: {signature}");
        listening.send(&format!("POST / HTTP/1.1\r\n{headers}"), recorded.as_bytes())
    };
    let listening = Listening::start(&session, &["--secret", SECRET, "--json"]);
    assert!(listening.deliver(recorded, SECRET).starts_with("HTTP/1.1 401 "));
    assert!(standard(&listening, "a").starts_with("HTTP/1.1 204 "), "the age is that of the signature");
    assert!(standard(&listening, "b").starts_with("HTTP/1.1 401 "));
    let printed = listening.end_json();
    assert!(printed[0]["error"].as_str().unwrap().contains("more than the maximum age"), "{}", printed[0]);
    assert!(printed[2]["error"].as_str().unwrap().contains("does not match"), "{}", printed[2]);

    let listening = Listening::start(&session, &["--secret", SECRET, "--any-age"]);
    assert!(listening.deliver(recorded, SECRET).starts_with("HTTP/1.1 204 "));
}

#[test]
fn the_secret_can_come_from_the_environment() {
    let session = Session::new();
    let mut program = session.program(&["listen", "--port", "0"]);
    let mut child = program.env("SVC_WEBHOOK_SECRET", SECRET).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(first.starts_with("listening on http://127.0.0.1:"));
}

#[test]
fn fail_responds_with_the_given_status() {
    let session = Session::new();
    let listening = Listening::start(&session, &["--secret", SECRET, "--fail", "503", "--print-json"]);
    assert!(listening.deliver(&body(), SECRET).starts_with("HTTP/1.1 503 "));
    let printed = listening.end_json();
    assert_eq!((printed[0]["verified"].as_bool(), printed[0]["answered"].as_u64()), (Some(true), Some(503)));
}

/// Serves one request with this response. Returns the server's address and the request.
fn serve_once(response: &'static str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut chunk = [0; 4096];
        // The body of the request ends with a brace.
        while !request.ends_with(b"}") {
            let size = stream.read(&mut chunk).unwrap();
            request.extend_from_slice(&chunk[..size]);
        }
        stream.write_all(response.as_bytes()).unwrap();
        text(&request)
    });
    (address, served)
}

#[test]
fn requests_are_forwarded() {
    let session = Session::new();
    let (address, served) = serve_once(
        "HTTP/1.1 429 Too Many\r\nRetry-After: 30\r\nContent-Length: 5\r\nConnection: close\r\nX-App: 1\r\n\r\nlater",
    );
    let url = format!("{address}/webhooks?a=1");
    let listening = Listening::start(&session, &["--secret", SECRET, "--print-json", "--forward-to", &url]);
    let body = body();
    let response = listening.deliver(&body, SECRET).to_lowercase();
    assert!(response.starts_with("http/1.1 429 ") && response.ends_with("\r\n\r\nlater"), "{response}");
    assert!(response.contains("retry-after: 30") && response.contains("x-app: 1"), "{response}");

    let request = served.join().unwrap();
    let (head, passed) = request.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert_eq!(passed, body);
    assert!(head.starts_with("post /webhooks?a=1 http/1.1\r\n"), "{head}");
    for kept in
        [&format!("host: {address}"), "x-svc-attempt: 2", "x-svc-signature: sha256=", "content-type: application/json"]
    {
        assert_eq!(head.matches(kept).count(), 1, "{kept}: {head}");
    }
    assert!(!head.contains("connection: close"), "{head}");

    let printed = listening.end_json();
    assert_eq!((printed[0]["answered"].as_u64(), &printed[0]["forward_error"]), (Some(429), &Value::Null));
}

#[test]
fn a_path_is_forwarded_percent_encoded() {
    let session = Session::new();
    let (address, served) = serve_once("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    let url = format!("{address}/é?q=ü");
    let listening = Listening::start(&session, &["--secret", SECRET, "--print-json", "--forward-to", &url]);
    assert!(listening.deliver(&body(), SECRET).starts_with("HTTP/1.1 204 "));
    let request = served.join().unwrap();
    assert!(request.starts_with("POST /%C3%A9?q=%C3%BC HTTP/1.1\r\n"), "{request}");
}

#[test]
fn a_number_is_a_port_to_forward_to() {
    let session = Session::new();
    for path in ["", "/hook"] {
        let (address, served) = serve_once("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        let (_, port) = address.rsplit_once(':').unwrap();
        let url = format!("{port}{path}");
        let listening = Listening::start(&session, &["--secret", SECRET, "--print-json", "--forward-to", &url]);
        assert!(listening.deliver(&body(), SECRET).starts_with("HTTP/1.1 204 "));
        let request = served.join().unwrap().to_lowercase();
        let path = if path.is_empty() { "/" } else { path };
        assert!(request.starts_with(&format!("post {path} http/1.1\r\n")), "{request}");
        assert!(request.contains(&format!("host: localhost:{port}\r\n")), "{request}");
    }
}

#[test]
fn the_response_is_502_when_forwarding_fails() {
    let session = Session::new();
    // Port 1 is never assigned, and nothing listens on it.
    let listening = Listening::start(&session, &["--secret", SECRET, "--json", "--forward-to", "127.0.0.1:1"]);
    assert!(listening.deliver(&body(), SECRET).starts_with("HTTP/1.1 502 "));
    let printed = listening.end_json();
    assert_eq!((printed[0]["verified"].as_bool(), printed[0]["answered"].as_u64()), (Some(true), Some(502)));
    let reason = printed[0]["forward_error"].as_str().unwrap();
    assert!(reason.starts_with("no connection: "), "{reason}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_listen_successfully() {
    let session = Session::new();
    let listening = Listening::start(&session, &["--secret", SECRET]);
    assert_eq!(listening.interrupt().0, Some(0));
}

#[test]
fn listen_ends_successfully_when_stdout_is_closed() {
    let session = Session::new();
    let mut listening = Listening::start(&session, &["--secret", SECRET]);
    drop(listening.stdout.take());
    // The first delivery may still be printed: a process that another test is starting can hold the pipe open for a
    // moment.
    let status = until("its end", || {
        if let Ok(mut stream) = TcpStream::connect(&listening.address) {
            let _ = stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}");
            // The program responds, or it has ended.
            stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            let _ = stream.read(&mut [0; 64]);
        }
        listening.child.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(0));
}

#[test]
fn invalid_commands_are_refused() {
    let mut session = Session::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = session.output(&["listen", "--secret", SECRET, "--port", &port]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("Cannot listen on 127.0.0.1:"));
    session
        .run(&["listen"])
        .run(&["listen", "--secret", "NonLnCtITl6j9pp"])
        .run(&["listen", "--secret", "whsec_NonLn\n"])
        .run(&["listen", "--secret", SECRET, "--port", "70000"])
        .run(&["listen", "--secret", SECRET, "--fail", "200"])
        .run(&["listen", "--secret", SECRET, "--forward-to", "https://example.com/"])
        .run(&["listen", "--secret", SECRET, "--forward-to", "localhost:3000", "--fail", "500"])
        .assert("listen_refused");
}

fn only_account(session: &Session) -> TenantId {
    TenantId(parse_uuid(session.json(&["account", "list"])[0]["id"].as_str().unwrap()).unwrap())
}

/// Returns the only webhook of the database, with its secret.
fn own_webhook(session: &Session) -> WebhookSubscription {
    let listed = session.json(&["webhook", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let id = SubscriptionId::new(parse_uuid(listed[0]["id"].as_str().unwrap()).unwrap());
    let account = only_account(session);
    session.write((account, id), async |tx, &(account, id)| crud::get(tx, account, id).await)
}

fn webhooks(session: &Session) -> usize {
    session.json(&["webhook", "list"]).as_array().unwrap().len()
}

#[test]
fn without_a_secret_a_webhook_exists_as_long_as_the_command_runs() {
    let session = Session::new();
    session.account();
    let listening = Listening::start(&session, &["--events", "invoice.paid,stay.created"]);
    let body = &body();
    let webhook = own_webhook(&session);
    assert_eq!(webhook.url.as_str(), format!("http://{}", listening.address));
    assert_eq!(webhook.events.names(), ["invoice.paid", "stay.created"]);
    assert!(listening.deliver(body, webhook.secret.reveal()).starts_with("HTTP/1.1 204 "));
    assert!(listening.deliver(body, SECRET).starts_with("HTTP/1.1 401 "));
    let count = |kind: &str| session.json(&["trigger", kind])["deliveries"].as_array().unwrap().len();
    assert_eq!((count("stay.created"), count("invoice.paid")), (1, 1));
    let output = session.output(&["trigger", "contact.created"]);
    assert!(text(&output.stderr).contains("No webhook of the account subscribes to contact.created"), "{output:?}");
    // It is killed, so it cannot delete the webhook itself, which expires.
    listening.end();
    let expires_at = own_webhook(&session).expires_at.unwrap();
    assert!(expires_at.since(Env::system().now()) <= Duration::from_secs(60));
    let (account, id) = (only_account(&session), webhook.id);
    session.write((account, id), async |tx, &(account, id)| crud::delete::<WebhookSubscription>(tx, account, id).await);

    let listening = Listening::start(&session, &[]);
    assert_eq!(own_webhook(&session).events.names(), ["*"]);
    assert_eq!(listening.interrupt().0, Some(0));
    assert_eq!(webhooks(&session), 0, "it is deleted before the command ends");
}
