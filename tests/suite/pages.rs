//! The commands of the pages in `docs/`, run as they are pasted, top to bottom, in one shell for each page.
//!
//! What stands for the reader's own in a page is replaced: addresses and ports, folders of the system, ids and dates. A line
//! that cannot run here is in [`NOT_RUN`], with the reason.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use svc_test_support::postgres::Server;

use crate::terminal::{Block, Ports, Terminal, are_installed, install_programs, sections};

const AGENTS: &str = include_str!("../../docs/agents.md");
const DASHBOARD: &str = include_str!("../../docs/dashboard.md");
/// The pages about operations, in an order in which one database serves all.
const OPERATIONS: &[&str] = &[
    include_str!("../../docs/operations/install.md"),
    include_str!("../../docs/operations/several-nodes.md"),
    include_str!("../../docs/operations/postgresql.md"),
    include_str!("../../docs/operations/citus.md"),
    include_str!("../../docs/operations/configure.md"),
    include_str!("../../docs/operations/tls.md"),
    include_str!("../../docs/operations/static-addresses.md"),
    include_str!("../../docs/operations/sign-in.md"),
    include_str!("../../docs/operations/monitor.md"),
    include_str!("../../docs/operations/backup.md"),
    include_str!("../../docs/operations/erase.md"),
    include_str!("../../docs/operations/upgrade.md"),
    include_str!("../../docs/operations/move-to-postgresql.md"),
    include_str!("../../docs/operations/retention.md"),
    include_str!("../../docs/operations/account-limits.md"),
    include_str!("../../docs/operations/deliveries.md"),
    include_str!("../../docs/operations/event-kinds.md"),
    include_str!("../../docs/operations/background.md"),
    include_str!("../../docs/operations/import.md"),
    include_str!("../../docs/operations/troubleshooting.md"),
    include_str!("../../docs/operations/alerts.md"),
    include_str!("../../docs/operations/log-lines.md"),
    include_str!("../../docs/operations/sizing.md"),
];
const PLATFORM: &str = include_str!("../../docs/platform.md");
const SYNC: &str = include_str!("../../docs/sync.md");
const WEBHOOKS: &str = include_str!("../../docs/webhooks.md");
const WEBHOOK_OPTIONS: &str = include_str!("../../docs/webhook-options.md");

const AS_ROOT: &str = "it changes the system, as root: .ci/debian-package installs and starts the package";
const IMAGE: &str = "it needs a container engine: .ci/container builds and starts the image";
const CITUS: &str = "it needs Citus: the tests of svc-store run the script on a stand-in";
const ON_SQLITE: &str = "the database of these pages is a file of SQLite";
const PROVIDER: &str = "it needs an identity provider: the tests in the browser have one";

/// The beginnings of lines that do not run here, with the reasons.
const NOT_RUN: [(&str, &str); 19] = [
    ("cargo install --locked cargo-deb", AS_ROOT),
    ("sudo ", AS_ROOT),
    ("cargo build --profile dist", AS_ROOT),
    ("curl -s localhost:8080/readyz", AS_ROOT),
    ("podman ", IMAGE),
    ("svc() {", AS_ROOT),
    ("svc init --name ", "the database of the page has an account"),
    ("svc-server --listen 0.0.0.0:8443", "it needs a certificate: the tests of TLS make one"),
    ("SVC_OIDC_CLIENT_SECRET=…", PROVIDER),
    ("SELECT citus_", CITUS),
    ("svc db migrate --database-url \"$OWNER_URL\"", CITUS),
    ("psql -f ops/citus.sql", CITUS),
    ("SELECT truncate_local_data_after_distributing_table", CITUS),
    ("systemctl ", "systemd does not run here"),
    ("pg_dump ", ON_SQLITE),
    ("pg_restore ", ON_SQLITE),
    ("svc login --server https://svc.example.com", "it asks for a key and checks it with a server elsewhere"),
    ("svc delivery list --status failed --profile", "there is no profile without the login"),
    ("svc logout --profile", "there is no profile without the login"),
];

/// A page with what is replaced in its commands.
struct Page<'p> {
    folder: &'p Path,
    ports: Ports,
    replaced: Vec<(&'static str, String)>,
    /// The beginnings of lines that were left out.
    left_out: Vec<&'static str>,
}

impl<'p> Page<'p> {
    fn new(folder: &'p Path, replaced: &[(&'static str, &str)]) -> Self {
        install_programs(folder);
        let ports = Ports::free();
        let mut all = vec![
            ("https://api.example.com", format!("http://127.0.0.1:{}", ports.server)),
            ("127.0.0.1:8081", format!("127.0.0.1:{}", Ports::free().server)),
            ("/var/backups", folder.join("backups").display().to_string()),
            ("/var/lib/svc", folder.join("lib").display().to_string()),
        ];
        all.extend(replaced.iter().map(|(from, to)| (*from, (*to).to_owned())));
        Self { folder, ports, replaced: all, left_out: Vec::new() }
    }

    /// Returns what runs of a block.
    fn commands(&mut self, block: &Block) -> String {
        let mut commands = String::new();
        for line in block.text.lines().map(str::trim_start) {
            match NOT_RUN.iter().find(|(start, _)| line.starts_with(start)) {
                Some((start, _)) => self.left_out.push(start),
                None => writeln!(commands, "{line}").unwrap(),
            }
        }
        for (from, to) in &self.replaced {
            commands = commands.replace(from, to);
        }
        self.ports.put(&commands)
    }

    /// Runs all commands of a page. `run` may run a block itself.
    fn run(
        &mut self,
        page: &'static str,
        terminal: &mut Terminal,
        mut run: impl FnMut(&str, &str, &mut Terminal) -> bool,
    ) {
        for block in sections(page).into_iter().flatten() {
            let commands = self.commands(&block);
            if !run(block.language, &commands, terminal) && block.language == "sh" {
                terminal.run(&commands);
            }
        }
    }
}

/// Starts the demo, which has every kind of record, and a terminal with the variables that it prints. Also returns the
/// account's id.
fn demo(page: &Page<'_>, command: &str) -> (Terminal, Terminal, String) {
    let (demo, exports) = Terminal::demo(page.folder, page.ports, command);
    let mut terminal = Terminal::open(page.folder, page.ports);
    terminal.run(&exports);
    let account = exports.lines().find_map(|line| line.strip_prefix("export SVC_TENANT=")).unwrap().to_owned();
    (demo, terminal, account)
}

/// Returns what a command prints last to stdout.
fn printed(terminal: &mut Terminal, command: &str) -> String {
    terminal.run(&format!("{{ {command}; }} 2>/dev/null\n"));
    terminal.printed.iter().rev().nth(2).unwrap_or_else(|| panic!("{command} printed nothing")).clone()
}

/// The first of the ids that a list prints, of the lines that have a text.
fn first_id(terminal: &mut Terminal, list: &str, text: &str) -> String {
    printed(terminal, &format!("{list} | grep -m 1 -F '{text}' | cut -d ' ' -f 1"))
}

const DEMO: &str = "svc-server --demo --database-url sqlite://svc.db\n";

#[test]
fn the_commands_of_the_pages_about_webhooks_run() {
    if !are_installed(&["bash", "curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut page = Page::new(folder.path(), &[]);
    let (running, mut terminal, account) = demo(&page, DEMO);
    let webhook = first_id(&mut terminal, "svc webhook list", " * ");
    let delivery = first_id(&mut terminal, "svc delivery list", webhook.as_str());
    page.replaced.extend([("ACCOUNT_ID", account), ("WEBHOOK_ID", webhook), ("DELIVERY_ID", delivery)]);
    let mut terminals = vec![running];
    let (folder, ports) = (folder.path(), page.ports);
    page.run(WEBHOOK_OPTIONS, &mut terminal, |_, _, _| false);
    page.run(WEBHOOKS, &mut terminal, |language, commands, terminal| {
        if language != "sh" {
            return true;
        }
        if commands.starts_with("curl ") {
            terminal.run(commands);
            assert!(terminal.printed.iter().any(|line| line.contains("\"secret\":\"whsec_")), "{:?}", terminal.printed);
        } else if let Some(commands) = commands.strip_prefix("# Terminal 1") {
            // The first server ends, as both use the port.
            terminals.clear();
            let commands: Vec<&str> = commands.split("# Terminal").collect();
            let [server, receiver, fire] = commands.as_slice() else { panic!("{commands:?}") };
            let (demo, exports) = Terminal::demo(folder, ports, server.split_once('\n').unwrap().1);
            let mut listening = Terminal::open(folder, ports);
            listening.run(&exports);
            listening.paste(receiver.split_once('\n').unwrap().1);
            listening.wait_for("…Created webhook …");
            terminal.run(&exports);
            terminal.run(fire.split_once('\n').unwrap().1);
            listening.wait_for("…invoice.paid…");
            let webhook = first_id(terminal, "svc webhook list", " * ");
            terminal.run(&format!("export WEBHOOK={webhook}\n"));
            terminals.extend([demo, listening]);
        } else if commands.contains("svc listen ") {
            for line in commands.lines() {
                let mut listening = Terminal::open(folder, ports);
                let variables = printed(terminal, "echo SVC_DATABASE_URL=$SVC_DATABASE_URL SVC_TENANT=$SVC_TENANT");
                listening.run(&format!("export {variables}\n"));
                // The receiver before still has the port.
                listening.paste(&line.replace(&format!("--port {}", ports.receiver), "--port 0"));
                listening.paste("\n");
                listening.wait_for("…Created webhook …");
            }
        } else if commands.starts_with("svc webhook test") {
            let test = commands.lines().map(|line| line.split_whitespace().nth(3).unwrap()).next().unwrap();
            terminal.run(&commands.replace(test, "$WEBHOOK"));
        } else {
            return false;
        }
        true
    });
    assert!(page.left_out.is_empty(), "{:?}", page.left_out);
}

#[test]
fn the_commands_of_the_pages_about_the_dashboard_run() {
    if !are_installed(&["bash"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut page = Page::new(folder.path(), &[]);
    let (_demo, mut terminal, account) = demo(&page, DEMO);
    page.replaced.push(("0195a3c1", account[..8].to_owned()));
    page.run(DASHBOARD, &mut terminal, |_, _, _| false);
    assert!(page.left_out.is_empty(), "{:?}", page.left_out);
}

#[test]
fn the_commands_of_the_pages_about_assistants_run() {
    if !are_installed(&["bash", "curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut page = Page::new(folder.path(), &[]);
    let (_demo, mut terminal, _) = demo(&page, "svc-server --demo --mcp on --database-url sqlite://svc.db\n");
    page.run(AGENTS, &mut terminal, |language, commands, terminal| {
        if language != "sh" {
            return true;
        }
        if let Some(flags) = commands.strip_prefix("svc-server ") {
            check_settings(folder.path(), "", flags.trim());
            return true;
        }
        terminal.run(commands);
        assert!(terminal.printed.iter().any(|line| line.contains("\"isError\":false")), "{:?}", terminal.printed);
        true
    });
    assert!(page.left_out.is_empty(), "{:?}", page.left_out);
}

#[test]
fn the_commands_of_the_pages_about_the_platform_run() {
    if !are_installed(&["bash", "curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let receiver = format!("http://{}/svc --allow-private-webhooks", receiver());
    let mut page = Page::new(folder.path(), &[("https://ops.example.com/svc", receiver.as_str())]);
    let mut terminal = Terminal::open(folder.path(), page.ports);
    page.run(PLATFORM, &mut terminal, |_, commands, terminal| {
        let is_server = commands.contains("svc-server ");
        if is_server {
            terminal.run(commands);
            terminal.wait_for("platform API on …");
        }
        is_server
    });
    assert_eq!(page.left_out.len(), 3, "{:?}", page.left_out);
}

#[test]
fn the_script_that_keeps_a_copy_runs_as_its_page_says() {
    if !are_installed(&["bash", "python3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut page = Page::new(folder.path(), &[]);
    std::fs::write(folder.path().join("sync.py"), include_str!("../../docs/programs/sync.py")).unwrap();
    let (_demo, mut terminal, _) = demo(&page, DEMO);
    let key = printed(&mut terminal, "echo $SVC_KEY");
    page.replaced.push(("svc_live_…", key));
    page.run(SYNC, &mut terminal, |_, _, _| false);
    let copied = "python3 -c \"import sqlite3; print(sqlite3.connect('copy.db').execute('SELECT count(*) FROM records').fetchone()[0])\"";
    assert_ne!(printed(&mut terminal, copied), "0");
}

#[test]
fn the_commands_of_the_pages_about_operations_run() {
    let Some(server) = svc_test_support::postgres::server().filter(|_| are_installed(&["bash", "psql"])) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for made in ["backups/svc", "lib"] {
        std::fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    let other = server.database();
    let mut page = Page::new(
        folder.path(),
        &[
            ("postgres://svc@db.internal/svc", server.database().as_str()),
            ("'postgres://svc:PASSWORD@db.internal/svc?sslmode=verify-full&sslrootcert=system'", &format!("'{other}'")),
            ("-f ops/", &format!("-f {}/../ops/", env!("CARGO_MANIFEST_DIR"))),
            // The backup that is restored is the one that the page has made before.
            ("svc-2026-03-14.db", "svc-$(date +%F).db"),
            ("/SAFE/svc.db.key", &format!("{}/backups/svc/svc-$(date +%F).db.key", folder.path().display())),
        ],
    );
    let database = format!("svc-server --demo --database-url sqlite://{}/lib/svc.db\n", folder.path().display());
    let (running, mut terminal, account) = demo(&page, &database);
    let mut running = Some(running);
    let webhook = first_id(&mut terminal, "svc webhook list", " disabled ");
    let delivery = first_id(&mut terminal, "svc delivery list", "succeeded");
    page.replaced.extend([("0195a3c1", account[..8].to_owned()), ("ACCOUNT_ID", account)]);
    terminal.run("svc contact create --email ada@example.com\n");
    page.replaced.extend([("WEBHOOK_ID", webhook), ("DELIVERY_ID", delivery)]);
    let (folder, ports) = (folder.path(), page.ports);
    let mut run = |language: &str, commands: &str, terminal: &mut Terminal| {
        match language {
            "sql" => run_sql(server, commands, terminal),
            "toml" => {
                std::fs::write(folder.join("svc.toml"), commands).unwrap();
                let secret = if commands.contains("oidc-") { "SVC_OIDC_CLIENT_SECRET=secret" } else { "" };
                check_settings(folder, secret, "--config svc.toml");
            }
            "json" => {
                std::fs::write(folder.join("kinds.json"), commands).unwrap();
                check_settings(folder, "", "--event-kinds kinds.json");
            }
            // The server is stopped before these, and started after them.
            "sh" if commands.contains("mv svc.db*") || commands.contains("svc db copy") => {
                drop(running.take());
                terminal.run(commands);
                running = Some(server_again(folder, ports));
            }
            _ => return false,
        }
        true
    };
    for text in OPERATIONS {
        page.run(text, &mut terminal, &mut run);
    }
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operations")).unwrap();
    assert_eq!(files.count(), OPERATIONS.len(), "each page about operations is in OPERATIONS");
    let never: Vec<&str> = NOT_RUN
        .iter()
        .map(|(start, _)| *start)
        .filter(|start| !PLATFORM.contains(start) && !page.left_out.contains(start))
        .collect();
    assert!(never.is_empty(), "no page has {never:?}");
}

/// Returns the address of a receiver that takes every delivery, until the tests end.
fn receiver() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&connection).lines().map_while(Result::ok);
            if lines.any(|line| line.is_empty()) {
                let _ = (&connection).write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            }
        }
    });
    address
}

/// Starts a server on the database that the demo has made.
fn server_again(folder: &Path, ports: Ports) -> Terminal {
    let mut terminal = Terminal::open(folder, ports);
    terminal.paste(&format!(
        "svc-server --allow-private-webhooks --database-url sqlite://{}/lib/svc.db\n",
        folder.display()
    ));
    terminal.wait_for("listening on …");
    terminal
}

/// Checks that a server starts with a file of settings or of event kinds.
fn check_settings(folder: &Path, variable: &str, option: &str) {
    let mut terminal = Terminal::open(folder, Ports::free());
    terminal.paste(&format!("{variable} svc-server {option} --database-url sqlite://settings.db\n"));
    terminal.wait_for("listening on …");
}

/// Runs SQL as the superuser, for a role and a database of other names than those of the tests.
fn run_sql(server: &Server, sql: &str, terminal: &mut Terminal) {
    let names =
        [("ROLE svc ", "ROLE svc_of_page "), ("DATABASE svc OWNER svc ", "DATABASE svc_of_page OWNER svc_of_page ")];
    let sql = names.iter().fold(sql.to_owned(), |sql, (from, to)| sql.replace(from, to));
    let database = server.database();
    terminal.run(&format!("svc db migrate --database-url '{database}'\n"));
    let statements = sql.split_inclusive(';').map(str::trim).filter(|statement| !statement.is_empty());
    for statement in statements {
        let before =
            if statement.contains("search_texts_by_text") { "DROP INDEX search_texts_by_text" } else { "SELECT" };
        for statement in [before, statement] {
            let run =
                Command::new("psql").args(["-v", "ON_ERROR_STOP=1", "-c", statement, &database]).output().unwrap();
            assert!(run.status.success(), "{statement}\n{}", String::from_utf8_lossy(&run.stderr));
        }
    }
}
