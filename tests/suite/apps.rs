//! Apps of somebody else (OAuth 2.0) with the running program: on public client libraries, and those of docs/oauth.md.
//!
//! `.ci/oauth` installs the libraries of Python and Node. `SVC_TEST_OAUTH_PYTHON` and `SVC_TEST_OAUTH_NODE_MODULES` say where
//! they are. A test without its variable is skipped with a message on stderr; with `CI` set it fails.

mod libraries;
mod page;
mod rust;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, LOCATION, ORIGIN};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use svc_core::accounts::apps::{AppCreate, NewApp};
use svc_core::accounts::sessions::Role;
use svc_core::env::Env;
use svc_core::prelude::*;
use svc_store::Options;

use crate::program::{self, Program};

/// The variable with the path of the Python interpreter that has the libraries.
const PYTHON: &str = "SVC_TEST_OAUTH_PYTHON";
/// The variable with the folder of the packages for Node.
const NODE_MODULES: &str = "SVC_TEST_OAUTH_NODE_MODULES";

/// A running server with an account whose owner is signed in.
pub(crate) struct Running {
    pub(crate) issuer: String,
    pub(crate) svc: Svc,
    pub(crate) tenant: TenantId,
    /// The cookie of the owner's browser.
    pub(crate) cookie: String,
    program: Program,
    _folder: tempfile::TempDir,
}

/// The ways in which an app authenticates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Authentication {
    Basic,
    Body,
    None,
}

impl Running {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts the server with more flags.
    pub(crate) async fn start_with(more: &[&str]) -> Self {
        let (folder, url) = program::database();
        // The issuer is a setting, so the port has to be known before the start.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let issuer = format!("http://127.0.0.1:{port}");
        let (listen, public_url) = (format!("127.0.0.1:{port}"), issuer.as_str());
        let flags = ["--listen", &listen, "--database-url", &url, "--oauth", "on", "--public-url", public_url];
        let program = Program::start(program::command(&[&flags[..], more].concat())).await;
        let svc = Svc::new(svc_store::open_with(&url, Env::system(), Options::default()).await.unwrap());
        let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
        let link = svc.dashboard().create_link(DashboardLinkCreate::to(tenant, Role::Owner)).await.unwrap();
        let session = svc.dashboard().sign_in(link.token.reveal()).await.unwrap();
        let cookie = format!("svc_session={}", session.token.reveal());
        Self { issuer, svc, tenant, cookie, program, _folder: folder }
    }

    /// Returns the id of the process of the program.
    pub(crate) fn process(&self) -> u32 {
        self.program.process()
    }

    /// Registers an app, which is public if it does not authenticate.
    pub(crate) async fn register(&self, authentication: Authentication, redirect_uri: &str) -> NewApp {
        let mut app = AppCreate::new("Route Planner".parse().unwrap(), vec![redirect_uri.parse().unwrap()]);
        (app.public, app.write) = (authentication == Authentication::None, true);
        self.svc.apps().create(app).await.unwrap()
    }

    /// Sends the form of the page of consent as the browser of the owner does, and returns where the browser goes.
    pub(crate) async fn consent(&self, url: &str) -> String {
        let page = send(Request::get(url).header(COOKIE, &self.cookie).body(String::new()).unwrap()).await;
        let html = text(page);
        let field = |name: &str| {
            let after = html.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{html}")).1;
            after.split('"').next().unwrap().to_owned()
        };
        let form = format!("csrf={}&account={}&decision=allow", field("csrf"), field("account"));
        let request = Request::post(url).header(COOKIE, &self.cookie).header(ORIGIN, &self.issuer);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let response = send(request.body(form).unwrap()).await;
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        response.headers()[LOCATION].to_str().unwrap().to_owned()
    }

    /// Returns how many apps may work on the account.
    pub(crate) async fn grants(&self) -> usize {
        self.svc.account(self.tenant).grants().list().await.unwrap().len()
    }
}

/// Sends a request and reads the response.
pub(crate) async fn send(request: Request<String>) -> Response<Bytes> {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let (parts, body) = client.request(request.map(Into::into)).await.unwrap().into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

fn text(response: Response<Bytes>) -> String {
    String::from_utf8(response.into_body().to_vec()).unwrap()
}

/// Returns the value of a variable. If it is not set, writes directly to stderr, because the test harness captures the output
/// of passing tests.
pub(crate) fn installed(variable: &str) -> Option<OsString> {
    let found = std::env::var_os(variable);
    if found.is_none() {
        let script = if variable.contains("MCP") { ".ci/mcp" } else { ".ci/oauth" };
        let reason = format!("{variable} is not set; see {script}");
        assert!(std::env::var_os("CI").is_none(), "{reason}");
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: {reason}");
    }
    found
}

/// Creates a folder in which programs of Node find their packages.
pub(crate) fn folder_of_node(packages: &OsString) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(packages, folder.path().join("node_modules")).unwrap();
    folder
}

/// Copies the programs of `tests/oauth` into a folder.
pub(crate) fn copy_programs(folder: &Path) {
    copy_files(concat!(env!("CARGO_MANIFEST_DIR"), "/oauth"), folder);
}

/// Copies the files of a folder into another one.
pub(crate) fn copy_files(from: &str, folder: &Path) {
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap().path();
        std::fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
    }
}
