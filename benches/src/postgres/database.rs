//! A temporary PostgreSQL server with the measured database: the same tenants, keys, subscriptions and contacts as on
//! SQLite.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use svc_core::accounts::keys::{self, KeyCreate};
use svc_test_support::postgres::Server;
use uuid::Uuid;

use crate::error::Result;
use crate::seed::{self, Tenant};
use crate::{child, server};

/// Memory for all rows, and no checkpoint within a round. Everything else has PostgreSQL's defaults, so an
/// acknowledged write is on the disk.
pub(super) const SETTINGS: [(&str, &str); 3] =
    [("shared_buffers", "1GB"), ("max_wal_size", "8GB"), ("checkpoint_timeout", "1h")];

/// The id of a contact, as an expression in SQL and pgbench. `:n` is its number, whose nine digits stand in the time
/// of a UUIDv7, between June 2024 and September 2025. Ids therefore sort by number, and pgbench can compute them
/// without a query.
pub(super) const CONTACT_ID: &str = "('019' || lpad(:n, 9, '0') || '70008000000000000000')::uuid";

/// Inserts all contacts in one statement, without foreign key checks.
const CONTACTS: &str = "
SET synchronous_commit = off; SET session_replication_role = replica;
INSERT INTO contacts (tenant_id, live, id, email, first_name, last_name, phone, company_name, city, state, postcode,
    created_at, updated_at)
SELECT tenant, TRUE, id, substr(md5(number::text), 1, 16) || '@example.com',
    (ARRAY['Ada', 'Grace', 'Edsger', 'Barbara'])[1 + number % 4],
    (ARRAY['Lovelace', 'Hopper', 'Liskov'])[1 + number % 3],
    '+61 2 5550 ' || lpad((number % 10000)::text, 4, '0'), CASE number % 2 WHEN 0 THEN 'Analytical Engines Pty Ltd' END,
    (ARRAY['Sydney', 'Newcastle', 'Wollongong', 'Wagga Wagga', 'Dubbo'])[1 + number % 5], 'NSW', '2000', at, at
FROM (SELECT number, CONTACT_ID AS id, (SELECT array_agg(id ORDER BY id) FROM tenants) AS tenants
        FROM generate_series(0, CONTACTS - 1) AS number) AS numbers,
    LATERAL (SELECT tenants[1 + number % array_length(tenants, 1)] AS tenant,
        to_timestamp(('x' || substr(id::text, 1, 8) || substr(id::text, 10, 4))::bit(48)::bigint / 1000.0) AS at)
    AS derived
ORDER BY number;
RESET session_replication_role;
VACUUM (ANALYZE);
CHECKPOINT;";

/// Computes the same id as [`CONTACT_ID`].
fn contact_id(number: u32) -> Result<Uuid> {
    Ok(format!("019{number:09}70008000000000000000").parse()?)
}

/// A server with a seeded database. It is removed when it is dropped.
pub(crate) struct Database {
    server: Server,
    programs: PathBuf,
    pub(crate) url: String,
    pub(super) tenants: Arc<[Tenant]>,
}

impl Database {
    /// Creates the database. Returns `None` if PostgreSQL or pgbench is not installed.
    pub(crate) fn create(tenants: u32, contacts: u32) -> Result<Option<Self>> {
        let Some(programs) = svc_test_support::postgres::programs() else { return Ok(None) };
        if ["pgbench", "psql"].iter().any(|program| !programs.join(program).exists()) {
            return Ok(None);
        }
        let Some(server) = svc_test_support::postgres::another() else { return Ok(None) };
        let url = server.database();
        let mut database = Self { server, programs, url, tenants: Vec::new().into() };
        for (name, value) in SETTINGS {
            database.psql(&format!("ALTER SYSTEM SET {name} = '{value}'"))?;
        }
        database.server.stop();
        database.server.start();
        let keys = add_tenants(&database.url, tenants)?;
        let id = CONTACT_ID.replace(":n", "number::text");
        database.psql(&CONTACTS.replace("CONTACT_ID", &id).replace("CONTACTS", &contacts.to_string()))?;
        let tenant = |(number, key): (u32, String)| {
            let contacts = (number..contacts).step_by(tenants as usize).map(contact_id).collect::<Result<_>>()?;
            Ok(Tenant { key, contacts })
        };
        database.tenants = (0..tenants).zip(keys).map(tenant).collect::<Result<Vec<_>>>()?.into();
        Ok(Some(database))
    }

    /// Returns the path of PostgreSQL's log.
    pub(super) fn log(&self) -> PathBuf {
        self.server.folder().join("server.log")
    }

    pub(super) fn version(&self) -> Result<String> {
        self.psql("SHOW server_version")
    }

    /// Returns the numbers of contacts, events and deliveries. Uses one statement, because transactions of svc's
    /// server may still be committing.
    pub(super) fn row_counts(&self) -> Result<[u64; 3]> {
        let counts = self.psql(
            "SELECT (SELECT count(*) FROM contacts), (SELECT count(*) FROM events), (SELECT count(*) FROM deliveries)",
        )?;
        let counts = counts.split('|').map(str::parse).collect::<std::result::Result<Vec<u64>, _>>()?;
        counts.try_into().map_err(|_| "psql did not print three counts".into())
    }

    /// Returns a command for one of PostgreSQL's programs.
    pub(super) fn program(&self, name: &str) -> Command {
        Command::new(self.programs.join(name))
    }

    /// Runs statements and returns their output.
    pub(crate) fn psql(&self, sql: &str) -> Result<String> {
        let mut psql = self.program("psql");
        psql.args([
            self.url.as_str(),
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
        ]);
        // Each statement is its own transaction, which VACUUM requires.
        for statement in sql.split(';').filter(|statement| !statement.trim().is_empty()) {
            psql.args(["-c", statement]);
        }
        let done = psql.output()?;
        if done.status.success() {
            return Ok(String::from_utf8(done.stdout)?.trim().to_owned());
        }
        Err(format!("psql: {}", String::from_utf8_lossy(&done.stderr)).into())
    }

    /// Returns the processor time of all processes of the server, including those that have ended.
    pub(super) fn cpu(&self) -> Result<Duration> {
        let postmaster = std::fs::read_to_string(self.server.folder().join("data/postmaster.pid"))?;
        let postmaster = postmaster.lines().next().ok_or("the server has no process id")?;
        let mut sum = child::cpu_with_ended(postmaster)?;
        for process in std::fs::read_dir("/proc")?.flatten() {
            if child::parent(&process.path()).as_deref() == Some(postmaster) {
                // The process may have ended meanwhile.
                sum += process.file_name().to_str().map_or(Ok(Duration::ZERO), child::cpu).unwrap_or_default();
            }
        }
        Ok(sum)
    }
}

/// Creates tenants with a subscription and a key each. Returns the texts of the keys in the order of the tenants'
/// ids.
fn add_tenants(url: &str, tenants: u32) -> Result<Vec<String>> {
    child::runtime()?.block_on(async {
        let store = server::open(Path::new(url)).await?;
        let mut texts = Vec::new();
        for number in 1..=tenants {
            let tenant = svc_core::values::TenantId(seed::tenant(&*store, number).await?);
            let key = store.write("bench.key", tenant, async |tx, &tenant| {
                let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
                Ok(keys::create(tx, tenant, input).await?.text.reveal().to_owned())
            });
            texts.push(key.await?);
        }
        Ok(texts)
    })
}
