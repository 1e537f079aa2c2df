//! The public clients of MCP with the running program, and `svc mcp`. The programs are in `tests/mcp`.
//!
//! `.ci/mcp` installs the clients. `SVC_TEST_MCP_PYTHON`, `SVC_TEST_MCP_NODE` and `SVC_TEST_MCP_NODE_MODULES` say where they are.
//! A test without its variable is skipped with a message on stderr; with `CI` set it fails.

use std::path::Path;

use http::Request;
use serde_json::{Value, json};
use svc_core::accounts::apps::AppUpdate;
use svc_core::accounts::keys::KeyCreate;
use svc_core::accounts::platform_keys::PlatformKeyCreate;
use svc_core::prelude::TenantCreate;
use svc_core::values::RedirectUri;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::apps::{self, Authentication, Running, folder_of_node, installed, send};

const PYTHON: &str = "SVC_TEST_MCP_PYTHON";
const NODE: &str = "SVC_TEST_MCP_NODE";
const NODE_MODULES: &str = "SVC_TEST_MCP_NODE_MODULES";

/// The flags of a server with tools, to which the programs send more than 60 requests a minute.
const FLAGS: [&str; 3] = ["--mcp", "on", "--no-rate-limit"];

/// Copies the programs of `tests/mcp`, and those of `tests/oauth` that they use, into a folder.
fn copy_programs(folder: &Path) {
    apps::copy_programs(folder);
    apps::copy_files(concat!(env!("CARGO_MANIFEST_DIR"), "/mcp"), folder);
}

/// Returns the text of a key of the account.
async fn key(server: &Running, write: bool) -> String {
    let input = KeyCreate { name: None, write, expires_in: None, signed: false };
    server.svc.account(server.tenant).keys().create(input).await.unwrap().text.reveal().to_owned()
}

/// Runs a program that must print `ok`.
async fn run(server: &Running, folder: &Path, program: &[&str], variables: &[(&str, &str)]) {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).current_dir(folder).kill_on_drop(true);
    command.env("SVC_URL", &server.issuer).env("SVC_COOKIE", &server.cookie);
    command.envs(variables.iter().copied());
    let output = command.output().await.unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program:?}: {stdout}{stderr}");
    assert_eq!(stdout.lines().last(), Some("ok"), "{program:?}: {stdout}{stderr}");
}

/// Registers a public app that returns to this address at a free port, and returns the client id and the address.
async fn app(server: &Running) -> (String, String) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let new = server.register(Authentication::None, "http://127.0.0.1/callback").await;
    (new.app.client_id, format!("http://127.0.0.1:{port}/callback"))
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_node_work_with_the_program() {
    let (Some(node), Some(packages)) = (installed(NODE), installed(NODE_MODULES)) else { return };
    let (node, folder) = (node.to_str().unwrap().to_owned(), folder_of_node(&packages));
    copy_programs(folder.path());
    let server = Running::start_with(&FLAGS).await;
    let key = key(&server, true).await;
    for program in ["sdk_node.mjs", "inspector.mjs", "mcp_remote.mjs"] {
        run(&server, folder.path(), &[&node, program], &[("SVC_KEY", &key)]).await;
    }
    let (client, redirect_uri) = app(&server).await;
    let variables = [("SVC_CLIENT_ID", client.as_str()), ("SVC_REDIRECT_URI", redirect_uri.as_str())];
    run(&server, folder.path(), &[&node, "oauth_node.mjs"], &variables).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_python_work_with_the_program() {
    let Some(python) = installed(PYTHON) else { return };
    let (python, folder) = (python.to_str().unwrap().to_owned(), tempfile::tempdir().unwrap());
    copy_programs(folder.path());
    let server = Running::start_with(&FLAGS).await;
    let key = key(&server, true).await;
    for program in ["mcp_python.py", "fastmcp_client.py"] {
        run(&server, folder.path(), &[&python, program], &[("SVC_KEY", &key)]).await;
    }
    let (client, redirect_uri) = app(&server).await;
    let variables = [("SVC_CLIENT_ID", client.as_str()), ("SVC_REDIRECT_URI", redirect_uri.as_str())];
    run(&server, folder.path(), &[&python, "oauth_python.py"], &variables).await;
}

/// What the suite expects to fail, and why, is in `tests/mcp/expected-failures.yaml`.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_passes_the_conformance_suite() {
    let (Some(node), Some(packages)) = (installed(NODE), installed(NODE_MODULES)) else { return };
    let (node, folder) = (node.to_str().unwrap().to_owned(), folder_of_node(&packages));
    copy_programs(folder.path());
    let server = Running::start_with(&FLAGS).await;
    let key = key(&server, true).await;
    let (client, redirect_uri) = app(&server).await;
    let variables = [("SVC_KEY", key.as_str()), ("SVC_CLIENT_ID", &client), ("SVC_REDIRECT_URI", &redirect_uri)];
    run(&server, folder.path(), &[&node, "conformance.mjs"], &variables).await;
}

/// Returns `svc mcp` with these variables. `{SVC}` is the program.
fn svc(arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_svc-tested"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SVC_")) {
        command.env_remove(name);
    }
    command.arg("mcp").args(arguments).envs(variables.iter().copied()).kill_on_drop(true);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command
}

/// Sends lines to a command, and returns the messages that it prints, by their ids, and what it says beside.
async fn talk(mut command: Command, lines: &[String]) -> (Vec<Value>, String) {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all((lines.join("\n") + "\n").as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    let mut messages: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    messages.sort_by_key(|message| message["id"].as_u64());
    (messages, stderr)
}

fn line(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn svc_mcp_is_the_same_on_stdin_and_stdout() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let platform = format!("127.0.0.1:{port}");
    let server = Running::start_with(&[&FLAGS[..], &["--platform-listen", &platform]].concat()).await;
    let (write, read) = (key(&server, true).await, key(&server, false).await);
    let account = server.tenant.to_string();
    let email = json!({ "email": "ada@example.com", "idempotency_key": "once" });
    let lines = [
        line(
            1,
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
        ),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
        line(2, "tools/call", json!({ "name": "create_contact", "arguments": email })),
        String::new(),
    ];
    let by_key = [("SVC_URL", server.issuer.as_str()), ("SVC_KEY", &write)];
    let (answers, stderr) = talk(svc(&[], &by_key), &lines).await;
    assert_eq!((answers.len(), stderr.as_str()), (2, ""), "{answers:?}");
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "svc");
    assert_eq!(answers[1]["result"]["structuredContent"]["data"]["email"], "ada@example.com");

    // The tools that a key may call, and those that change nothing.
    let list = [line(1, "tools/list", json!({}))];
    let count = |answers: &[Value]| answers[0]["result"]["tools"].as_array().unwrap().len();
    let (all, _) = talk(svc(&[], &by_key), &list).await;
    let (reading, _) = talk(svc(&["--read-only"], &by_key), &list).await;
    let (by_read, _) = talk(svc(&[], &[("SVC_URL", &server.issuer), ("SVC_KEY", &read)]), &list).await;
    assert_eq!(reading[0]["result"]["tools"], by_read[0]["result"]["tools"]);
    assert!(count(&all) > count(&reading) + 10);

    // With a platform key they work on the account that is named, in the areas of its scopes.
    let scopes = ["records:read", "webhooks:write"].map(|scope| scope.parse().unwrap());
    let input = PlatformKeyCreate { name: None, scopes: scopes.to_vec(), expires_in: None };
    let platform_key = server.svc.platform_keys().create(input).await.unwrap().text.reveal().to_owned();
    let platform = format!("http://{platform}");
    let by_platform = svc(&["--server", &platform, "--account", &account], &[("SVC_PLATFORM_KEY", &platform_key)]);
    let (answers, _) = talk(
        by_platform,
        &[list[0].clone(), line(2, "tools/call", json!({ "name": "list_contacts", "arguments": {} }))],
    )
    .await;
    let tools: Vec<&str> =
        answers[0]["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(
        tools.contains(&"create_webhook") && tools.contains(&"list_contacts") && !tools.contains(&"create_contact"),
        "{tools:?}"
    );
    assert_eq!(answers[1]["result"]["structuredContent"]["data"][0]["email"], "ada@example.com", "{answers:?}");

    // What goes wrong is an answer, too.
    let (answers, _) = talk(svc(&[], &[("SVC_URL", &server.issuer), ("SVC_KEY", "svc_live_no")]), &list).await;
    let said = answers[0]["error"]["message"].as_str().unwrap();
    assert!(said.contains("key"), "{said}");
    let (answers, _) = talk(svc(&[], &[("SVC_URL", "http://127.0.0.1:9"), ("SVC_KEY", &write)]), &list).await;
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("no connection to the service"), "{answers:?}");
    let (answers, _) = talk(svc(&[], &by_key), &["nonsense".to_owned()]).await;
    assert_eq!((&answers[0]["error"]["code"], &answers[0]["id"]), (&json!(-32700), &Value::Null));
    let batch = format!("[{},{}]", line(1, "ping", json!({})), list[0].replace("\"id\":1", "\"id\":2"));
    let (answers, _) = talk(svc(&[], &by_key), &[batch]).await;
    assert_eq!((&answers[0][0]["id"], &answers[0][1]["id"], answers.len()), (&json!(1), &json!(2), 1), "{answers:?}");
    let text = line(8, "tools/call", json!({ "name": "get_contact", "arguments": "{}" }));
    let (answers, _) = talk(svc(&[], &by_key), &[text, "7".to_owned()]).await;
    let codes: Vec<&Value> = answers.iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [&json!(-32600), &json!(-32602)], "{answers:?}");
    let huge = line(7, "tools/call", json!({ "name": "get_contact", "arguments": { "id": "a".repeat(300_000) } }));
    let (answers, _) = talk(svc(&[], &by_key), &[huge]).await;
    assert_eq!((&answers[0]["id"], answers[0]["error"].is_object()), (&json!(7), true), "{answers:?}");
    // SVC_KEY belongs to SVC_URL, whatever else is set.
    let both = [by_key[0], by_key[1], ("SVC_SERVER", "http://127.0.0.1:9"), ("SVC_PLATFORM_KEY", "svc_plat_x")];
    let (answers, _) = talk(svc(&[], &both), &list).await;
    assert!(answers[0]["result"].is_object(), "{answers:?}");
    // Another account, and one that there is not.
    let other = server.svc.accounts().create(TenantCreate::named("Quay Bakery")).await.unwrap().id.to_string();
    let contacts = line(1, "tools/call", json!({ "name": "list_contacts", "arguments": {} }));
    let by_account =
        |account: &str| svc(&["--server", &platform, "--account", account], &[("SVC_PLATFORM_KEY", &platform_key)]);
    let (answers, _) = talk(by_account(&other), std::slice::from_ref(&contacts)).await;
    assert_eq!(answers[0]["result"]["structuredContent"]["data"], json!([]), "{answers:?}");
    let (answers, _) = talk(by_account("0195a3c8-8a00-7000-8000-00000000a001"), std::slice::from_ref(&contacts)).await;
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("not_found"), "{answers:?}");
    for (account, origin, status) in [(account.as_str(), "https://evil.example", 403), ("7", "", 400)] {
        let mut request = Request::post(format!("{platform}/platform/v1/accounts/{account}/mcp/readonly"))
            .header("authorization", format!("Bearer {platform_key}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if !origin.is_empty() {
            request = request.header("origin", origin);
        }
        assert_eq!(send(request.body(contacts.clone()).unwrap()).await.status(), status, "{account} {origin}");
    }
    let without = Running::start_with(&[]).await;
    let other = key(&without, true).await;
    let (answers, _) = talk(svc(&[], &[("SVC_URL", &without.issuer), ("SVC_KEY", &other)]), &list).await;
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("--mcp on"), "{answers:?}");
    let none = svc(&[], &[]).output().await.unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("Set SVC_URL to its URL and SVC_KEY to an API key"));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_node_work_with_svc_mcp() {
    let (Some(node), Some(packages)) = (installed(NODE), installed(NODE_MODULES)) else { return };
    let (node, folder) = (node.to_str().unwrap().to_owned(), folder_of_node(&packages));
    copy_programs(folder.path());
    let server = Running::start_with(&FLAGS).await;
    let key = key(&server, true).await;
    let command = json!([env!("CARGO_BIN_EXE_svc-tested"), "mcp"]).to_string();
    let variables = [("SVC_COMMAND", command.as_str()), ("SVC_KEY", &key)];
    run(&server, folder.path(), &[&node, "stdio.mjs"], &variables).await;
}

/// Serves documents until it is dropped, and counts how often each was asked for.
async fn documents(serve: impl Fn(&str, &str) -> String + Send + 'static) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let own = origin.clone();
    let task = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut head, mut chunk) = (String::new(), [0; 4096]);
            while !head.contains("\r\n\r\n") {
                let count = stream.read(&mut chunk).await.unwrap();
                if count == 0 {
                    break;
                }
                head.push_str(&String::from_utf8_lossy(&chunk[..count]));
            }
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let response = serve(&own, &path);
            // The client may have read enough.
            let _ = stream.write_all(response.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (origin, task)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn authorize_url(server: &Running, client: &str) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("response_type", "code")
        .append_pair("client_id", client)
        .append_pair("redirect_uri", "http://127.0.0.1:4711/callback")
        .append_pair("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
        .append_pair("code_challenge_method", "S256")
        .append_pair("scope", "read")
        .append_pair("resource", &format!("{}/mcp", server.issuer))
        .finish();
    format!("{}/oauth/authorize?{query}", server.issuer)
}

/// Returns the page of consent as the owner's browser gets it, or as one without a session does.
async fn page(server: &Running, client: &str, is_signed_in: bool) -> (u16, String) {
    let mut request = Request::get(authorize_url(server, client));
    if is_signed_in {
        request = request.header("cookie", &server.cookie);
    }
    let response = send(request.body(String::new()).unwrap()).await;
    let location = response.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    (status, location.unwrap_or_else(|| String::from_utf8(response.into_body().to_vec()).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_publishes_what_it_is_can_be_connected_and_is_not_verified() {
    let (asked, mut counted) = tokio::sync::mpsc::unbounded_channel();
    let (origin, _documents) = documents(move |origin, path| {
        asked.send(path.to_owned()).unwrap();
        let document = |client: &str| {
            json!({
                "client_id": client, "client_name": "Desktop Helper", "redirect_uris": ["http://127.0.0.1/callback"],
                "token_endpoint_auth_method": "none",
            })
        };
        match path {
            "/client.json" => ok(&document(&format!("{origin}/client.json")).to_string()),
            "/other.json" => ok(&document(&format!("{origin}/client.json")).to_string()),
            "/moved.json" => {
                format!("HTTP/1.1 302 Found\r\nLocation: {origin}/client.json\r\nContent-Length: 0\r\n\r\n")
            }
            "/large.json" => ok(&format!("{}{}", " ".repeat(70_000), document(&format!("{origin}/large.json")))),
            _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        }
    })
    .await;
    let flags = ["--oauth-clients", "metadata", "--allow-private-webhooks"];
    let server = Running::start_with(&[&FLAGS[..], &flags].concat()).await;
    let metadata = send(
        Request::get(format!("{}/.well-known/oauth-authorization-server", server.issuer)).body(String::new()).unwrap(),
    );
    let metadata: Value = serde_json::from_slice(metadata.await.body()).unwrap();
    assert_eq!(metadata["client_id_metadata_document_supported"], true);

    // Nobody but a person who is signed in makes the server send a request.
    let client = format!("{origin}/client.json");
    let (status, location) = page(&server, &client, false).await;
    assert_eq!(status, 303);
    assert!(location.ends_with("/sign-in"), "{location}");
    assert!(counted.try_recv().is_err());

    let (status, html) = page(&server, &client, true).await;
    assert_eq!(status, 200, "{html}");
    let host = origin.strip_prefix("http://").unwrap();
    for text in ["Desktop Helper", "not verified", "Nobody has checked who makes this app", host] {
        assert!(html.contains(text), "{text}: {html}");
    }
    // The document is kept, and nothing is stored before the owner allows it.
    page(&server, &client, true).await;
    assert_eq!(counted.try_recv().as_deref(), Ok("/client.json"));
    assert!(counted.try_recv().is_err());
    assert!(server.svc.apps().list(None).await.unwrap().is_empty());

    let location = server.consent(&authorize_url(&server, &client)).await;
    let location = url::Url::parse(&location).unwrap();
    let code = location.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
    let apps = server.svc.apps().list(None).await.unwrap();
    assert_eq!((apps.len(), apps[0].client_id.as_str(), apps[0].confidential), (1, client.as_str(), false));
    assert_eq!(server.grants().await, 1);
    let form = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("grant_type", "authorization_code")
        .append_pair("client_id", &client)
        .append_pair("code", &code)
        .append_pair("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        .append_pair("redirect_uri", "http://127.0.0.1:4711/callback")
        .finish();
    let token = Request::post(format!("{}/oauth/token", server.issuer));
    let token = token.header("content-type", "application/x-www-form-urlencoded").body(form).unwrap();
    let token: Value = serde_json::from_slice(send(token).await.body()).unwrap();
    let token = token["access_token"].as_str().unwrap_or_else(|| panic!("{token}")).to_owned();
    let call = async |path: &str| {
        let message = line(1, "tools/call", json!({ "name": "list_contacts", "arguments": {} }));
        let request =
            Request::post(format!("{}{path}", server.issuer)).header("authorization", format!("Bearer {token}"));
        let request = request.header("content-type", "application/json");
        send(request.header("accept", "application/json, text/event-stream").body(message).unwrap()).await
    };
    // The token is for the tools, and for those among them that change nothing, and not for the API.
    for path in ["/mcp", "/mcp/readonly"] {
        let answer: Value = serde_json::from_slice(call(path).await.body()).unwrap();
        assert_eq!(answer["result"]["isError"], false, "{path}: {answer}");
    }
    let api =
        Request::get(format!("{}/api/v1/contacts", server.issuer)).header("authorization", format!("Bearer {token}"));
    assert_eq!(send(api.body(String::new()).unwrap()).await.status(), 401);

    // An owner is asked each time, since anybody can say that they are this app.
    let (status, _) = page(&server, &client, true).await;
    assert_eq!(status, 200);

    // An operator keeps it out, and cannot change what it says of itself.
    let id = apps[0].id;
    let renamed = AppUpdate { name: Some("Bank".parse().unwrap()), ..AppUpdate::default() };
    assert!(matches!(server.svc.apps().update(id, renamed).await, Err(svc_core::error::Error::NotAllowed(_))));
    let disabled = AppUpdate { disabled: Some(true), ..AppUpdate::default() };
    server.svc.apps().update(id, disabled).await.unwrap();
    let (status, html) = page(&server, &client, true).await;
    assert!(status == 400 && html.contains("The app is disabled"), "{html}");
    assert_eq!(call("/mcp").await.status(), 401);

    for (path, reason) in [
        ("/other.json", "another client_id"),
        ("/moved.json", "the response was 302 Found"),
        ("/large.json", "65536 bytes or more"),
        ("/gone.json", "the response was 404 Not Found"),
        ("/", "must be the https URL of a document"),
    ] {
        let (status, html) = page(&server, &format!("{origin}{path}"), true).await;
        assert_eq!(status, 400, "{path}");
        assert!(html.contains(reason), "{path}: {html}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_flag_and_for_private_hosts_no_document_is_read() {
    let (origin, _documents) = documents(|_, path| panic!("{path} was read")).await;
    let client = format!("{origin}/client.json");
    let registered = Running::start_with(&FLAGS).await;
    let (status, html) = page(&registered, &client, true).await;
    assert!(status == 400 && html.contains("only apps that were registered"), "{html}");
    let strict = Running::start_with(&[&FLAGS[..], &["--oauth-clients", "metadata"]].concat()).await;
    for client in [client.as_str(), "https://127.0.0.1/client.json", "https://metadata.google.internal/client.json"] {
        let (status, html) = page(&strict, client, true).await;
        assert!(status == 400 && html.contains("cannot be read"), "{client}: {html}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_both_languages_work_as_apps_that_publish_what_they_are() {
    let (Some(node), Some(packages), Some(python)) = (installed(NODE), installed(NODE_MODULES), installed(PYTHON))
    else {
        return;
    };
    let (origin, _documents) = documents(|origin, path| {
        let document = json!({
            "client_id": format!("{origin}{path}"), "client_name": "Route Planner",
            "redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "none",
        });
        ok(&document.to_string())
    })
    .await;
    let folder = folder_of_node(&packages);
    copy_programs(folder.path());
    let flags = ["--oauth-clients", "metadata", "--allow-private-webhooks"];
    let server = Running::start_with(&[&FLAGS[..], &flags].concat()).await;
    let redirect_uri = RedirectUri::parse("http://127.0.0.1:4711/callback").unwrap();
    for (interpreter, program) in [(&node, "oauth_node.mjs"), (&python, "oauth_python.py")] {
        let client = format!("{origin}/{program}.json");
        let variables = [("SVC_CLIENT_ID", client.as_str()), ("SVC_REDIRECT_URI", redirect_uri.as_str())];
        run(&server, folder.path(), &[interpreter.to_str().unwrap(), program], &variables).await;
    }
}

/// A server is stopped and started between two messages, which its client does not notice.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_between_two_calls_goes_unnoticed() {
    let (_folder, url) = crate::program::database();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let start = || crate::program::command(&["--listen", &listen, "--database-url", &url, "--mcp", "on"]);
    let program = crate::program::Program::start(start()).await;
    let store = svc_store::open_with(&url, svc_core::env::Env::system(), svc_store::Options::default()).await.unwrap();
    let key = svc_test_support::Fixture::on(store).await.key().await.text;
    let origin = format!("http://{listen}");
    let mut child = svc_command(&origin, &key).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut ask = async |line: String| -> Value {
        stdin.write_all((line + "\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).await.unwrap();
        serde_json::from_str(&answer).unwrap()
    };
    let initialize =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    ask(line(1, "initialize", initialize)).await;
    let create =
        json!({ "name": "create_contact", "arguments": { "email": "ada@example.com", "idempotency_key": "once" } });
    let made = ask(line(2, "tools/call", create.clone())).await;
    let (_, _, log) = program.stop("TERM").await;
    // What a client says is not for the log.
    assert!(!log.contains("rmcp") && !log.contains("ada@example.com"), "{log}");
    let program = crate::program::Program::start(start()).await;
    assert_eq!(ask(line(2, "tools/call", create)).await, made);
    program.stop("TERM").await;
}

fn svc_command(origin: &str, key: &str) -> Command {
    svc(&[], &[("SVC_URL", origin), ("SVC_KEY", key)])
}
