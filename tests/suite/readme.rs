//! README's commands, run as they are pasted, and their output compared with what README shows.
//!
//! Each `##` section is a terminal with a shell of its own. A `text` block shows the output of the `sh` block before it: each
//! of its lines must be printed, where `…` stands for any text.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

const README: &str = include_str!("../../README.md");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const DEADLINE: Duration = Duration::from_secs(60);
/// What a shell prints after each block.
const END: &str = "end of the block";
/// Stands for cargo, as the programs are built already.
const CARGO: &str = r#"#!/bin/bash
case "$*" in
  "run -p svc-server -- "*) shift 4; exec svc-server "$@" ;;
  "install --locked --path "*) test -f "$ROOT/$4/Cargo.toml" ;;
  "run -p "*" --example "*) test -f "$ROOT/$3/examples/$5.rs" ;;
  "test --workspace"*) ;;
  *) echo "unknown to the test of README: cargo $*" >&2; exit 1 ;;
esac
"#;

#[derive(Debug)]
struct Block {
    language: &'static str,
    text: String,
}

/// Returns the code blocks of each section.
fn sections() -> Vec<Vec<Block>> {
    let mut sections = vec![Vec::new()];
    let mut open: Option<Block> = None;
    for line in README.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => sections.last_mut().unwrap().extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, Some(language)) => open = Some(Block { language, text: String::new() }),
            (None, None) if line.starts_with("## ") => sections.push(Vec::new()),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{open:?} is not closed");
    sections
}

/// A shell with what it has printed since the last block began.
struct Terminal {
    shell: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    printed: Vec<String>,
}

impl Terminal {
    fn open(folder: &Path, ports: Ports) -> Self {
        let mut command = Command::new("bash");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SVC_")) {
            command.env_remove(name);
        }
        let path = std::env::var("PATH").unwrap();
        command.arg("--norc").current_dir(folder).process_group(0);
        command.env("PATH", format!("{}:{path}", folder.join("bin").display())).env("ROOT", ROOT);
        command.env("SVC_LISTEN", format!("127.0.0.1:{}", ports.server)).env("SVC_OPS_LISTEN", "127.0.0.1:0");
        command.env("SVC_URL", format!("http://127.0.0.1:{}", ports.server));
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdin(Stdio::piped()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut shell = command.spawn().unwrap();
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let input = shell.stdin.take().unwrap();
        let mut terminal = Self { shell, input, lines, printed: Vec::new() };
        terminal.paste("trap 'echo \"failed: $BASH_COMMAND\"' ERR\n");
        terminal
    }

    fn paste(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// Runs a block until its last command that is not in the background has ended.
    fn run(&mut self, block: &str) {
        self.printed.clear();
        self.paste(&format!("{block}printf '\\n{END}\\n'\n"));
        self.wait_for(END);
        let failed = self.printed.iter().any(|line| line.starts_with("failed: "));
        assert!(!failed, "{block}{}", self.printed.join("\n"));
    }

    /// Waits until a line has been printed that matches a pattern.
    fn wait_for(&mut self, pattern: &str) {
        let deadline = Instant::now() + DEADLINE;
        while !self.printed.iter().any(|line| matches(pattern, line)) {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.printed.push(line),
                Err(_) => panic!("{pattern:?} was not printed:\n{}", self.printed.join("\n")),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The group has what runs in the background.
        let group = format!("-{}", self.shell.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
        let _ = self.shell.wait();
    }
}

/// Returns whether a line is as README shows it.
fn matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.trim_end().split('…');
    let Some(mut rest) = line.trim_end().strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(last) = last.replace(part) {
            let Some(at) = rest.find(last) else { return false };
            rest = &rest[at + last.len()..];
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

/// Free ports in place of those in README, which something else may use.
#[derive(Clone, Copy)]
struct Ports {
    server: u16,
    receiver: u16,
}

impl Ports {
    fn free() -> Self {
        let [server, receiver] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let port = |listener: TcpListener| listener.local_addr().unwrap().port();
        Self { server: port(server), receiver: port(receiver) }
    }

    fn put(self, text: &str) -> String {
        let text = text.replace("127.0.0.1:8080", &format!("127.0.0.1:{}", self.server));
        text.replace("127.0.0.1:9000", &format!("127.0.0.1:{}", self.receiver))
            .replace("svc listen ", &format!("svc listen --port {} ", self.receiver))
    }
}

#[test]
fn the_commands_of_the_readme_do_what_it_shows() {
    for program in ["bash", "curl"] {
        if Command::new(program).arg("--version").stdout(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("CI").is_none(), "{program} is not installed; CI runs every test");
            eprintln!("skipped: {program} is not installed");
            return;
        }
    }
    let mut shown = 0;
    for blocks in sections() {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_svc-server-tested"), bin.join("svc-server")).unwrap();
        symlink(env!("CARGO_BIN_EXE_svc-tested"), bin.join("svc")).unwrap();
        std::fs::write(bin.join("cargo"), CARGO).unwrap();
        std::fs::set_permissions(bin.join("cargo"), std::fs::Permissions::from_mode(0o755)).unwrap();

        let ports = Ports::free();
        let mut demo = None;
        let mut terminal = Terminal::open(folder.path(), ports);
        for block in blocks {
            let text = ports.put(&block.text);
            match block.language {
                // The demo runs until Ctrl-C in a terminal of its own. The lines that it exports are pasted into the other.
                "sh" if text.trim_end().ends_with("--demo") => {
                    let mut first = Terminal::open(folder.path(), ports);
                    first.paste(&text);
                    first.wait_for("Stop with Ctrl-C.");
                    let exports: Vec<&str> =
                        first.printed.iter().map(String::as_str).filter(|line| line.starts_with("export ")).collect();
                    assert_eq!(exports.len(), 4, "README says how many there are");
                    terminal.run(&format!("{}\n", exports.join("\n")));
                    demo = Some(first);
                }
                "sh" => terminal.run(&text),
                "text" => {
                    for line in text.lines() {
                        terminal.wait_for(line);
                        shown += 1;
                    }
                }
                other => panic!("a block of README has the language {other:?}"),
            }
        }
        drop(demo);
    }
    assert!(shown >= 5, "README shows what its commands print");
}

#[test]
fn dots_stand_for_any_text() {
    for (pattern, line, want) in [
        ("a…c", "abc", true),
        ("a…c", "ac", true),
        ("a…", "a", true),
        ("…", "anything", true),
        ("…b…d…", "abcde", true),
        ("a…a", "a", false),
        ("…b…b", "abc", false),
        ("a", "ab", false),
        ("", "", true),
        ("ab…", "ba", false),
    ] {
        assert_eq!(matches(pattern, line), want, "{pattern:?} {line:?}");
    }
}
