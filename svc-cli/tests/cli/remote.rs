//! `--server` and profiles: what can go wrong on the way, what stays beside the database, and the files of profiles.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use svc_core::accounts::keys::Scope;
use svc_core::accounts::platform_keys::{Area, PlatformScope};

use crate::harness::{Session, sqlite_url, text, until};
use crate::listen::Listening;
use crate::server::{LiveServer, Options};

fn start(session: &Session, scopes: &[PlatformScope]) -> LiveServer {
    LiveServer::start(&sqlite_url(session.folder()), scopes)
}

/// Returns the program with a configuration folder in the session's directory.
fn program(session: &Session, args: &[&str]) -> Command {
    let mut program = session.program(args);
    program.env("XDG_CONFIG_HOME", session.folder().join("config"));
    program
}

fn on_server(session: &Session, url: &str, key: &str, args: &[&str]) -> Output {
    program(session, args).args(["--server", url]).env("SVC_PLATFORM_KEY", key).output().unwrap()
}

/// Returns a key that the server does not know.
fn another(key: &str) -> String {
    let (rest, last) = key.split_at(key.len() - 1);
    format!("{rest}{}", if last == "x" { "y" } else { "x" })
}

/// Asserts that a command failed with this exit code and an error that has this text.
#[track_caller]
fn assert_failed(output: &Output, code: i32, part: &str) {
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(code), 1), "{stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains(part), "{stderr}");
}

#[test]
fn the_audit_log_names_the_platform_key() {
    let session = Session::new();
    let server = start(&session, &[PlatformScope::All]);
    let made = on_server(&session, &server.url, &server.key, &["account", "create", "--name", "Harbour", "--json"]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    session.json(&["contact", "create", "--email", "ada@example.com"]);
    let audited = session.json(&["audit", "list"]);
    let actors: Vec<&str> = audited.as_array().unwrap().iter().map(|it| it["actor"].as_str().unwrap()).collect();
    assert!(actors[0].starts_with("cli:") && actors[1].starts_with("platform_key:"), "{actors:?}");
    let listed = on_server(&session, &server.url, &server.key, &["audit", "list", "--json"]);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&listed.stdout).unwrap(), audited);
}

#[test]
fn a_key_that_is_sent_in_clear_is_warned_of_once() {
    let session = Session::new();
    session.account();
    let all = start(&session, &[PlatformScope::All]);
    let list = ["contact", "list"];
    for (url, warnings) in
        [(all.url.as_str(), 0), ("https://no-such-host.invalid", 0), ("http://no-such-host.invalid", 1)]
    {
        let stderr = text(&on_server(&session, url, &all.key, &list).stderr);
        assert_eq!(stderr.matches("Use an https:// URL.").count(), warnings, "{url}: {stderr}");
    }
}

#[test]
fn what_goes_wrong_on_the_way_is_one_sentence() {
    let session = Session::new();
    session.account();
    let all = start(&session, &[PlatformScope::All]);
    let few = start(&session, &[PlatformScope::Of(Area::Accounts, Scope::Read)]);
    let list = ["contact", "list"];
    assert_failed(&on_server(&session, &few.url, &few.key, &list), 4, "records:read");
    let operator = ["dashboard", "link", "--operator"];
    assert_failed(&on_server(&session, &all.url, &all.key, &operator), 4, "operators:write");
    let unknown = another(&all.key);
    assert_failed(&on_server(&session, &all.url, &unknown, &list), 4, "does not take the platform key");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_failed(&on_server(&session, &format!("http://{nobody}"), &all.key, &list), 5, "cannot be reached");
    let elsewhere = format!("{}/nothing", all.url);
    assert_failed(&on_server(&session, &elsewhere, &all.key, &list), 2, "--platform-listen");
    assert_failed(&on_server(&session, "ftp://localhost", &all.key, &list), 2, "https://");
    let no_key = program(&session, &list).args(["--server", &all.url]).output().unwrap();
    assert_failed(&no_key, 2, "SVC_PLATFORM_KEY");
    let both = program(&session, &list).args(["--server", &all.url, "--database-url", "sqlite://svc.db"]).output();
    assert_failed(&both.unwrap(), 2, "not both");
    let mut both = program(&session, &list);
    let both = both.env("SVC_SERVER", &all.url).env("SVC_DATABASE_URL", "sqlite://svc.db").output();
    assert_failed(&both.unwrap(), 2, "are both set");
}

#[test]
fn a_page_is_opened_without_a_sign_in_where_the_key_may_not_make_one() {
    let session = Session::new();
    session.account();
    let open = ["open", "--url", "https://api.example.com"];
    let reads = start(&session, &[PlatformScope::Of(Area::Accounts, Scope::Read)]);
    let output = on_server(&session, &reads.url, &reads.key, &open);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stdout), "https://api.example.com/dashboard\n");
    assert!(text(&output.stderr).contains("does not have the scope members:write"), "{output:?}");
    let all = start(&session, &[PlatformScope::All]);
    let output = on_server(&session, &all.url, &all.key, &open);
    assert!(text(&output.stdout).starts_with("https://api.example.com/dashboard/sign-in?token="), "{output:?}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn what_works_on_a_database_only_says_so() {
    let session = Session::without_database();
    for args in [&["init"][..], &["db", "migrate"], &["db", "stats"], &["platform-key", "list"]] {
        let output = on_server(&session, "http://127.0.0.1:1", "svc_plat_x", args);
        assert_failed(&output, 2, "works on a database only");
    }
    assert!(session.files().is_empty(), "{:?}", session.files());
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_profile_is_stored_once_the_server_takes_its_key() {
    let session = Session::new();
    let account = session.account();
    let server = start(&session, &[PlatformScope::All]);
    let login = |name: &str, key: &str| {
        let mut login = program(&session, &["login", "--server", &server.url, "--profile", name]);
        let mut child = login.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A program that has ended reads nothing.
        let _ = child.stdin.take().unwrap().write_all(key.as_bytes());
        child.wait_with_output().unwrap()
    };
    let folder = session.folder().join("config/svc/profiles");
    let unknown = another(&server.key);
    assert_failed(&login("production", &unknown), 4, "does not take the platform key");
    assert_failed(&login("production", "svc_x"), 2, "begins with svc_plat_");
    assert_failed(&login("production", "svc_live_x"), 2, "An API key is for the public listener of a server");
    assert!(!folder.exists(), "nothing is stored");
    let stored = login("production", &format!("{}\n", server.key));
    let stdout = text(&stored.stdout);
    assert_eq!((stored.status.code(), stdout.contains(&server.key)), (Some(0), false), "{stored:?}");
    assert_eq!((mode(&folder), mode(&folder.join("production.json"))), (0o700, 0o600));

    let listed = program(&session, &["account", "list", "--json", "--profile", "production"]).output().unwrap();
    assert!(text(&listed.stdout).contains(&account), "{listed:?}");
    let profiles = program(&session, &["profiles"]).output().unwrap();
    assert!(text(&profiles.stdout).contains(&server.url) && !text(&profiles.stdout).contains(&server.key));

    let with = |name: &str| program(&session, &["account", "list"]).env("SVC_PROFILE", name).output().unwrap();
    assert_failed(&with("prodution"), 3, "did you mean production?");
    assert_failed(&with("zzz"), 3, "There is no profile zzz.");
    let file = folder.join("production.json");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let warned = with("production");
    assert_eq!(warned.status.code(), Some(0), "{warned:?}");
    assert!(text(&warned.stderr).contains("Other users may read"), "{warned:?}");
    std::fs::write(&file, "{").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    assert_failed(&with("production"), 1, "is damaged");

    let logout = || program(&session, &["logout", "--profile", "production"]).output().unwrap();
    assert_eq!((logout().status.code(), file.exists()), (Some(0), false));
    assert_failed(&logout(), 3, "There is no profile production.");
}

#[test]
fn profiles_for_people_and_programs() {
    let mut session = Session::new();
    let server = start(&session, &[PlatformScope::All]);
    let key = session.folder().join("key.txt");
    std::fs::write(&key, &server.key).unwrap();
    let folder = session.folder().to_str().unwrap().to_owned();
    let mut run = |args: &[&str]| {
        let mut command = program(&session, args);
        command.stdin(std::fs::File::open(&key).unwrap());
        let mut output = if args.contains(&"login") {
            command.args(["--server", &server.url]).output().unwrap()
        } else {
            command.output().unwrap()
        };
        for stream in [&mut output.stdout, &mut output.stderr] {
            let shown = text(stream).replace(&server.url, "http://127.0.0.1:48081").replace(&folder, "/home/ada");
            *stream = shown.into_bytes();
        }
        session.record(args, &output);
    };
    run(&["profiles"]);
    run(&["login"]);
    run(&["login", "--profile", "production", "--json"]);
    run(&["login", "--profile", "../production"]);
    run(&["profiles"]);
    run(&["profiles", "--json"]);
    run(&["logout"]);
    run(&["logout"]);
    run(&["logout", "--profile", "production", "--json"]);
    session.assert("profiles");
}

/// Returns a certificate authority.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

#[test]
fn a_server_may_have_a_certificate_of_an_authority_of_ones_own() {
    let session = Session::new();
    let account = session.account();
    let (right, wrong, key) = (authority(), authority(), KeyPair::generate().unwrap());
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &right).unwrap();
    session.file("right.pem", right.pem());
    session.file("wrong.pem", wrong.pem());
    session.file("certificate.pem", certificate.pem());
    session.file("key.pem", key.serialize_pem());
    session.file("broken.pem", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n");
    let tls = Some(["certificate.pem", "key.pem"].map(|name| session.folder().join(name)));
    let options = Options { tls, ..Options::default() };
    let server = LiveServer::start_with(&sqlite_url(session.folder()), &[PlatformScope::All], options);
    let url = server.url.replace("127.0.0.1", "localhost");
    assert!(url.starts_with("https://localhost:"), "{url}");
    let list = |url: &str, more: &[&str]| {
        on_server(&session, url, &server.key, &[&["account", "list", "--json"], more].concat())
    };

    let listed = list(&url, &["--ca-file", "right.pem"]);
    assert!(text(&listed.stdout).contains(&account), "{listed:?}");
    let mut by_variable = program(&session, &["account", "list", "--json", "--server", &url]);
    by_variable.env("SVC_PLATFORM_KEY", &server.key).env("SVC_CA_FILE", "right.pem");
    assert_eq!(by_variable.output().unwrap(), listed);

    for unknown in [&[][..], &["--ca-file", "wrong.pem"]] {
        let output = list(&url, unknown);
        assert_failed(&output, 5, "cannot be reached");
        assert_failed(&output, 5, "Name the file with the certificate of its authority with --ca-file (SVC_CA_FILE).");
    }
    let another_name = list(&server.url, &["--ca-file", "right.pem"]);
    assert_failed(&another_name, 5, "Check the URL, and the certificate that the server has there.");
    assert_failed(&list(&url, &["--ca-file", "none.pem"]), 1, "Cannot read --ca-file none.pem: No such file");
    for (file, part) in [("broken.pem", "a certificate cannot be read"), ("key.pem", "there is no certificate")] {
        let output = list(&url, &["--ca-file", file]);
        assert_failed(&output, 2, &format!("with --ca-file {file} cannot be used: "));
        assert_failed(&output, 2, part);
    }

    let login = |more: &[&str]| {
        session.file("platform.key", &server.key);
        let key = std::fs::File::open(session.folder().join("platform.key")).unwrap();
        program(&session, &[&["login", "--server", &url], more].concat()).stdin(key).output().unwrap()
    };
    assert_failed(&login(&[]), 5, "--ca-file");
    assert_eq!(login(&["--ca-file", "right.pem"]).status.code(), Some(0));
    let profile = program(&session, &["account", "list", "--profile", "default", "--ca-file", "right.pem"]).output();
    assert!(text(&profile.unwrap().stdout).contains(&account));
}

#[test]
fn what_a_server_sends_arrives_and_is_counted() {
    let session = Session::new();
    let account = session.account();
    let url = sqlite_url(session.folder());
    let options = Options { sends_webhooks: true, ..Options::default() };
    let server = LiveServer::start_with(&url, &[PlatformScope::All], options);
    let on_server = |args: &[&str]| {
        let mut command = session.program(args);
        command.env("SVC_SERVER", &server.url).env("SVC_PLATFORM_KEY", &server.key);
        command
    };
    let json = |args: &[&str]| {
        let output = on_server(args).arg("--json").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let listen = ["listen", "--port", "0", "--json", "--events", "invoice.paid"];
    let listening = Listening::start_program(on_server(&listen));
    let webhook = json(&["webhook", "list"])[0]["id"].clone();
    assert_eq!(json(&["trigger", "invoice.paid"])["deliveries"].as_array().unwrap().len(), 1);
    let stats = until("the attempt in the statistics", || {
        let stats = json(&["webhook", "stats", "--account", &account, "--since", "1h"]);
        (stats[0]["attempts"] == 1).then_some(stats)
    });
    assert_eq!((&stats[0]["subscription_id"], &stats[0]["succeeded"], &stats[1]), (&webhook, &1.into(), &().into()));
    let (code, printed, notes) = listening.interrupt();
    let arrived: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &arrived["event"], &arrived["verified"]), (Some(0), &"invoice.paid".into(), &true.into()));
    let made = format!("Created webhook {}", webhook.as_str().unwrap());
    assert!(notes.contains(&made) && notes.contains("The server delivers to it if it runs on this machine"), "{notes}");
    assert_eq!(json(&["webhook", "list"]), serde_json::json!([]), "it is deleted before the command ends");

    let strict = start(&session, &[PlatformScope::All]);
    let mut refused = program(&session, &listen);
    refused.args(["--server", &strict.url]).env("SVC_PLATFORM_KEY", &strict.key);
    assert_failed(&refused.output().unwrap(), 4, "needs one that runs with --allow-private-webhooks");
}
