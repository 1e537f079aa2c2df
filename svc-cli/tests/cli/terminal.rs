//! Behaviour on a terminal: colour, confirmation prompts and progress bars.

// `script` has different options on other systems.
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use svc_core::accounts::platform_keys::PlatformScope;

use crate::harness::{Session, UNKNOWN_ID, report_skipped, sqlite_url, text};
use crate::server::LiveServer;

#[test]
fn colour_follows_the_environment() {
    let session = Session::new();
    session.account();
    let coloured = |names: &[&str]| {
        let mut program = session.program(&["account", "list"]);
        program.envs(names.iter().map(|name| (name, "1")));
        text(&program.output().unwrap().stdout).contains('\u{1b}')
    };
    assert!(!coloured(&[]), "a pipe is no terminal");
    assert!(coloured(&["CLICOLOR_FORCE"]));
    assert!(!coloured(&["CLICOLOR_FORCE", "NO_COLOR"]));
}

/// Runs a command on a pseudo-terminal created by `script` (util-linux), which shows what is typed unless the command turns
/// that off, and types a line once the output ends with the prompt. Returns the output and the exit code, or `None` if
/// `script` is not installed.
fn on_terminal(
    session: &Session,
    args: &[&str],
    variables: &[(&str, &str)],
    typed: Option<(&str, &str)>,
) -> Option<(String, i32)> {
    let program = session.program(args);
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-E", "always", "-c", &line.join(" "), "/dev/null"]).current_dir(session.folder());
    script.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    script.env("TERM", "xterm").env("SHELL", "/bin/sh").envs(variables.iter().copied());
    script.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = script.spawn() else {
        report_skipped("script");
        return None;
    };
    // stdin stays open: closing it would send a Ctrl-D.
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut shown = Vec::new();
    if let Some((prompt, line)) = typed {
        let mut byte = [0];
        while !shown.ends_with(prompt.as_bytes()) {
            assert_eq!(stdout.read(&mut byte).unwrap(), 1, "no prompt: {}", text(&shown));
            shown.push(byte[0]);
        }
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    stdout.read_to_end(&mut shown).unwrap();
    let status = child.wait().unwrap();
    drop(stdin);
    Some((text(&shown), status.code().unwrap()))
}

#[test]
fn a_terminal_gets_colour() {
    let session = Session::new();
    session.account();
    let list = ["account", "list"];
    let Some((shown, code)) = on_terminal(&session, &list, &[], None) else { return };
    assert!(code == 0 && shown.contains("\u{1b}[1mID"), "{shown:?}");
    let plain = text(&session.output(&list).stdout);
    for variables in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (shown, _) = on_terminal(&session, &list, &[variables], None).unwrap();
        assert_eq!(shown.replace("\r\n", "\n"), plain, "{variables:?}");
    }
    let (shown, _) = on_terminal(&session, &["account", "list", "--json"], &[], None).unwrap();
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn commands_that_cannot_be_undone_ask_for_confirmation() {
    let session = Session::new();
    let account = session.account();
    let key = session.id(&["key", "create", "--account", &account, "--scopes", "read", "--name", "CI"]);
    let revoke = ["key", "revoke", &key];
    let is_revoked = || session.json(&["key", "show", &key])["revoked_at"].is_string();
    let Some((shown, code)) = on_terminal(&session, &revoke, &[], Some(("[y/N] ", "n"))) else { return };
    assert!(shown.contains("Revoke key CI (svc_live_") && shown.contains("…), never used? It is"), "{shown:?}");
    assert!(shown.contains("Cancelled: nothing was changed.") && code == 1 && !is_revoked(), "{shown:?}");
    let (shown, code) = on_terminal(&session, &revoke, &[], Some(("[y/N] ", "y"))).unwrap();
    assert!(code == 0 && is_revoked(), "{shown:?}");
    let (shown, code) = on_terminal(&session, &[&revoke[..], &["--yes"]].concat(), &[], None).unwrap();
    assert!(code == 0 && !shown.contains("[y/N]"), "{shown:?}");
}

#[test]
fn a_question_names_what_is_about_to_change_and_is_not_asked_about_what_is_not_there() {
    let session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let invoice = session.id(&["invoice", "create", "--contact", &contact, "--total", "9860.5"]);
    let webhook = session.id(&["webhook", "create", "--url", "https://example.com/hooks", "--events", "*"]);
    session.json(&["member", "add", "--email", "ada@example.com", "--role", "owner"]);
    session.json(&["invoice", "send", &invoice]);
    session.json(&["invoice", "pay", &invoice, "--amount", "1000"]);
    let platform_key = session.id(&["platform-key", "create", "--scopes", "*", "--name", "Back office"]);
    for (command, question) in [
        (&["invoice", "void", &invoice[24..]][..], "Void INV-0001, AUD 9,860.50, of Ada? "),
        (&["invoice", "refund", &invoice], "Record a refund of AUD 1,000.00 for INV-0001, AUD 9,860.50, of Ada? "),
        (&["invoice", "refund", &invoice, "--amount", "40"], "Record a refund of AUD 40.00 for INV-0001, "),
        (&["contact", "delete", &contact], "Delete contact Ada (ada@example.com)? "),
        (&["webhook", "delete", &webhook], "Delete the webhook to https://example.com/hooks? "),
        (
            &["delivery", "replay", "--subscription", &webhook, "--since", "1d"],
            "the webhook to https://example.com/hooks? ",
        ),
        (&["account", "suspend", &account], "Suspend account Harbour Plumbing? "),
        (&["member", "remove", "--email", "ada@example.com"], "Remove ada@example.com, owner of Harbour Plumbing? "),
        (&["platform-key", "revoke", &platform_key], "Revoke platform key Back office (svc_plat_"),
    ] {
        let Some((shown, code)) = on_terminal(&session, command, &[], Some(("[y/N] ", "n"))) else { return };
        assert!(shown.contains(question), "{command:?}: {shown}");
        assert!(code == 1 && shown.contains("Cancelled: nothing was changed."), "{command:?}: {shown}");
    }
    assert_eq!(session.json(&["invoice", "show", &invoice])["status"], "partial");
    for command in [
        &["invoice", "void", UNKNOWN_ID][..],
        &["key", "revoke", UNKNOWN_ID],
        &["contact", "delete", UNKNOWN_ID],
        &["webhook", "delete", UNKNOWN_ID],
        &["account", "suspend", UNKNOWN_ID],
        &["member", "remove", "--email", "nobody@example.com"],
        &["platform-key", "revoke", UNKNOWN_ID],
    ] {
        let (shown, code) = on_terminal(&session, command, &[], None).unwrap();
        assert!(code == 3 && !shown.contains("[y/N]"), "{command:?}: {shown}");
    }
}

#[test]
fn init_asks_on_a_terminal_for_what_is_not_given() {
    let session = Session::without_database();
    let init = ["init", "--currency", "NZD"];
    let typed = Some(("Time zone, such as Australia/Sydney [UTC]: ", "Pacific/Auckland"));
    let Some((shown, code)) = on_terminal(&session, &init, &[], typed) else { return };
    assert!(code == 0 && !shown.contains("Currency"), "{shown}");
    assert!(shown.contains("export SVC_KEY=") && shown.contains("Paste the lines above into your shell."), "{shown}");
    let account = &session.json(&["account", "list"])[0];
    assert_eq!((&account["time_zone"], &account["currency"]), (&"Pacific/Auckland".into(), &"NZD".into()));
    // Nothing is asked of a database that is refused, nor with --yes.
    let (shown, code) = on_terminal(&session, &["init"], &[], None).unwrap();
    assert!(code == 4 && !shown.contains("Time zone"), "{shown}");
    let (shown, code) =
        on_terminal(&session, &["init", "--yes", "--database-url", "sqlite://new.db"], &[], None).unwrap();
    assert!(code == 0 && !shown.contains("Time zone"), "{shown}");
    let account = &session.json(&["account", "list", "--database-url", "sqlite://new.db"])[0];
    assert_eq!((&account["time_zone"], &account["currency"]), (&"UTC".into(), &"AUD".into()));
}

#[test]
fn a_response_of_the_api_has_a_line_for_each_member_on_a_terminal() {
    let session = Session::new();
    session.account();
    let server = LiveServer::start(&sqlite_url(session.folder()), &[PlatformScope::All]);
    let variables = [("SVC_PLATFORM_KEY", server.key.as_str())];
    let list = ["api", "GET", "/contacts", "--server", &server.url];
    let Some((shown, code)) = on_terminal(&session, &list, &variables, None) else { return };
    assert_eq!((shown.as_str(), code), ("{\r\n  \"data\": [],\r\n  \"next_cursor\": null\r\n}\r\n", 0));
    let piped = session.program(&list).envs(variables).output().unwrap();
    assert_eq!(text(&piped.stdout), "{\"data\":[],\"next_cursor\":null}\n");
}

#[test]
fn an_import_shows_progress_only_on_a_terminal() {
    let session = Session::new();
    let account = session.account();
    let rows: String = (0..1_500).map(|n| format!("p{n}@example.com\n")).collect();
    session.file("people.csv", format!("email\n{rows}"));
    let import = ["import", "contacts", "--account", &account, "people.csv", "--no-events"];
    let piped = session.output(&[&import[..], &["--dry-run"]].concat());
    assert_eq!((piped.status.code(), text(&piped.stderr).as_str()), (Some(0), ""));
    let Some((shown, code)) = on_terminal(&session, &import, &[], None) else { return };
    assert!(code == 0 && shown.contains("Rows: 1500 read, 1500 added, "), "{shown:?}");
    assert!(shown.contains(" %  ") && shown.contains(" rows, ") && shown.contains("/s, "), "{shown:?}");
    assert!(shown.contains(" left"), "{shown:?}");
}

#[test]
fn a_key_that_is_typed_is_not_shown() {
    let session = Session::new();
    let server = LiveServer::start(&sqlite_url(session.folder()), &[PlatformScope::All]);
    let home = session.folder().to_str().unwrap();
    let login = ["login", "--server", &server.url];
    let typed = Some(("Platform key: ", server.key.as_str()));
    let Some((shown, code)) = on_terminal(&session, &login, &[("HOME", home)], typed) else { return };
    assert!(code == 0 && shown.starts_with("Platform key: \r\nStored the profile default"), "{shown:?}");
    assert!(!shown.contains(&server.key[..20]), "{shown:?}");
    let profile = session.folder().join(".config/svc/profiles/default.json");
    assert_eq!(std::fs::metadata(&profile).unwrap().permissions().mode() & 0o777, 0o600);
    let stored: serde_json::Value = serde_json::from_slice(&std::fs::read(&profile).unwrap()).unwrap();
    assert_eq!(stored["key"], *server.key);

    // A key that is refused is not shown either.
    let typed = Some(("Platform key: ", "svc_live_x"));
    let (shown, code) = on_terminal(&session, &login, &[("HOME", home)], typed).unwrap();
    assert!(code == 2 && !shown.contains("svc_live_x"), "{shown:?}");
}

/// Runs a command on a terminal of this width, and returns its output with escape characters shown as `^[`.
fn at_width(session: &Session, width: u32, args: &[&str], variables: &[(&str, &str)]) -> Option<String> {
    let program = session.program(args);
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut script = Command::new("script");
    let line = format!("stty rows 24 cols {width} && {}", line.join(" "));
    script.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(session.folder()).env_clear();
    script.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TERM", "xterm").env("SHELL", "/bin/sh");
    let Ok(output) = script.envs(variables.iter().copied()).stdin(Stdio::null()).output() else {
        report_skipped("script");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(text(&output.stdout).replace("\r\n", "\n").replace('\u{1b}', "^["))
}

#[test]
fn tables_fit_the_terminal() {
    let mut session = Session::new();
    session.account();
    session.file(
        "contacts.csv",
        "id,email,first_name,last_name,phone,company_name,city\n\
         0195a3c8-0000-7000-8000-00000000000a,ada.lovelace@analytical-engines.example,Ada,Lovelace,+61 2 5550 0100,\
         Analytical Engines,Sydney\n\
         0195a3c8-1000-7000-8000-00000000000b,alan@example.com,Alan,Turing,,,\n",
    );
    session.file(
        "invoices.csv",
        "id,invoice_number,contact_id,status,issue_date,due_date,total,currency,amount_paid\n\
         0195a3c9-0000-7000-8000-00000000000a,INV-0001,0195a3c8-0000-7000-8000-00000000000a,overdue,2099-01-01,2099-02-01,\
         99.95,AUD,\n\
         0195a3c9-0000-7200-8000-00000000000b,INV-0002,0195a3c8-1000-7000-8000-00000000000b,partial,2099-01-01,,12500,AUD,\
         2500\n",
    );
    session.json(&["import", "contacts", "contacts.csv"]);
    session.json(&["import", "invoices", "invoices.csv"]);
    for width in [80, 110, 160] {
        for name in ["contact", "invoice"] {
            let Some(shown) = at_width(&session, width, &[name, "list"], &[("NO_COLOR", "1")]) else { return };
            assert!(shown.lines().all(|line| line.chars().count() <= width as usize), "{shown}");
            session.append(&format!("{width} columns: svc {name} list\n{shown}\n"));
        }
    }
    let shown = at_width(&session, 110, &["invoice", "list"], &[]).unwrap();
    session.append(&format!("with colour: svc invoice list\n{shown}")).assert("terminal_tables");
    // What a table shows of an id is enough to name the record.
    assert_eq!(session.json(&["invoice", "show", "00000000000b"])["invoice_number"], "INV-0002");
}

#[test]
fn ids_of_one_second_are_told_apart_at_eighty_columns_and_name_their_records() {
    let session = Session::new();
    session.account();
    let numbers = ["100", "200", "300"].map(|total| {
        session.json(&["invoice", "create", "--total", total])["invoice_number"].as_str().unwrap().to_owned()
    });
    let Some(shown) = at_width(&session, 80, &["invoice", "list"], &[("NO_COLOR", "1")]) else { return };
    let rows: Vec<Vec<&str>> = shown.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), numbers.len(), "{shown}");
    for row in rows {
        let found = session.json(&["invoice", "show", row[0]]);
        assert_eq!(found["invoice_number"], row[1], "{shown}");
    }
}
