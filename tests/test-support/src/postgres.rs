//! A temporary PostgreSQL server for tests, one per test process.
//!
//! A shell script creates the server and runs commands from its standard input. When the test process ends, for
//! whatever reason, that pipe closes; then the script stops the server and removes its folder.
//!
//! ```no_run
//! let Some(server) = svc_test_support::postgres::server() else { return };
//! let url = server.database();
//! ```

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

const SCRIPT: &str = include_str!("postgres/server.sh");

/// Distributes the tables of svc as on Citus: a stand-in for Citus, and the script for operators.
pub const DISTRIBUTE: &str = concat!(include_str!("postgres/citus.sql"), include_str!("../../../ops/citus.sql"));

/// The script for operators alone, for a database that [`DISTRIBUTE`] was run on.
pub const DISTRIBUTE_AGAIN: &str = include_str!("../../../ops/citus.sql");

/// The environment variable that chooses the database of tests: `postgres`, `citus` for PostgreSQL with tables that
/// are distributed as on Citus, or SQLite for any other value.
pub const TEST_DATABASE: &str = "SVC_TEST_DATABASE";

/// Runs the tests of this executable once more, on another database, so that nothing is built or linked twice. The arguments
/// select them, and at least `minimum` must run, so that a wrong selection does not pass unnoticed.
///
/// Does nothing but print a notice if PostgreSQL is not installed.
///
/// # Panics
///
/// If a test fails or too few run, and as [`server`].
pub fn run_tests_on(database: &str, arguments: &[&str], minimum: usize) {
    // One run at a time, as each keeps all cores busy.
    static TURN: Mutex<()> = Mutex::new(());
    if !is_installed() {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tests = Command::new(std::env::current_exe().expect("the path of the tests is known"));
    tests.args(arguments).env(TEST_DATABASE, database).env("INSTA_UPDATE", "no");
    let output = tests.output().expect("the tests start");
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "on {database}:\n{printed}");
    let passed = printed.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ok")).count();
    assert!(passed >= minimum, "only {passed} tests ran on {database}:\n{printed}");
}

/// Returns the server of this process, which the first call starts.
///
/// Returns `None` and prints a notice if PostgreSQL is not installed.
///
/// # Panics
///
/// If the server does not start, or if PostgreSQL is not installed and the environment variable `CI` is set, so that
/// a missing test does not pass unnoticed.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| start(Disk::Waited, Path::new("/tmp"), None)).as_ref()
}

/// Returns a server that does not wait for its disk (`fsync = off`), for tests that create hundreds of databases and
/// do not test crashes.
///
/// # Panics
///
/// As [`server`].
pub fn quick_server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| start(Disk::Trusted, Path::new("/tmp"), None)).as_ref()
}

/// Starts a further server that the caller can stop and start while other tests use [`server`]. It is removed when it
/// is dropped.
///
/// # Panics
///
/// As [`server`].
pub fn another() -> Option<Server> {
    another_in(Path::new("/tmp"))
}

/// Starts a further server as [`another`] does, with its data in `parent`, whose path must be short and which any user must be able
/// to write to.
///
/// # Panics
///
/// As [`server`].
pub fn another_in(parent: &Path) -> Option<Server> {
    start(Disk::Waited, parent, None)
}

/// When the server treats data as written.
#[derive(Clone, Copy)]
enum Disk {
    /// When it is on the disk, as in production.
    Waited,
    /// When the operating system has it.
    Trusted,
}

/// Returns whether PostgreSQL is installed, and prints a notice if it is not.
///
/// # Panics
///
/// If it is not installed and `CI` is set.
pub fn is_installed() -> bool {
    installed_programs().is_some()
}

fn installed_programs() -> Option<PathBuf> {
    or_notice(programs(), "PostgreSQL (initdb, postgres)")
}

/// Returns PgBouncer's program, and prints a notice if it is not installed.
///
/// # Panics
///
/// If it is not installed and `CI` is set.
pub fn pgbouncer() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian has it where the `PATH` of ordinary users does not lead.
    let mut folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let program = folders.find_map(|folder| Some(folder.join("pgbouncer")).filter(|program| program.exists()));
    or_notice(program, "PgBouncer (pgbouncer)")
}
fn or_notice(program: Option<PathBuf>, name: &str) -> Option<PathBuf> {
    if program.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{name} is not installed, so its tests cannot run");
        eprintln!("\n*** SKIPPED: {name} is not installed, so this test did not run ***\n");
    }
    program
}
fn start(disk: Disk, parent: &Path, primary: Option<&Server>) -> Option<Server> {
    let programs = installed_programs()?;
    // Another program can take the port before PostgreSQL does.
    let start = || Server::start_new(&programs, disk, parent, primary);
    let server = start().or_else(|_| start()).or_else(|_| start());
    Some(server.unwrap_or_else(|error| panic!("PostgreSQL in {programs:?}: {error}")))
}

/// Returns the folder with PostgreSQL's programs, if it is installed: the one in the `PATH`, or the newest version
/// where Debian installs it.
pub fn programs() -> Option<PathBuf> {
    let has_both = |folder: &PathBuf| folder.join("initdb").exists() && folder.join("postgres").exists();
    // Links in the `PATH` lead to the folder with all the programs.
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
    results: BufReader<ChildStdout>,
    databases: u32,
    /// Copies that are no longer used, each with its original.
    free: Vec<(String, String)>,
    // Neither killed nor awaited: it outlives this process until it has cleaned up.
    _child: Child,
}

impl Server {
    fn start_new(programs: &Path, disk: Disk, parent: &Path, primary: Option<&Self>) -> io::Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = as_ordinary_user();
        command.args(["sh", "-c", SCRIPT, "postgres-server"]).arg(programs).arg(port.to_string());
        command.arg(match disk {
            Disk::Waited => "on",
            Disk::Trusted => "off",
        });
        command.arg(parent).arg(primary.map_or(String::new(), |primary| primary.port.to_string()));
        // The user that runs PostgreSQL may not have access to the folder of the script.
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (Some(commands), Some(results)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the script has no pipes"));
        };
        let mut script =
            Script { commands, results: BufReader::new(results), databases: 0, free: Vec::new(), _child: child };
        let folder = script.read_result()?;
        Ok(Self { script: Mutex::new(script), folder, port })
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn run_command(&self, command: &str) {
        if let Err(error) = self.script().run_command(command) {
            panic!("PostgreSQL, {command}: {error}");
        }
    }

    /// Creates an empty database and returns its URL for TCP without TLS.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn database(&self) -> String {
        format!("postgres://svc@127.0.0.1:{}/{}?sslmode=disable", self.port, self.new_database())
    }

    /// Creates an empty database and returns its URL for the Unix socket.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn database_on_socket(&self) -> String {
        format!("postgres://svc@/{}?host={}&port={}", self.new_database(), self.folder, self.port)
    }

    /// Creates a copy of a database and returns its URL. Connections to `original` must be about to close.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn copy(&self, original: &str) -> String {
        let template = name_in(original);
        let free = {
            let mut script = self.script();
            let at = script.free.iter().position(|(of, _)| of == template);
            at.map(|at| script.free.swap_remove(at).1)
        };
        let name = match free {
            Some(name) => {
                self.run_command(&format!("restore {name} {template}"));
                name
            }
            None => {
                let name = self.next_name();
                self.run_command(&format!("copy {name} {template}"));
                name
            }
        };
        original.replace(&format!("/{template}?"), &format!("/{name}?"))
    }

    /// Returns a copy that is no longer used. A later copy of the same original may reuse it.
    pub fn give_back(&self, original: &str, copy: &str) {
        self.script().free.push((name_in(original).to_owned(), name_in(copy).to_owned()));
    }

    /// Returns the file with the certificate authority of the server's certificate for `localhost`. Returns `None` if
    /// `openssl` is not installed; then the server does not use TLS.
    pub fn authority(&self) -> Option<PathBuf> {
        Some(Path::new(&self.folder).join("data/authority.crt")).filter(|path| path.exists())
    }

    /// Returns the folder of its log, `server.log`, and of its `data`.
    pub fn folder(&self) -> &Path {
        Path::new(&self.folder)
    }

    fn new_database(&self) -> String {
        let name = self.next_name();
        self.run_command(&format!("database {name}"));
        name
    }

    fn next_name(&self) -> String {
        let mut script = self.script();
        script.databases += 1;
        format!("svc_{}", script.databases)
    }

    /// Starts a further server that follows this one: a copy, which takes reads and no writes until it is promoted.
    ///
    /// # Panics
    ///
    /// As [`server`].
    pub fn standby(&self) -> Option<Self> {
        start(Disk::Waited, Path::new("/tmp"), Some(self))
    }

    /// Makes a standby a server of its own, which takes writes.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn promote(&self) {
        self.run_command("promote");
    }

    /// Returns the URL of a database of this server, which is there on its standbys too.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://svc@127.0.0.1:{}/{}?sslmode=disable", self.port, name_in(database))
    }

    /// Returns the port of the server on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops the server in an orderly way: connections end, and acknowledged writes are kept.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn stop(&self) {
        self.run_command("stop fast");
    }

    /// Stops the server as a crash does.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn crash(&self) {
        self.run_command("stop immediate");
    }

    /// Starts the server again at the same address, unless it runs.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn start(&self) {
        self.run_command("start");
    }
}

impl Script {
    fn run_command(&mut self, command: &str) -> io::Result<()> {
        writeln!(self.commands, "{command}")?;
        self.read_result().map(drop)
    }

    /// Reads the result of a command: `ok` and a text, or an error.
    fn read_result(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.results.read_line(&mut line)?;
        match line.trim_end().split_once(' ') {
            Some(("ok", text)) => Ok(text.to_owned()),
            _ => Err(io::Error::other(format!("unexpected output of the script: {line:?}"))),
        }
    }
}

/// Returns the name of the database in a URL of this server.
fn name_in(url: &str) -> &str {
    let front = url.split('?').next().unwrap_or(url);
    front.rsplit('/').next().unwrap_or(front)
}

/// Returns a command to which a program and its arguments are added. PostgreSQL and PgBouncer refuse to run as root. In that
/// case they run as the user of the package, or as nobody.
pub fn as_ordinary_user() -> Command {
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

/// A running PgBouncer in front of a server.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    folder: PathBuf,
    // The end of its input stops it.
    _child: Child,
}

impl Pooler {
    /// Starts PgBouncer for the server in a URL, with these lines of its section `[pgbouncer]` beside the addresses. It takes
    /// connections a moment later. Returns `None` if it is not installed.
    ///
    /// # Panics
    ///
    /// If PgBouncer does not start, or is not installed and the environment variable `CI` is set.
    pub fn start(url: &str, settings: &str) -> Option<Self> {
        let program = pgbouncer()?;
        let server = authority_of(url);
        let (host, port_of_server) = server.split_once(':').expect("a URL of a server of this crate");
        let own = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let folder = PathBuf::from(format!("/tmp/svc-pgbouncer.{}", own.port()));
        let write = |name: &str, text: &str| {
            let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join(name), text));
            written.expect("PgBouncer's settings are written");
        };
        write("users", "\"svc\" \"\"\n");
        let ini = format!(
            "[databases]\n* = host={host} port={port_of_server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\n\
             auth_type = trust\nauth_file = {}\nunix_socket_dir =\ndefault_pool_size = 100\n{settings}",
            own.port(),
            folder.join("users").display(),
        );
        write("pgbouncer.ini", &ini);
        let mut command = as_ordinary_user();
        command.args(["sh", "-c", POOLER, "pgbouncer"]).arg(program).arg(folder.join("pgbouncer.ini"));
        let child = command.current_dir("/").stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        Some(Self { port: own.port(), folder, _child: child.expect("PgBouncer starts") })
    }

    /// Returns the URL of a database through the pooler.
    pub fn url(&self, url: &str) -> String {
        url.replacen(authority_of(url), &format!("127.0.0.1:{}", self.port), 1)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Runs PgBouncer until its input ends, so that it ends with this process.
const POOLER: &str = r#""$1" --quiet "$2" & read -r _; kill $!; wait"#;

/// Returns the host and the port in a URL of a server of this crate.
fn authority_of(url: &str) -> &str {
    let front = url.split_once('@').map_or(url, |(_, rest)| rest);
    front.split('/').next().unwrap_or(front)
}

/// Returns the fourth field of the user's line in `/etc/passwd`.
fn group_of(user: &str, users: &str) -> String {
    let line = users.lines().find_map(|line| line.strip_prefix(user)?.strip_prefix(':'));
    line.and_then(|rest| rest.split(':').nth(2)).unwrap_or("65534").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_can_be_stopped_and_started_again() {
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
