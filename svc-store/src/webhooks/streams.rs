//! The tables of streams and of their positions.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::store::{StoreResult, StreamRepository};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::streams::{AccountBehind, Stream, StreamKey, StreamPosition};
use svc_core::webhooks::subscriptions::SubscriptionId;
use uuid::Uuid;

use crate::accounts::tenants::store_clocks;
use crate::column::{CellError, Column as _};
use crate::sql::{Cells, SqlTx};
use crate::table::{TableRow as _, insert_params, on_conflict_update, record};

record!(Stream, "streams", key: [tenant_id, id], {
    inserted: [tenant_id, id],
    updated: [begins_at, lease, lease_ends_at],
});

record!(StreamPosition, "stream_positions", key: [tenant_id, stream_id], {
    inserted: [tenant_id, stream_id],
    updated: [sent_until],
});

static INSERT: LazyLock<String> = LazyLock::new(|| format!("{} ON CONFLICT DO NOTHING", Stream::statements().insert));
/// A position never goes back, and is never beyond the clock of its account.
static ADVANCE: LazyLock<String> = LazyLock::new(|| {
    let update = on_conflict_update::<StreamPosition>();
    format!(
        "INSERT INTO stream_positions (tenant_id, stream_id, sent_until) SELECT id, $1, $2 FROM tenants \
         WHERE id = $3 AND clock >= $4{update} WHERE excluded.sent_until > stream_positions.sent_until"
    )
});
const SET_BACK: &str = "UPDATE stream_positions SET sent_until = $1 WHERE tenant_id = $2 AND sent_until > $3";
/// The streams of a tenant's subscriptions, and that of the server.
const BEGINS: &str = "SELECT id, begins_at FROM streams WHERE tenant_id = $1";
static INSERT_POSITION: LazyLock<String> =
    LazyLock::new(|| format!("{} ON CONFLICT DO NOTHING", StreamPosition::statements().insert));
const DELETE: &str = "DELETE FROM streams WHERE tenant_id = $1 AND id = $2";
const DELETE_POSITIONS: &str = "DELETE FROM stream_positions WHERE tenant_id = $1 AND stream_id = $2";
const DELETE_ALL_POSITIONS: &str = "DELETE FROM stream_positions WHERE stream_id = $1";
pub(crate) const DELETE_WITHOUT_ACCOUNT: &str = "DELETE FROM stream_positions WHERE (tenant_id, stream_id) IN \
     (SELECT p.tenant_id, p.stream_id FROM stream_positions p WHERE p.tenant_id > $1 AND p.tenant_id <= $2 \
     AND NOT EXISTS (SELECT 1 FROM tenants t WHERE t.id = p.tenant_id) LIMIT $3)";
const CLAIM: &str = "UPDATE streams SET lease = $1, lease_ends_at = $2 WHERE tenant_id = $3 AND id = $4 \
     AND (lease = $1 OR lease_ends_at IS NULL OR lease_ends_at <= $5)";
const RENEW: &str = "UPDATE streams SET lease_ends_at = $1 WHERE tenant_id = $2 AND id = $3 AND lease = $4";

/// Selects the accounts that a stream is behind in; a condition and the limit are inserted.
macro_rules! behind {
    ($condition:literal, $limit:literal) => {
        concat!(
            "SELECT t.id, COALESCE(p.sent_until, $1), t.clock, t.sandbox_of IS NOT NULL FROM tenants t \
             LEFT JOIN stream_positions p ON p.tenant_id = t.id AND p.stream_id = $2 \
             WHERE t.clock > COALESCE(p.sent_until, $1) AND ",
            $condition,
            " ORDER BY t.id LIMIT ",
            $limit
        )
    };
}

const BEHIND: &str = behind!("t.id > $3", "$4");
const ONE_BEHIND: &str = behind!("t.id > $3 AND t.id = $4", "$5");
const SUBSCRIPTIONS_BEHIND: &str = "SELECT s.tenant_id, s.id FROM streams s JOIN tenants t ON t.id = s.tenant_id \
     LEFT JOIN stream_positions p ON p.tenant_id = s.tenant_id AND p.stream_id = s.id \
     WHERE (s.tenant_id, s.id) > ($1, $2) AND t.clock > COALESCE(p.sent_until, s.begins_at) \
     ORDER BY s.tenant_id, s.id LIMIT $3";
const SENT_BY_SUBSCRIPTIONS: &str = "SELECT min(COALESCE(p.sent_until, s.begins_at)) FROM streams s \
     LEFT JOIN stream_positions p ON p.tenant_id = s.tenant_id AND p.stream_id = s.id \
     WHERE s.tenant_id = $1 AND COALESCE(s.lease_ends_at, s.begins_at) > $2";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![
        &INSERT,
        &ADVANCE,
        SET_BACK,
        BEGINS,
        &INSERT_POSITION,
        DELETE,
        DELETE_POSITIONS,
        DELETE_ALL_POSITIONS,
        DELETE_WITHOUT_ACCOUNT,
        CLAIM,
        RENEW,
        BEHIND,
        ONE_BEHIND,
        SUBSCRIPTIONS_BEHIND,
        SENT_BY_SUBSCRIPTIONS,
    ]
}

fn read_behind(cells: &mut Cells<'_>) -> Result<AccountBehind, CellError> {
    Ok(AccountBehind {
        tenant_id: cells.take("tenants", "id")?,
        sent_until: cells.take("stream_positions", "sent_until")?,
        clock: cells.take("tenants", "clock")?,
        is_sandbox: cells.take("tenants", "is sandbox")?,
    })
}

impl SqlTx<'_> {
    /// Sets the positions of streams in a tenant back to `at`, where they are later.
    pub(crate) async fn set_back_streams(&mut self, tenant: TenantId, at: Timestamp) -> StoreResult<()> {
        self.pipeline(SET_BACK, &[at.param(), tenant.param(), at.param()]).await?;
        // A stream without a position in the tenant is where it began.
        for owner in [tenant, StreamKey::SERVER.tenant_id] {
            let read = |cells: &mut Cells<'_>| {
                Ok((cells.take("streams", "id")?, cells.take::<Timestamp>("streams", "begins_at")?))
            };
            for (stream_id, begins_at) in self.fetch(BEGINS, &[owner.param()], read).await? {
                if begins_at > at {
                    let position = StreamPosition { tenant_id: tenant, stream_id, sent_until: at };
                    self.pipeline(&INSERT_POSITION, &insert_params(&[], &position)).await?;
                }
            }
        }
        Ok(())
    }

    /// Stores the clocks of the accounts that this transaction has written to, as they are compared in SQL.
    async fn store_clocks(&mut self) -> StoreResult<()> {
        match &mut self.locked {
            Some(locked) => store_clocks(locked, self.sql).await,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl StreamRepository for SqlTx<'_> {
    async fn insert_stream(&mut self, stream: &Stream) -> StoreResult<()> {
        self.execute(&INSERT, &insert_params(&[], stream)).await.map(drop)
    }

    async fn stream(&mut self, key: StreamKey) -> StoreResult<Option<Stream>> {
        self.get_record(&[key.tenant_id.param(), key.id.param()]).await
    }

    async fn delete_stream(&mut self, key: StreamKey) -> StoreResult<()> {
        self.execute(DELETE, &[key.tenant_id.param(), key.id.param()]).await?;
        let deleted = if key == StreamKey::SERVER {
            self.execute(DELETE_ALL_POSITIONS, &[key.id.param()]).await
        } else {
            self.execute(DELETE_POSITIONS, &[key.tenant_id.param(), key.id.param()]).await
        };
        deleted.map(drop)
    }

    async fn claim_stream(
        &mut self,
        key: StreamKey,
        lease: Uuid,
        now: Timestamp,
        ends_at: Timestamp,
    ) -> StoreResult<bool> {
        let params = [lease.param(), ends_at.param(), key.tenant_id.param(), key.id.param(), now.param()];
        Ok(self.execute(CLAIM, &params).await? > 0)
    }

    async fn renew_stream(&mut self, key: StreamKey, lease: Uuid, ends_at: Timestamp) -> StoreResult<bool> {
        let params = [ends_at.param(), key.tenant_id.param(), key.id.param(), lease.param()];
        Ok(self.execute(RENEW, &params).await? > 0)
    }

    async fn accounts_behind(
        &mut self,
        stream: &Stream,
        after: Option<TenantId>,
        limit: u32,
    ) -> StoreResult<Vec<AccountBehind>> {
        self.store_clocks().await?;
        // No tenant has the nil id.
        let after = after.unwrap_or(TenantId(Uuid::nil()));
        let mut params = vec![stream.begins_at.param(), stream.id.param(), after.param()];
        if stream.key() == StreamKey::SERVER {
            params.push(limit.param());
            self.fetch(BEHIND, &params, read_behind).await
        } else {
            params.extend([stream.tenant_id.param(), limit.param()]);
            self.fetch(ONE_BEHIND, &params, read_behind).await
        }
    }

    async fn subscription_streams_behind(
        &mut self,
        after: Option<StreamKey>,
        limit: u32,
    ) -> StoreResult<Vec<StreamKey>> {
        self.store_clocks().await?;
        // The stream of the server is before all others.
        let StreamKey { tenant_id, id } = after.unwrap_or(StreamKey::SERVER);
        let read = |cells: &mut Cells<'_>| {
            let tenant_id: TenantId = cells.take("streams", "tenant_id")?;
            let id: SubscriptionId = cells.take("streams", "id")?;
            Ok(StreamKey { tenant_id, id })
        };
        self.fetch(SUBSCRIPTIONS_BEHIND, &[tenant_id.param(), id.param(), limit.param()], read).await
    }

    async fn advance_stream(&mut self, key: StreamKey, tenant: TenantId, sent_until: Timestamp) -> StoreResult<()> {
        self.store_clocks().await?;
        self.pipeline(&ADVANCE, &[key.id.param(), sent_until.param(), tenant.param(), sent_until.param()]).await
    }

    async fn sent_by_all_until(&mut self, tenant: TenantId, used_since: Timestamp) -> StoreResult<Option<Timestamp>> {
        // The stream of the server is under another tenant, whose row a distributed database has elsewhere.
        let server = self.stream(StreamKey::SERVER).await?;
        let by_server = match server.filter(|server| server.is_used_since(used_since)) {
            None => None,
            Some(server) => {
                let position: Option<StreamPosition> = self.get_record(&[tenant.param(), server.id.param()]).await?;
                Some(position.map_or(server.begins_at, |position| position.sent_until))
            }
        };
        let params = [tenant.param(), used_since.param()];
        let read = |cells: &mut Cells<'_>| cells.take::<Option<Timestamp>>("stream_positions", "sent_until");
        let by_subscriptions = self.fetch_one(SENT_BY_SUBSCRIPTIONS, &params, read).await?.flatten();
        Ok(by_server.into_iter().chain(by_subscriptions).min())
    }

    async fn delete_positions_without_account(
        &mut self,
        after: TenantId,
        until: TenantId,
        limit: u32,
    ) -> StoreResult<u64> {
        self.execute(DELETE_WITHOUT_ACCOUNT, &[after.param(), until.param(), limit.param()]).await
    }
}

#[cfg(test)]
#[cfg(all(feature = "sqlite", feature = "postgres"))]
mod tests {
    use std::sync::Arc;

    use svc_core::accounts::tenants::{self, TenantCreate};
    use svc_core::env::Env;
    use svc_core::error::Error;
    use svc_core::store::Store;
    use svc_core::webhooks::retention::{self, DeletedCounts, Positions};

    use super::*;
    use crate::{Options, SecretKey, open_with};

    /// How many streams have a position in each account that is gone: more than one step deletes.
    const STREAMS: i64 = 501;

    /// Makes two accounts with a position each. Returns the store, and ids of no account: before, between and after them.
    async fn filled(url: &str) -> (Arc<dyn Store>, [TenantId; 3]) {
        let options = Options { secret_key: Some(SecretKey::new([7; 32])), ..Options::default() };
        let store = open_with(url, Env::system(), options).await.unwrap();
        let make = store.write("test", (), async |tx, ()| {
            tx.insert_stream(&Stream::new(StreamKey::SERVER, Timestamp::from_micros(0))).await?;
            let mut tenants = Vec::new();
            for _ in 0..2 {
                let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?.id;
                let clock = tx.advance_clock(tenant).await?.ok_or(Error::NotFound)?;
                tx.advance_stream(StreamKey::SERVER, tenant, clock).await?;
                tenants.push(tenant);
            }
            tenants.sort();
            Ok([tenants[0], tenants[1]])
        });
        let tenants = make.await.unwrap();
        let after = |tenant: TenantId| TenantId(Uuid::from_u128(tenant.0.as_u128() + 1));
        (store, [TenantId(Uuid::from_u128(1)), after(tenants[0]), after(tenants[1])])
    }

    /// Returns the statement that adds the positions of accounts that are gone. `id` makes an id of 32 hexadecimal digits.
    fn insert(gone: [TenantId; 3], series: &str, id: impl Fn(&str) -> String) -> String {
        let gone = gone.map(|tenant| format!("SELECT {} AS tenant", id(&format!("'{}'", tenant.0.simple()))));
        format!(
            "INSERT INTO stream_positions (tenant_id, stream_id, sent_until) \
             SELECT g.tenant, {}, 1 FROM ({}) AS g, {series}",
            id("n.digits"),
            gone.join(" UNION ALL ")
        )
    }

    /// Deletes them, and checks after each step how many are left of each account.
    async fn delete(store: &dyn Store, gone: [TenantId; 3], left: impl AsyncFn() -> Vec<i64>) {
        assert_eq!(left().await, [STREAMS, 1, STREAMS, 1, STREAMS]);
        let step = store.write("test", (gone[0], gone[1]), async |tx, &(after, until)| {
            let first = tx.delete_positions_without_account(after, until, retention::STEP).await?;
            Ok([first, tx.delete_positions_without_account(after, until, retention::STEP).await?])
        });
        assert_eq!(step.await, Ok([retention::STEP.into(), 1]));
        assert_eq!(left().await, [STREAMS, 1, 1, STREAMS], "those outside of the range stay");
        let sweep = async |is_dry| {
            let before = store.env().now();
            retention::sweep(store, &mut Positions::new(), before, is_dry, || async {}).await
        };
        assert_eq!(sweep(true).await, Ok(DeletedCounts::default()));
        assert_eq!(left().await, [STREAMS, 1, 1, STREAMS]);
        assert_eq!(sweep(false).await.map(|deleted| deleted.rows()), Ok(0));
        assert_eq!(left().await, [1, 1], "accounts that exist keep their positions");
    }

    const COUNT: &str = "SELECT count(*) FROM stream_positions GROUP BY tenant_id ORDER BY tenant_id";

    #[tokio::test]
    async fn positions_of_accounts_that_are_gone_are_deleted_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("svc.db");
        let (store, gone) = filled(&format!("sqlite://{}", path.display())).await;
        let connection = rusqlite::Connection::open(&path).unwrap();
        let series = format!(
            "(WITH RECURSIVE n (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < {STREAMS}) \
             SELECT printf('%032x', at) AS digits FROM n) AS n"
        );
        connection.execute(&insert(gone, &series, |digits| format!("unhex({digits})")), []).unwrap();
        let left = async || {
            let mut statement = connection.prepare(COUNT).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<Vec<i64>, _>>().unwrap()
        };
        delete(&*store, gone, left).await;
    }

    #[tokio::test]
    async fn positions_of_accounts_that_are_gone_are_deleted_from_a_server() {
        let Some(server) = svc_test_support::postgres::server() else { return };
        let url = server.database();
        let (store, gone) = filled(&url).await;
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let series =
            format!("(SELECT lpad(to_hex(at), 32, '0') AS digits FROM generate_series(1, {STREAMS}) AS at) AS n");
        client.batch_execute(&insert(gone, &series, |digits| format!("({digits})::uuid"))).await.unwrap();
        let left = async || {
            let rows = client.query(COUNT, &[]).await.unwrap();
            rows.iter().map(|row| row.get(0)).collect()
        };
        delete(&*store, gone, left).await;
    }
}
