use std::process::{Command, Output};

use crate::harness::{Session, report_skipped, text};

#[test]
fn every_shell_has_a_completion_script() {
    let session = Session::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = session.output(&["completions", shell]).stdout;
        assert!(text(&script).contains("rotate"), "{shell}");
        let json = session.json(&["completions", shell]);
        assert_eq!((json["shell"].as_str(), json["script"].as_str()), (Some(shell), Some(text(&script).as_str())));
    }
    assert_eq!(session.output(&["completions", "tcsh"]).status.code(), Some(2));
    assert!(!session.output(&["completions", "bash"]).stdout.is_empty());
}

#[test]
fn output_for_people_and_programs() {
    let mut session = Session::new();
    session
        .run_truncated(&["completions", "bash"])
        .run_truncated(&["completions", "bash", "--json"])
        .assert("completions");
}

/// Runs a shell and returns its output, or `None` if the shell is not installed.
fn shell(session: &Session, shell: &str, args: &[&str]) -> Option<Output> {
    let output = Command::new(shell).args(args).current_dir(session.folder()).output();
    if output.is_err() {
        report_skipped(shell);
    }
    output.ok()
}

#[test]
fn shells_accept_their_completion_scripts() {
    let session = Session::new();
    for (name, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        session.file(name, session.output(&["completions", name]).stdout);
        let Some(output) = shell(&session, name, &[check, name]) else { continue };
        assert!(output.status.success() && output.stderr.is_empty(), "{name}: {output:?}");
    }
}

/// Returns the completions that bash offers for the last of these words.
fn completions(session: &Session, words: &[&str]) -> Option<Vec<String>> {
    let script = format!(
        "source ./bash; COMP_WORDS=({}); COMP_CWORD={}; _svc svc {:?} {:?}; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let output = shell(session, "bash", &["--norc", "-c", &script])?;
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    Some(text(&output.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn bash_completes_commands_options_and_values() {
    let session = Session::new();
    session.file("bash", session.output(&["completions", "bash"]).stdout);
    for (words, want) in [
        (&["svc", "ac"][..], &["account"][..]),
        (&["svc", "account", "cr"], &["create"]),
        (&["svc", "delivery", "re"], &["replay", "replays"]),
        (&["svc", "account", "create", "--time"], &["--time-zone"]),
        (&["svc", "export", "jo"], &["jobs"]),
        (&["svc", "delivery", "list", "--status", "fa"], &["failed"]),
        (&["svc", "event", "emit", "--kind", "stay.cr"], &["stay.created"]),
    ] {
        let Some(found) = completions(&session, words) else { return };
        assert_eq!(found, want, "{words:?}");
    }
}
