//! Behaviour that all commands share.

use crate::harness::{Session, text};

#[test]
fn a_group_without_a_command_prints_its_help() {
    let mut session = Session::new();
    let with_env = session.program(&["account"]).env("SVC_DATABASE_URL", "sqlite://other.db").output().unwrap();
    assert_eq!(with_env.status.code(), Some(0));
    assert_eq!(with_env.stdout, session.output(&["account", "-h"]).stdout);
    session
        .run(&[])
        .run(&["key"])
        .run(&["--json"])
        .run(&["tenent"])
        .run(&["tenat", "create"])
        .run(&["account", "craete", "--name", "Ada"])
        .run(&["account", "list", "--jsn"])
        .assert("program");
}

#[test]
fn an_option_that_another_leaves_without_effect_is_refused() {
    let mut session = Session::new();
    let account = session.account();
    let secret = "whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=";
    for options in [&["--since", "2d"][..], &["--until", "1d"], &["--status", "failed"], &["--missed"], &["--wait"]] {
        session.run(&[&["delivery", "replay", "0195a3c8"], options].concat());
    }
    session
        .run(&["dashboard", "link", "--operator", "--account", &account])
        .run(&["listen", "--secret", secret, "--account", &account])
        .assert("without_effect");
    // The account of the environment is for all commands.
    let link = session.program(&["dashboard", "link", "--operator"]).env("SVC_TENANT", account).output().unwrap();
    assert_eq!(link.status.code(), Some(0), "{}", text(&link.stderr));
}

#[test]
fn the_database_is_created_and_migrated() {
    let mut session = Session::without_database();
    session
        .run(&["db", "migrate"])
        .run(&["db", "migrate"])
        .run(&["db", "migrate", "--json"])
        .run(&["db", "migrate", "--database-url", "sqlite://other.db", "--json"])
        .assert("db");
}

#[test]
fn a_missing_database_is_created_by_init_and_migrate_alone() {
    let mut session = Session::without_database();
    session
        .run(&["account", "list"])
        .run(&["account", "create", "--name", "Harbour Plumbing"])
        .run(&["db", "check"])
        .run(&["db", "stats"])
        .run(&["db", "backup", "copy.db"])
        .run(&["db", "prune", "--yes"])
        .run(&["account", "list", "--database-url", "sqlite://folder/svc.db"])
        .run(&["init", "--database-url", "sqlite://folder/svc.db"]);
    assert_eq!(session.files(), [""; 0]);
    session.json(&["db", "migrate"]);
    session.run(&["account", "list"]).assert("missing_database");
    assert_eq!(session.files(), ["svc.db", "svc.db.key"]);
}

#[test]
fn init_creates_a_database_with_an_account_and_a_key() {
    let mut session = Session::without_database();
    session.run(&["init"]).run(&["account", "list"]).run(&["init"]).run(&["init", "--name", ""]).run(&[
        "init",
        "--name",
        "Harbour Plumbing",
        "--json",
        "--database-url",
        "sqlite://other.db",
    ]);
    // The shell sets what it prints, also where a path must be quoted.
    let (url, database) = ("https://api.example.com", "sqlite://it's here.db");
    let output = session.output(&["init", "--name", "Ada's", "--url", url, "--database-url", database]);
    assert!(text(&output.stderr).contains("Created the account Ada's"), "{output:?}");
    let script =
        format!("{}\nprintf '%s\\n' \"$SVC_DATABASE_URL\" $SVC_URL $SVC_TENANT $SVC_KEY", text(&output.stdout));
    let shell = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let variables = text(&shell.stdout);
    let [database_url, url, account, key] = variables.lines().collect::<Vec<_>>()[..] else { panic!("{variables}") };
    assert!(database_url.starts_with("sqlite:///") && database_url.ends_with("/it's here.db"), "{database_url}");
    assert!(url == "https://api.example.com" && account.len() == 36 && key.starts_with("svc_live_"), "{variables}");
    session.run(&["account", "show", account, "--database-url", database_url]);
    session.assert("init");
}

#[test]
fn init_takes_the_time_zone_and_the_currency_and_a_shell_takes_what_it_prints() {
    let session = Session::without_database();
    let program = session.program(&[]);
    let script = "eval \"$(\"$0\" init --time-zone Pacific/Auckland --currency NZD 2> note)\" && \"$0\" account show \"$SVC_TENANT\" --json";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).arg(program.get_program()).current_dir(session.folder());
    let output = shell.env_remove("SVC_DATABASE_URL").env_remove("SVC_URL").output().unwrap();
    let account: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&account["time_zone"], &account["currency"]), (&"Pacific/Auckland".into(), &"NZD".into()));
    let note = session.read_file("note");
    assert!(note.starts_with("note: ") && note.contains("svc open --browser"), "{note}");
    assert!(!note.contains("Paste"), "the shell has read the lines: {note}");
    let refused = session.output(&["init", "--time-zone", "Mars/Olympus", "--database-url", "sqlite://other.db"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(!session.files().contains(&"other.db".to_owned()));
}

#[test]
fn what_was_meant_is_suggested() {
    let mut session = Session::new();
    for line in [
        "webhook pause",
        "webhook remove",
        "contact new",
        "booking cancel",
        "customers",
        "logs",
        "webhook create --url https://example.com --events contact.*",
        "webhook create --url https://example.com --events Contact",
        "listen --events quote.*",
        "trigger invoice",
        "event list --kind job.*",
        "event emit --data x --kind stay",
        "booking create --service_nam x",
        "booking create --start 2099-03-14T09:00:00Z",
    ] {
        session.run(&line.split(' ').collect::<Vec<_>>());
    }
    session.assert("suggestions");
}

#[test]
fn an_unreachable_database_and_an_invalid_url_have_different_exit_codes() {
    let mut session = Session::new();
    session
        .run(&["account", "list", "--database-url", "sqlite://missing/folder/svc.db"])
        .run(&["db", "migrate", "--database-url", "sqlite://missing/folder/svc.db"])
        .run(&["account", "list", "--database-url", "sqlite://."])
        .run(&["account", "list", "--database-url", "mysql://localhost/svc"])
        .run(&["account", "list", "--database-url", ""])
        .assert("database_url");
}

#[test]
fn the_environment_names_the_database() {
    let session = Session::new();
    session.account();
    session.json(&["db", "migrate", "--database-url", "sqlite://other.db"]);
    let list = |url| {
        let output = session.program(&["account", "list", "--json"]).env("SVC_DATABASE_URL", url).output().unwrap();
        text(&output.stdout)
    };
    assert_eq!(list("sqlite://other.db"), "[]\n");
    assert!(list("sqlite://svc.db").contains("Harbour Plumbing"));
}
