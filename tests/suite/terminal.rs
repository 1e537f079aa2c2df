//! Terminals, in which the tests run the commands of the documentation as they are pasted.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const DEADLINE: Duration = Duration::from_secs(60);
/// What a shell prints after each block.
const END: &str = "end of the block";
/// Stands for cargo, as the programs are built already.
const CARGO: &str = r#"#!/bin/bash
case "$*" in
  "run -p svc-server -- "*) shift 4; exec svc-server "$@" ;;
  "install --locked --path "*) test -f "$ROOT/$4/Cargo.toml" ;;
  "build") ;;
  "run -p svc-examples --bin "*) compgen -G "$ROOT/svc-*/examples/$5.rs" >/dev/null ;;
  "test --workspace"*) ;;
  *) echo "unknown to the tests of the documentation: cargo $*" >&2; exit 1 ;;
esac
"#;

/// Returns whether programs are installed, and says which one is not.
pub(crate) fn are_installed(programs: &[&str]) -> bool {
    for program in programs {
        if Command::new(program).arg("--version").stdout(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("CI").is_none(), "{program} is not installed; CI runs every test");
            // Written to the terminal directly, because the test harness hides the output of passing tests.
            let _ = writeln!(std::io::stderr(), "\nSKIPPED: {program} is not installed");
            return false;
        }
    }
    true
}

/// Puts the programs into the folder `bin`, where a terminal finds them.
pub(crate) fn install_programs(folder: &Path) {
    let bin = folder.join("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_svc-server-tested"), bin.join("svc-server")).unwrap();
    symlink(env!("CARGO_BIN_EXE_svc-tested"), bin.join("svc")).unwrap();
    install_script(folder, "cargo", CARGO);
}

/// Puts a script into the folder `bin`.
fn install_script(folder: &Path, name: &str, script: &str) {
    let path = folder.join("bin").join(name);
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A block of code of a page.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) language: &'static str,
    pub(crate) text: String,
}

/// Returns the code blocks of each `##` section of a page. Those in lists are indented.
pub(crate) fn sections(page: &'static str) -> Vec<Vec<Block>> {
    let mut sections = vec![Vec::new()];
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
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
pub(crate) struct Terminal {
    shell: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    pub(crate) printed: Vec<String>,
}

impl Terminal {
    pub(crate) fn open(folder: &Path, ports: Ports) -> Self {
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

    /// Starts the demo with a command, which runs until Ctrl-C in a terminal of its own. Returns it with the lines that it
    /// prints for the other terminals.
    pub(crate) fn demo(folder: &Path, ports: Ports, command: &str) -> (Self, String) {
        let mut terminal = Self::open(folder, ports);
        terminal.paste(command);
        terminal.wait_for("Stop with Ctrl-C.");
        let exports: Vec<&str> =
            terminal.printed.iter().map(String::as_str).filter(|line| line.starts_with("export ")).collect();
        assert_eq!(exports.len(), 4, "the pages say how many there are");
        let exports = format!("{}\n", exports.join("\n"));
        (terminal, exports)
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// Runs a block until its last command that is not in the background has ended.
    pub(crate) fn run(&mut self, block: &str) {
        self.printed.clear();
        self.paste(&format!("{block}printf '\\n{END}\\n'\n"));
        self.wait_for(END);
        let failed = self.printed.iter().any(|line| line.starts_with("failed: "));
        assert!(!failed, "{block}{}", self.printed.join("\n"));
    }

    /// Waits until a line has been printed that matches a pattern.
    pub(crate) fn wait_for(&mut self, pattern: &str) {
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

/// Returns whether a line is as a page shows it.
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

/// Free ports in place of those on the pages, which something else may use.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) server: u16,
    pub(crate) receiver: u16,
}

impl Ports {
    pub(crate) fn free() -> Self {
        let [server, receiver] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let port = |listener: TcpListener| listener.local_addr().unwrap().port();
        Self { server: port(server), receiver: port(receiver) }
    }

    pub(crate) fn put(self, text: &str) -> String {
        let text = text.replace("127.0.0.1:8080", &format!("127.0.0.1:{}", self.server));
        text.replace("127.0.0.1:9000", &format!("127.0.0.1:{}", self.receiver))
            .replace("svc listen ", &format!("svc listen --port {} ", self.receiver))
    }
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
