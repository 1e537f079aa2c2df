//! The commands of docs/oauth.md as they stand there, and the programs that it links to.

use std::process::Stdio;
use std::time::Duration;

use http::header::{LOCATION, ORIGIN, SET_COOKIE};
use http::{Request, StatusCode};
use serde_json::Value;
use svc_core::input::Input as _;
use svc_core::resources::contacts::ContactCreate;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::{Authentication, NODE_MODULES, Running, folder_of_node, installed, send, text};

const PAGE: &str = include_str!("../../../docs/oauth.md");
const WEB_APP: &str = include_str!("../../../docs/programs/oauth_app.py");
const PROGRAM: &str = include_str!("../../../docs/programs/oauth_program.mts");
/// The longest time that a program takes for a step.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the blocks of a language in the part for developers, in their order.
fn blocks(language: &str) -> Vec<&'static str> {
    let part = PAGE.split("\n## ").find(|part| part.starts_with("For developers of apps\n")).unwrap();
    let blocks = part.split("\n```").filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    blocks.collect()
}

async fn within<F: Future>(step: F) -> F::Output {
    tokio::time::timeout(PATIENCE, step).await.unwrap()
}

async fn line(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    within(lines.next_line()).await.unwrap().unwrap_or_else(|| panic!("the program has ended"))
}

fn stdout(child: &mut Child) -> Lines<BufReader<ChildStdout>> {
    BufReader::new(child.stdout.take().unwrap()).lines()
}

async fn with_contact() -> Running {
    let server = Running::start().await;
    let contact = ContactCreate::from_body(br#"{"email": "ada@example.com"}"#).unwrap();
    server.svc.account(server.tenant).contacts().create(contact).await.unwrap();
    server
}

/// Revokes the access token in the file of a program, so that the program has to refresh.
async fn revoke_access(server: &Running, file: &std::path::Path, credentials: &str) -> Value {
    let tokens: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let form = format!("{credentials}&token={}", tokens["access_token"].as_str().unwrap());
    let request = Request::post(format!("{}/oauth/revoke", server.issuer));
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(form).unwrap();
    assert_eq!(send(request).await.status(), StatusCode::OK);
    tokens
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_page_are_the_whole_flow() {
    let server = with_contact().await;
    let new = server.register(Authentication::Basic, "https://app.example.com/callback").await;
    let mut shell = Command::new("bash");
    shell.arg("-e").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    shell.env("SVC_URL", &server.issuer).env("SVC_CLIENT_ID", &new.app.client_id);
    shell.env("SVC_CLIENT_SECRET", new.secret.unwrap().reveal());
    let mut shell = shell.spawn().unwrap();
    let (mut input, mut lines) = (shell.stdin.take().unwrap(), stdout(&mut shell));
    let [ask, exchange, use_tokens, revoke] = blocks("sh")[..] else { panic!("the page has other commands") };

    input.write_all(format!("{ask}\n").as_bytes()).await.unwrap();
    let returned: url::Url = server.consent(&line(&mut lines).await).await.parse().unwrap();
    let code = returned.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
    input.write_all(format!("CODE={code}\n{exchange}\n").as_bytes()).await.unwrap();
    let tokens: Value = serde_json::from_str(&line(&mut lines).await).unwrap();
    assert_eq!((&tokens["scope"], &tokens["expires_in"]), (&"read write".into(), &3600.into()));
    input.write_all(format!("{use_tokens}\n{revoke}\n").as_bytes()).await.unwrap();
    assert!(line(&mut lines).await.contains("ada@example.com"));
    let mut rest = Vec::new();
    drop(input);
    while let Some(line) = within(lines.next_line()).await.unwrap() {
        rest.extend(Some(line).filter(|line| !line.is_empty()));
    }
    let [refreshed, body, status] = &rest[..] else { panic!("{rest:?}") };
    let refreshed: Value = serde_json::from_str(refreshed).unwrap();
    assert_eq!(refreshed["refresh_token"], tokens["refresh_token"]);
    assert_eq!((body.as_str(), status.as_str()), ("{}", "200"));
    assert!(within(shell.wait()).await.unwrap().success());
    assert_eq!(server.grants().await, 0);
}

/// The browser of the owner at the web app.
struct Visitor {
    app: String,
    cookie: String,
}

impl Visitor {
    async fn get(&mut self, url: &str) -> http::Response<bytes::Bytes> {
        let request = Request::get(url).header("cookie", &self.cookie).body(String::new()).unwrap();
        let response = send(request).await;
        if let Some(cookie) = response.headers().get(SET_COOKIE) {
            cookie.to_str().unwrap().split(';').next().unwrap().clone_into(&mut self.cookie);
        }
        response
    }

    async fn home(&mut self) -> String {
        let url = format!("{}/", self.app);
        text(self.get(&url).await)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_web_app_in_python_connects_refreshes_and_disconnects() {
    let server = with_contact().await;
    let new = server.register(Authentication::Basic, "http://127.0.0.1/callback").await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("oauth_app.py"), WEB_APP).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let secret = new.secret.unwrap();
    let mut app = Command::new("python3");
    app.arg("oauth_app.py").current_dir(folder.path()).kill_on_drop(true).stderr(Stdio::null());
    app.env("SVC_URL", &server.issuer).env("PORT", port.to_string());
    app.env("SVC_CLIENT_ID", &new.app.client_id).env("SVC_CLIENT_SECRET", secret.reveal());
    let _app = match app.spawn() {
        Ok(app) => app,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "python3 does not start: {error}");
            return;
        }
    };
    let address = format!("127.0.0.1:{port}");
    within(async {
        while tokio::net::TcpStream::connect(&address).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;

    let mut visitor = Visitor { app: format!("http://{address}"), cookie: String::new() };
    assert!(visitor.home().await.contains("Connect your account"));
    let connect = format!("{}/connect", visitor.app);
    let authorize = visitor.get(&connect).await.headers()[LOCATION].to_str().unwrap().to_owned();
    let callback = server.consent(&authorize).await;
    // Another browser, and a forged response, get nothing.
    let stranger = send(Request::get(&callback).body(String::new()).unwrap()).await;
    assert_eq!(stranger.status(), StatusCode::BAD_REQUEST);
    assert!(visitor.home().await.contains("Connect your account"));

    let authorize = visitor.get(&connect).await.headers()[LOCATION].to_str().unwrap().to_owned();
    // The account has granted it already, so that nobody is asked.
    let request = Request::get(&authorize).header("cookie", &server.cookie).body(String::new()).unwrap();
    let callback = send(request).await.headers()[LOCATION].to_str().unwrap().to_owned();
    assert_eq!(visitor.get(&callback).await.status(), StatusCode::SEE_OTHER);
    assert!(visitor.home().await.contains("Contacts: ada@example.com"));

    let file = folder.path().join("tokens.json");
    let credentials = format!("client_id={}&client_secret={}", new.app.client_id, secret.reveal());
    let before = revoke_access(&server, &file, &credentials).await;
    assert!(visitor.home().await.contains("Contacts: ada@example.com"));
    let after: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_ne!(before["access_token"], after["access_token"]);

    let disconnect = Request::post(format!("{}/disconnect", visitor.app)).header(ORIGIN, &visitor.app);
    assert_eq!(send(disconnect.body(String::new()).unwrap()).await.status(), StatusCode::SEE_OTHER);
    assert_eq!(server.grants().await, 0);
    assert!(visitor.home().await.contains("Connect your account"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_in_typescript_connects_refreshes_and_disconnects() {
    let Some(packages) = installed(NODE_MODULES) else { return };
    let server = with_contact().await;
    let new = server.register(Authentication::None, "http://127.0.0.1/callback").await;
    let folder = folder_of_node(&packages);
    std::fs::write(folder.path().join("oauth_program.mts"), PROGRAM).unwrap();
    let mut compile = Command::new("node_modules/.bin/tsc");
    compile.args(["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "oauth_program.mts"]);
    let compiled = compile.current_dir(folder.path()).output().await.unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stdout));
    let run = |arguments: &[&str]| {
        let mut node = Command::new("node");
        node.arg("oauth_program.mjs").args(arguments).current_dir(folder.path());
        node.env("SVC_URL", &server.issuer).env("SVC_CLIENT_ID", &new.app.client_id);
        node.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
    };

    let mut first = run(&[]);
    let mut lines = stdout(&mut first);
    let open = line(&mut lines).await;
    let callback = server.consent(open.strip_prefix("Open ").unwrap()).await;
    let forged = callback.replace("state=", "state=x");
    assert_eq!(send(Request::get(forged).body(String::new()).unwrap()).await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(text(send(Request::get(callback).body(String::new()).unwrap()).await), "Close this window.");
    assert_eq!(line(&mut lines).await, "Contacts: ada@example.com");
    assert!(within(first.wait()).await.unwrap().success());

    let file = folder.path().join("tokens.json");
    let before = revoke_access(&server, &file, &format!("client_id={}", new.app.client_id)).await;
    let mut second = run(&[]);
    assert_eq!(line(&mut stdout(&mut second)).await, "Contacts: ada@example.com");
    assert!(within(second.wait()).await.unwrap().success());
    let after: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_ne!(before["refresh_token"], after["refresh_token"]);

    assert!(within(run(&["disconnect"]).wait()).await.unwrap().success());
    assert_eq!(server.grants().await, 0);
    assert!(!file.exists());
}
