//! PgBouncer in session mode between the nodes and the database, set up as `docs/operations/postgresql.md` says.

use std::time::Duration;

use svc_test_support::Result;

use crate::cluster::{connect, until};

const START: Duration = Duration::from_secs(10);
/// The page that says how to set it up.
const PAGE: &str = include_str!("../../docs/operations/postgresql.md");
const HEADING: &str = "\n## Connection poolers\n";

/// A running PgBouncer.
pub(crate) struct Pooler {
    /// The URL of the database through it.
    pub(crate) url: String,
    _pooler: svc_test_support::postgres::Pooler,
}

impl Pooler {
    /// Starts PgBouncer for a database, whose role gets the settings of the page.
    pub(crate) async fn start(url: &str) -> Result<Self> {
        let name = url.split('?').next().and_then(|front| front.rsplit('/').next()).unwrap_or_default();
        let client = connect(url).await?;
        // For this database alone, as tests share the role.
        let scope = format!("ALTER ROLE svc IN DATABASE {name} SET");
        client.batch_execute(&block("sql")?.replace("ALTER ROLE svc SET", &scope)).await?;
        let pooler = svc_test_support::postgres::Pooler::start(url, block("ini")?);
        let pooler = pooler.ok_or("PgBouncer is not installed (Debian: pgbouncer)")?;
        let through = pooler.url(url);
        until("PgBouncer takes connections", START, || async { Ok(connect(&through).await.is_ok()) }).await?;
        Ok(Self { url: through, _pooler: pooler })
    }
}

/// Returns the first block of the section that is in this language.
fn block(language: &str) -> Result<&'static str> {
    let fence = format!("\n```{language}\n");
    let block = PAGE.split_once(HEADING).and_then(|(_, section)| section.split_once(&fence)?.1.split_once("```"));
    let (block, _) =
        block.ok_or_else(|| format!("docs/operations/postgresql.md has no {language} about connection poolers"))?;
    Ok(block)
}
