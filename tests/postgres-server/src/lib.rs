//! A PostgreSQL server for tests: one per test process, made in a temporary folder and gone with the process.
//!
//! A shell script does the work and obeys commands on its standard input. When the test process ends, however it
//! ends, that pipe closes; then the script stops the server and removes the folder.
//!
//! ```no_run
//! let Some(server) = svc_postgres_server::server() else { return };
//! let url = server.database();
//! ```

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

const SCRIPT: &str = include_str!("server.sh");

/// The server of this process, started at the first call.
///
/// `None`, with a loud word, where PostgreSQL is not installed; but where the environment variable `CI` is set, that
/// is a failure, so that nobody believes in tests that never ran.
///
/// # Panics
/// When the server does not start, or when it is not installed and `CI` is set.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| start(Disk::Waited, Path::new("/tmp"))).as_ref()
}

/// The same, but a server that does not wait for its disk: for tests that make hundreds of databases, and none that
/// asks what a crash leaves.
///
/// # Panics
/// As [`server`].
pub fn quick_server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| start(Disk::Trusted, Path::new("/tmp"))).as_ref()
}

/// A server of the caller's own, to be stopped and started while other tests use [`server`]. It is gone when it is
/// dropped.
///
/// # Panics
/// As [`server`].
pub fn another() -> Option<Server> {
    another_in(Path::new("/tmp"))
}

/// The same, with its data in a folder, whose path must be short and which any user may write to.
///
/// # Panics
/// As [`server`].
pub fn another_in(parent: &Path) -> Option<Server> {
    start(Disk::Waited, parent)
}

/// What a server takes for written.
#[derive(Clone, Copy)]
enum Disk {
    /// What is on the disk, as in production.
    Waited,
    /// What the operating system has.
    Trusted,
}

/// Whether there is a server to be started, with a loud word if there is none.
///
/// # Panics
/// When it is not installed and `CI` is set.
pub fn is_installed() -> bool {
    found().is_some()
}

#[expect(clippy::print_stderr, reason = "for tests only")]
fn found() -> Option<PathBuf> {
    let programs = programs();
    if programs.is_none() {
        assert!(std::env::var_os("CI").is_none(), "PostgreSQL is not installed, so its tests cannot run");
        eprintln!("\n*** SKIPPED: PostgreSQL (initdb, postgres) is not installed, so this test did not run ***\n");
    }
    programs
}

#[expect(clippy::panic, reason = "for tests only")]
fn start(disk: Disk, parent: &Path) -> Option<Server> {
    let programs = found()?;
    Some(
        Server::start_new(&programs, disk, parent)
            .unwrap_or_else(|error| panic!("PostgreSQL in {programs:?}: {error}")),
    )
}

/// The folder with PostgreSQL's programs, if it is installed: that of the path, or where Debian puts them, the newest
/// version first.
pub fn programs() -> Option<PathBuf> {
    let has_both = |folder: &PathBuf| folder.join("initdb").exists() && folder.join("postgres").exists();
    // Links in the path lead to the folder with all the programs.
    let resolved = |folder: PathBuf| {
        let program = folder.join("postgres").canonicalize().ok()?;
        program.parent().map(Path::to_path_buf)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).filter(has_both).find_map(resolved);
    in_path.filter(has_both).or_else(|| {
        let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
        let mut folders: Vec<PathBuf> = versions.flatten().map(|version| version.path().join("bin")).collect();
        folders.retain(has_both);
        folders.sort_by_key(|folder| {
            let version = folder.parent().and_then(Path::file_name).and_then(|name| name.to_str());
            version.and_then(|version| version.parse::<u32>().ok())
        });
        folders.pop()
    })
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    script: Mutex<Script>,
    folder: String,
    port: u16,
}

#[derive(Debug)]
struct Script {
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    databases: u32,
    /// Copies that were given back, each with its original.
    free: Vec<(String, String)>,
    // Not killed and not waited for: it outlives this process by the time that it needs to clean up.
    _child: Child,
}

impl Server {
    fn start_new(programs: &Path, disk: Disk, parent: &Path) -> io::Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = as_ordinary_user();
        command.args(["sh", "-c", SCRIPT, "postgres-server"]).arg(programs).arg(port.to_string());
        command.arg(match disk {
            Disk::Waited => "on",
            Disk::Trusted => "off",
        });
        command.arg(parent);
        // Its own folder may be closed to that user.
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (Some(commands), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the script has no pipes"));
        };
        let mut script =
            Script { commands, answers: BufReader::new(answers), databases: 0, free: Vec::new(), _child: child };
        let folder = script.answer()?;
        Ok(Self { script: Mutex::new(script), folder, port })
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::panic, reason = "for tests only")]
    fn order(&self, command: &str) {
        if let Err(error) = self.script().order(command) {
            panic!("PostgreSQL, {command}: {error}");
        }
    }

    /// Makes an empty database and returns its URL, by way of TCP and without TLS.
    ///
    /// # Panics
    /// When that fails.
    pub fn database(&self) -> String {
        format!("postgres://svc@127.0.0.1:{}/{}?sslmode=disable", self.port, self.new_database())
    }

    /// The same by way of the Unix socket.
    ///
    /// # Panics
    /// When that fails.
    pub fn database_on_socket(&self) -> String {
        format!("postgres://svc@/{}?host={}&port={}", self.new_database(), self.folder, self.port)
    }

    /// Makes a copy of a database and returns its URL. Whoever is connected to `original` must be about to leave.
    ///
    /// # Panics
    /// When that fails.
    pub fn copy(&self, original: &str) -> String {
        let template = name_in(original);
        let free = {
            let mut script = self.script();
            let at = script.free.iter().position(|(of, _)| of == template);
            at.map(|at| script.free.swap_remove(at).1)
        };
        let name = match free {
            Some(name) => {
                self.order(&format!("restore {name} {template}"));
                name
            }
            None => {
                let name = self.next_name();
                self.order(&format!("copy {name} {template}"));
                name
            }
        };
        original.replace(&format!("/{template}?"), &format!("/{name}?"))
    }

    /// Takes a copy back that nobody needs any more; a later copy of the same original may use it.
    pub fn give_back(&self, original: &str, copy: &str) {
        self.script().free.push((name_in(original).to_owned(), name_in(copy).to_owned()));
    }

    /// The file with the authority of its certificate, which is made out for `localhost`; `None` where there is no
    /// program to make certificates with, so that the server knows no TLS.
    pub fn authority(&self) -> Option<PathBuf> {
        Some(Path::new(&self.folder).join("data/authority.crt")).filter(|path| path.exists())
    }

    /// Holds its log, `server.log`, and its `data`.
    pub fn folder(&self) -> &Path {
        Path::new(&self.folder)
    }

    fn new_database(&self) -> String {
        let name = self.next_name();
        self.order(&format!("database {name}"));
        name
    }

    fn next_name(&self) -> String {
        let mut script = self.script();
        script.databases += 1;
        format!("svc_{}", script.databases)
    }

    /// Stops the server as an operator does: connections end, what was acknowledged is kept.
    ///
    /// # Panics
    /// When that fails.
    pub fn stop(&self) {
        self.order("stop fast");
    }

    /// Stops the server as a crash does.
    ///
    /// # Panics
    /// When that fails.
    pub fn crash(&self) {
        self.order("stop immediate");
    }

    /// Starts it again unless it runs, at the same address.
    ///
    /// # Panics
    /// When that fails.
    pub fn start(&self) {
        self.order("start");
    }
}

impl Script {
    fn order(&mut self, command: &str) -> io::Result<()> {
        writeln!(self.commands, "{command}")?;
        self.answer().map(drop)
    }

    /// `ok` and a text, or what went wrong.
    fn answer(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        match line.trim_end().split_once(' ') {
            Some(("ok", text)) => Ok(text.to_owned()),
            _ => Err(io::Error::other(format!("the script said {line:?}"))),
        }
    }
}

/// The name of the database in one of the URLs above.
fn name_in(url: &str) -> &str {
    let front = url.split('?').next().unwrap_or(url);
    front.rsplit('/').next().unwrap_or(front)
}

/// PostgreSQL refuses to run as root; then it runs as the user that its package made, or as nobody.
fn as_ordinary_user() -> Command {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    if !is_root {
        return Command::new("env");
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = if users.lines().any(|line| line.starts_with("postgres:")) { "postgres" } else { "nobody" };
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={}", group_of(user, &users))]).arg("--clear-groups");
    command
}

/// The fourth field of the user's line in `/etc/passwd`.
fn group_of(user: &str, users: &str) -> String {
    let line = users.lines().find_map(|line| line.strip_prefix(user)?.strip_prefix(':'));
    line.and_then(|rest| rest.split(':').nth(2)).unwrap_or("65534").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_stops_and_starts_again() {
        let Some(server) = server() else { return };
        let first = server.database();
        assert_ne!(first, server.database());
        let copy = server.copy(&first);
        assert!(copy.ends_with("/svc_3?sslmode=disable"), "{copy}");
        server.give_back(&first, &copy);
        assert_eq!(server.copy(&first), copy);
        assert_ne!(server.copy(&first), copy);
        let listens = || std::net::TcpStream::connect(("127.0.0.1", server.port)).is_ok();
        assert!(listens());
        server.stop();
        assert!(!listens());
        server.start();
        server.crash();
        server.start();
        assert!(listens());
    }
}
