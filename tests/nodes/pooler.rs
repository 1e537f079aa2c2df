//! PgBouncer in session mode between the nodes and the database, set up as `docs/operations.md` says.

use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::Duration;

use svc_postgres_server::{as_ordinary_user, pgbouncer};
use svc_tests::Result;

use crate::cluster::{connect, until};
use crate::proxy::authority;

const START: Duration = Duration::from_secs(10);
/// The page that says how to set it up.
const PAGE: &str = include_str!("../../docs/operations.md");
const HEADING: &str = "\n### Connection poolers\n";

/// Runs PgBouncer until its input ends, so that it ends with this process.
const SCRIPT: &str = r#""$1" --quiet "$2" & read -r _; kill $!; wait"#;

/// A running PgBouncer.
pub(crate) struct Pooler {
    /// The URL of the database through it.
    pub(crate) url: String,
    // The end of its input stops it.
    _child: Child,
    _folder: tempfile::TempDir,
}

impl Pooler {
    /// Starts PgBouncer for a database, whose role gets the settings of the page.
    pub(crate) async fn start(url: &str) -> Result<Self> {
        let program = pgbouncer().ok_or("PgBouncer is not installed (Debian: pgbouncer)")?;
        let server = authority(url)?;
        let (host, port) = server.split_once(':').ok_or("no port in the URL of the database")?;
        let name = url.split('?').next().and_then(|front| front.rsplit('/').next()).unwrap_or_default();
        let client = connect(url).await?;
        // For this database alone, as tests share the role.
        let scope = format!("ALTER ROLE svc IN DATABASE {name} SET");
        client.batch_execute(&block("sql")?.replace("ALTER ROLE svc SET", &scope)).await?;

        let own = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let folder = tempfile::Builder::new().permissions(open()).tempdir()?;
        let file = folder.path().join("pgbouncer.ini");
        let ini = format!(
            "[databases]\n* = host={host} port={port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\n\
             auth_type = trust\nauth_file = {}\nunix_socket_dir =\ndefault_pool_size = 100\n{}",
            own.port(),
            folder.path().join("users").display(),
            block("ini")?,
        );
        std::fs::write(folder.path().join("users"), "\"svc\" \"\"\n")?;
        std::fs::write(&file, ini)?;
        let mut command = as_ordinary_user();
        command.args(["sh", "-c", SCRIPT, "pgbouncer"]).arg(program).arg(&file);
        let child = command.current_dir("/").stdin(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let through = url.replacen(server, &own.to_string(), 1);
        until("PgBouncer takes connections", START, || async { Ok(connect(&through).await.is_ok()) }).await?;
        Ok(Self { url: through, _child: child, _folder: folder })
    }
}

/// What another user may read.
fn open() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

/// Returns the first block of the section that is in this language.
fn block(language: &str) -> Result<&'static str> {
    let fence = format!("\n```{language}\n");
    let block = PAGE.split_once(HEADING).and_then(|(_, section)| section.split_once(&fence)?.1.split_once("```"));
    let (block, _) = block.ok_or_else(|| format!("docs/operations.md has no {language} about connection poolers"))?;
    Ok(block)
}
