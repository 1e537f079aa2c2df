//! What goes wrong around the program: readers that go away, databases that cannot be reached, files that cannot be
//! read.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use svc_core::accounts::tenants::{self, TenantCreate};

use crate::harness::{Session, text};

/// More than a pipe holds.
const PIPE: usize = 64 * 1024;

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let session = Session::new();
    let tenant = session.tenant();
    session.write(|tx| {
        Box::pin(async move {
            for number in 0..800 {
                tenants::create(tx, TenantCreate::named(&format!("Number {number}"))).await?;
            }
            Ok(())
        })
    });
    let rows: String = (0..1_000).map(|n| format!("p{n}@example.com\n")).collect();
    session.file("people.csv", format!("email\n{rows}"));
    session.json(&["import", "contacts", "--tenant", &tenant, "people.csv"]);
    let export = ["export", "contacts", "--tenant", &tenant, "--format"];
    for args in [
        &["tenant", "list"][..],
        &["tenant", "list", "--json"],
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
    assert!(session.output(&["tenant", "list"]).stdout.len() > PIPE);
}

#[test]
fn what_nobody_reads_is_done_all_the_same() {
    let session = Session::new();
    for args in [&["--help"][..], &[], &["tenant", "create", "--name", "Ada"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = session.program(args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
    }
    assert_eq!(session.json(&["tenant", "list"]).as_array().unwrap().len(), 1);
}

/// A server that speaks PostgreSQL up to the password, and refuses it.
fn refusing_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 4];
            // Lengths count themselves. First comes the startup message, or before it the wish for TLS.
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
fn a_database_that_cannot_be_reached_says_so_without_its_password() {
    let session = Session::new();
    let refusing = refusing_server();
    let key = "5e".repeat(32);
    for (url, code, error) in [
        ("postgres://svc:hunter2@127.0.0.1:1/svc".to_owned(), 5, "refused"),
        (format!("postgres://svc:hunter2@127.0.0.1:{refusing}/svc"), 5, "password authentication failed"),
        ("postgres://svc:hunter2@no-such-host.invalid/svc".to_owned(), 5, "no-such-host.invalid"),
        ("postgres://svc:hunter2@127.0.0.1:port/svc".to_owned(), 2, "port"),
        ("postgers://svc:hunter2@127.0.0.1/svc".to_owned(), 2, "sqlite://"),
    ] {
        for args in [&["tenant", "list"][..], &["db", "stats"], &["db", "check"]] {
            let mut program = session.program(&[args, &["--database-url", &url]].concat());
            let output = program.env("SVC_SECRET_KEY", &key).output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{url}: {said}");
            assert!(said.starts_with("error: ") && said.contains(error) && output.stdout.is_empty(), "{url}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}

/// A failure that names the file.
fn assert_names(output: &Output, code: i32, name: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.starts_with("error: ") && said.contains(name) && !said.contains("panicked"), "{said}");
}

#[test]
fn files_that_cannot_be_read_or_written() {
    let session = Session::new();
    let tenant = session.tenant();
    std::fs::create_dir(session.folder().join("folder")).unwrap();
    session.file("people.csv", "email\nada@example.com\n,,\n");
    session.file("locked", "email\nada@example.com\n");
    std::fs::set_permissions(session.folder().join("locked"), PermissionsExt::from_mode(0o000)).unwrap();
    // Root may read everything.
    let is_root = std::fs::read(session.folder().join("locked")).is_ok();
    for name in ["missing", "folder", "locked"].into_iter().filter(|name| *name != "locked" || !is_root) {
        let import = ["import", "contacts", "--tenant", &tenant, name, "--format", "csv"];
        assert_names(&session.output(&import), 1, name);
        let emit = ["event", "emit", "--tenant", &tenant, "--kind", "stay.created", "--data", name];
        assert_names(&session.output(&emit), 1, name);
        assert_names(&session.output(&["db", "stats", "--database-url", &format!("sqlite://{name}")]), 5, name);
    }
    for (args, code) in [
        (&["import", "contacts", "--tenant", &tenant, "people.csv", "--report", "folder"][..], 1),
        (&["import", "contacts", "--tenant", &tenant, "people.csv", "--report", "missing/report"], 1),
        (&["db", "backup", "folder"], 4),
        (&["db", "backup", "missing/backup.db"], 1),
        (&["man", "--directory", "people.csv"], 1),
    ] {
        assert_names(&session.output(args), code, args[args.len() - 1]);
    }
    assert_eq!(session.count("contacts", &tenant), 0);
    assert!(!session.folder().join("missing").exists(), "nothing was made in passing");
}
