use std::process::{Command, Stdio};

use clap::CommandFactory as _;
use svc_cli::cli::Cli;

use crate::harness::{Session, report_skipped, text};

#[test]
fn output_for_people_and_programs() {
    let mut session = Session::new();
    session
        .run_truncated(&["man"])
        .run_truncated(&["man", "--json"])
        .run(&["man", "--directory", "share/man1"])
        .run_truncated(&["man", "--directory", "share/man1", "--json"])
        .run(&["man", "--directory", "/dev/null"])
        .assert("man");
}

/// The page of a command contains its options and examples; that of `svc` also contains the rest of its help.
#[test]
fn every_command_has_a_manual_page() {
    fn check(session: &Session, command: &clap::Command) {
        let name = command.get_display_name().unwrap_or("svc");
        let page = session.read_file(&format!("pages/{name}.1"));
        let plain = page.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\fR", "").replace("\\fB", "");
        let about = command.get_about().unwrap().to_string();
        assert!(plain.contains(&format!("{name} - {about}")), "{page}");
        let help = command.get_after_long_help().or_else(|| command.get_after_help()).unwrap().to_string();
        let lines = help.lines().map(|line| line.replace("\\", "\\\\").trim().trim_end_matches(':').to_owned());
        for line in lines.filter(|line| line.starts_with("svc ") || line.starts_with("SVC_")) {
            assert!(plain.contains(&line), "{name}: {line}\n{page}");
        }
        // The page of `svc` alone has the options of all commands.
        let is_shown = |it: &&clap::Arg| !it.is_hide_set() && (!it.is_global_set() || name == "svc");
        for option in command.get_arguments().filter(is_shown).filter_map(clap::Arg::get_long) {
            assert!(plain.contains(&format!("--{option}")), "{name}: {option}");
        }
        command.get_subcommands().for_each(|inner| check(session, inner));
    }
    let session = Session::new();
    let pages = session.json(&["man", "--directory", "pages"])["pages"].as_array().unwrap().len();
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    check(&session, &root);
    assert_eq!(std::fs::read_dir(session.folder().join("pages")).unwrap().count(), pages);
    let root = session.read_file("pages/svc.1");
    assert_eq!(text(&session.output(&["man"]).stdout), root);
    for heading in ["FIRST STEPS", "ENVIRONMENT", "EXIT CODES", "OPTIONS"] {
        assert!(root.contains(heading), "{heading}\n{root}");
    }
}

/// groff, where it is installed, reports no warnings.
#[test]
fn the_pages_are_valid_roff() {
    let session = Session::new();
    session.json(&["man", "--directory", "pages"]);
    for page in std::fs::read_dir(session.folder().join("pages")).unwrap() {
        let mut groff = Command::new("groff");
        groff.args(["-Kutf8", "-man", "-Tutf8", "-ww", "-rLL=100n"]).arg(page.unwrap().path()).stdin(Stdio::null());
        let Ok(output) = groff.output() else {
            report_skipped("groff");
            return;
        };
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    }
}
