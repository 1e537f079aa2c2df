//! Failures of the environment: closed pipes, unreachable databases and unreadable files.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use svc_core::accounts::tenants::{self, TenantCreate};

use crate::harness::{Session, text};

/// The capacity of a pipe in bytes.
const PIPE_CAPACITY: usize = 64 * 1024;

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let session = Session::new();
    let account = session.account();
    session.write((), async |tx, ()| {
        for number in 0..800 {
            tenants::create(tx, TenantCreate::named(&format!("Number {number}"))).await?;
        }
        Ok(())
    });
    let rows: String = (0..1_000).map(|n| format!("p{n}@example.com\n")).collect();
    session.file("people.csv", format!("email\n{rows}"));
    session.json(&["import", "contacts", "--account", &account, "people.csv"]);
    let export = ["export", "contacts", "--account", &account, "--format"];
    for args in [
        &["account", "list"][..],
        &["account", "list", "--json"],
        &["completions", "zsh"],
        &["man", "--json"],
        &[&export[..], &["ndjson"]].concat(),
        &[&export[..], &["csv"]].concat(),
    ] {
        let mut child = session.program(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(!first.is_empty(), "{args:?}");
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
    }
    assert!(session.output(&["account", "list"]).stdout.len() > PIPE_CAPACITY);
}

#[test]
fn a_command_with_closed_stdout_still_runs() {
    let session = Session::new();
    for args in [&["--help"][..], &[], &["account", "create", "--name", "Ada"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = session.program(args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
    }
    assert_eq!(session.json(&["account", "list"]).as_array().unwrap().len(), 1);
}

/// Starts a server that speaks the PostgreSQL protocol up to the password and rejects it. Returns its port.
fn start_server_that_rejects_passwords() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 4];
            // A length includes itself. The first message is the startup message or a request for TLS.
            while stream.read_exact(&mut length).is_ok() {
                let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
                stream.read_exact(&mut rest).unwrap();
                if rest == 80_877_103_u32.to_be_bytes() {
                    stream.write_all(b"N").unwrap();
                    continue;
                }
                stream.write_all(b"R\0\0\0\x08\0\0\0\x03").unwrap();
                let mut password = [0; 5];
                stream.read_exact(&mut password).unwrap();
                let fields = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user \"svc\"\0\0";
                stream.write_all(&[b"E", &(fields.len() as u32 + 4).to_be_bytes()[..], fields].concat()).unwrap();
                break;
            }
        }
    });
    port
}

#[test]
fn errors_about_the_database_do_not_show_its_password() {
    let session = Session::new();
    let rejecting_port = start_server_that_rejects_passwords();
    let key = "5e".repeat(32);
    for (url, code, error) in [
        ("postgres://svc:hunter2@127.0.0.1:1/svc".to_owned(), 5, "refused"),
        (format!("postgres://svc:hunter2@127.0.0.1:{rejecting_port}/svc"), 5, "password authentication failed"),
        ("postgres://svc:hunter2@no-such-host.invalid/svc".to_owned(), 5, "no-such-host.invalid"),
        ("postgres://svc:hunter2@127.0.0.1:port/svc".to_owned(), 2, "port"),
        ("postgers://svc:hunter2@127.0.0.1/svc".to_owned(), 2, "sqlite://"),
    ] {
        for args in [&["account", "list"][..], &["db", "stats"], &["db", "check"]] {
            let mut program = session.program(&[args, &["--database-url", &url]].concat());
            let output = program.env("SVC_SECRET_KEY", &key).output().unwrap();
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{url}: {stderr}");
            assert!(
                stderr.starts_with("error: ") && stderr.contains(error) && output.stdout.is_empty(),
                "{url}: {stderr}"
            );
            assert!(!stderr.contains("hunter2"), "{stderr}");
        }
    }
}

/// Asserts that a command failed with this exit code and an error that names the file.
fn assert_failure_names(output: &Output, code: i32, name: &str) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains(name) && !stderr.contains("panicked"), "{stderr}");
}

#[test]
fn errors_name_the_file_that_cannot_be_read_or_written() {
    let session = Session::new();
    let account = session.account();
    std::fs::create_dir(session.folder().join("folder")).unwrap();
    session.file("people.csv", "email\nada@example.com\n,,\n");
    session.file("locked", "email\nada@example.com\n");
    std::fs::set_permissions(session.folder().join("locked"), PermissionsExt::from_mode(0o000)).unwrap();
    // Root can read every file.
    let is_root = std::fs::read(session.folder().join("locked")).is_ok();
    for name in ["missing", "folder", "locked"].into_iter().filter(|name| *name != "locked" || !is_root) {
        let import = ["import", "contacts", "--account", &account, name, "--format", "csv"];
        assert_failure_names(&session.output(&import), 1, name);
        let emit = ["event", "emit", "--account", &account, "--kind", "stay.created", "--data", name];
        assert_failure_names(&session.output(&emit), 1, name);
        let stats = session.output(&["db", "stats", "--database-url", &format!("sqlite://{name}")]);
        assert_failure_names(&stats, if name == "missing" { 3 } else { 5 }, name);
    }
    for (args, code) in [
        (&["import", "contacts", "--account", &account, "people.csv", "--report", "folder"][..], 1),
        (&["import", "contacts", "--account", &account, "people.csv", "--report", "missing/report"], 1),
        (&["db", "backup", "folder"], 4),
        (&["db", "backup", "missing/backup.db"], 1),
        (&["man", "--directory", "people.csv"], 1),
    ] {
        assert_failure_names(&session.output(args), code, args[args.len() - 1]);
    }
    assert_eq!(session.count("contacts", &account), 0);
    assert!(!session.folder().join("missing").exists(), "no directory was created");
}
