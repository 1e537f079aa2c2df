//! How far a copy has come: a row in the target's `settings`, written in the transaction of each batch.

use serde_json::{Value as Json, json};

use svc_core::error::StoreError;
use svc_core::store::StoreResult;

use super::table_reader::{Cell, Cells, key_kinds};
use super::tables::{TABLES, TableInfo};
use crate::column::{Kind, Param, Row, Value};
use crate::sql::Sql;
use crate::unfinished::COPY_SETTING;

const GET: &str = "SELECT value FROM settings WHERE name = $1";
const PUT: &str = "INSERT INTO settings (name, value) VALUES ($1, $2) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// How far a copy has come.
///
/// It is stored in the `settings` of the target as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyPosition {
    /// The identity of the source, in hex.
    pub(crate) source: String,
    /// The index in [`TABLES`] of the table that is being copied, or their number once all tables are copied.
    pub(crate) table: usize,
    /// The key of the last row of that table that was copied. `None` before the first row.
    pub(crate) after: Option<Cells>,
}

impl CopyPosition {
    /// Returns the position of a copy that is about to start.
    pub(crate) fn new(source: &[u8; 32]) -> Self {
        Self { source: hex::encode(source), table: 0, after: None }
    }

    /// Reads the position of the copy into this database, if there was one.
    pub(crate) async fn read(sql: &mut dyn Sql) -> StoreResult<Option<Self>> {
        match setting(sql, COPY_SETTING).await? {
            None => Ok(None),
            Some(bytes) => Self::decode(&bytes).map(Some).ok_or_else(|| StoreError::Corrupt {
                table: "settings",
                column: "value",
                reason: "the position of a copy is not valid JSON of this version".to_owned(),
            }),
        }
    }

    pub(crate) async fn write(&self, sql: &mut dyn Sql) -> StoreResult<()> {
        put_setting(sql, COPY_SETTING, &self.encode()).await
    }

    fn encode(&self) -> Vec<u8> {
        let table = TABLES.get(self.table).map(|table| table.name);
        let after = self.after.as_ref().map(|key| key.iter().map(to_text).collect::<Vec<_>>());
        json!({ "source": self.source, "table": table, "after": after }).to_string().into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let json: Json = serde_json::from_slice(bytes).ok()?;
        let source = json.get("source")?.as_str()?.to_owned();
        let Some(name) = json.get("table")?.as_str() else {
            return Some(Self { source, table: TABLES.len(), after: None });
        };
        let table = TABLES.iter().position(|table| table.name == name)?;
        let after = match json.get("after")?.as_array() {
            None => None,
            Some(texts) => Some(parse_key(&TABLES[table], texts)?),
        };
        Some(Self { source, table, after })
    }
}

/// Returns a cell of a key as text: bytes in hex, numbers as decimal digits.
fn to_text(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Int(value) => value.to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Bytes(bytes) => hex::encode(bytes),
    }
}

fn parse_key(table: &TableInfo, texts: &[Json]) -> Option<Cells> {
    let cells = texts.iter().zip(key_kinds(table)).map(|(text, kind)| {
        let text = text.as_str()?;
        Some(match kind {
            Kind::Uuid | Kind::Bytes => Cell::Bytes(hex::decode(text).ok()?),
            Kind::Text => Cell::Text(text.to_owned()),
            Kind::Int | Kind::Bool | Kind::Time | Kind::Date => Cell::Int(text.parse().ok()?),
        })
    });
    cells.collect::<Option<Cells>>().filter(|cells| cells.len() == table.key.len())
}

/// Returns a setting of the database.
pub(crate) async fn setting(sql: &mut dyn Sql, name: &'static str) -> StoreResult<Option<Vec<u8>>> {
    let mut found = None;
    let mut each = |row: &dyn Row| {
        if let Value::Bytes(bytes) = row.value(0)? {
            found = Some(bytes.to_vec());
        }
        Ok(())
    };
    sql.query(GET, &[name.into()], &mut each).await?;
    Ok(found)
}

/// Stores a setting of the database, and replaces its value if it exists.
pub(crate) async fn put_setting(sql: &mut dyn Sql, name: &'static str, value: &[u8]) -> StoreResult<()> {
    sql.pipeline(PUT, &[name.into(), Param::Bytes(value)], None).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let position = |name| TABLES.iter().position(|table| table.name == name).unwrap();
        let key = |kind: &str| vec![Cell::Bytes(vec![7; 16]), Cell::Text(kind.to_owned())];
        let attempt = vec![Cell::Bytes(vec![0; 16]), Cell::Bytes(vec![255; 16]), Cell::Int(3)];
        for (table, after) in [
            (0, None),
            (position("numbers"), Some(key("INV"))),
            (position("idempotency"), Some(key("a \"key\" of – anything"))),
            (position("delivery_attempts"), Some(attempt)),
            (TABLES.len(), None),
        ] {
            let position = CopyPosition { source: "ab".repeat(32), table, after };
            assert_eq!(CopyPosition::decode(&position.encode()), Some(position));
        }
        assert_eq!(CopyPosition::decode(b"{}"), None);
        assert_eq!(CopyPosition::decode(br#"{"source": "a", "table": "numbers", "after": ["00"]}"#), None);
    }
}
