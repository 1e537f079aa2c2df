//! Apps on the libraries of Python and Node, in `tests/oauth`: each authorizes, exchanges, calls the API, refreshes and revokes.

use std::path::Path;

use svc_core::values::Secret;
use tokio::process::Command;

use super::Authentication::{self, Basic, Body, None as Public};
use super::{NODE_MODULES, PYTHON, Running, copy_programs, folder_of_node, installed};

const REDIRECT_URI: &str = "https://app.example.com/callback";

/// Runs a program once as each of these apps.
async fn run(server: &Running, folder: &Path, program: &[&str], apps: &[Authentication]) {
    for authentication in apps {
        let new = server.register(*authentication, REDIRECT_URI).await;
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).current_dir(folder).kill_on_drop(true);
        command.env("SVC_ISSUER", &server.issuer).env("SVC_COOKIE", &server.cookie);
        command.env("SVC_REDIRECT_URI", REDIRECT_URI).env("SVC_CLIENT_ID", &new.app.client_id);
        command.env("SVC_CLIENT_SECRET", new.secret.as_ref().map(Secret::reveal).unwrap_or_default());
        command.env("SVC_CLIENT_AUTH", format!("{authentication:?}").to_lowercase());
        let output = command.output().await.unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{program:?} {authentication:?}: {stdout}{stderr}");
        assert_eq!(stdout, "revoked\n", "{program:?} {authentication:?}");
        assert_eq!(server.grants().await, 0, "{program:?} {authentication:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn apps_on_libraries_of_node_work_with_the_program() {
    let Some(packages) = installed(NODE_MODULES) else { return };
    let folder = folder_of_node(&packages);
    copy_programs(folder.path());
    let server = Running::start().await;
    for (program, apps) in [
        ("oauth4webapi.mjs", &[Basic, Body, Public][..]),
        ("openid-client.mjs", &[Basic, Body, Public]),
        ("simple-oauth2.mjs", &[Basic, Body]),
        ("passport-oauth2.mjs", &[Body]),
    ] {
        run(&server, folder.path(), &["node", program], apps).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn apps_on_libraries_of_python_work_with_the_program() {
    let Some(python) = installed(PYTHON) else { return };
    let folder = tempfile::tempdir().unwrap();
    copy_programs(folder.path());
    let server = Running::start().await;
    for program in ["authlib_app.py", "requests_oauthlib_app.py"] {
        run(&server, folder.path(), &[python.to_str().unwrap(), program], &[Basic, Body, Public]).await;
    }
}
