//! How far a copy has come: a row in the target's `settings`, written in the transaction of each batch.

use serde_json::{Value as Json, json};

use svc_core::error::StoreError;

use super::table_reader::{Cell, Cells, key_kinds};
use super::tables::{TABLES, TableInfo};
use crate::column::Kind;
use crate::sql::{Param, Row, Sql, Value};

/// The name of the setting.
const COPY: &str = "copy";

const GET: &str = "SELECT value FROM settings WHERE name = $1";
const PUT: &str = "INSERT INTO settings (name, value) VALUES ($1, $2) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// How far a copy has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyPosition {
    /// The identity of the database that is copied.
    pub(crate) source: String,
    /// The table that is being copied, as its place in [`TABLES`]; their number once all are.
    pub(crate) table: usize,
    /// The key of the last row of it that was copied.
    pub(crate) after: Option<Cells>,
}

impl CopyPosition {
    /// A copy that has not begun.
    pub(crate) fn new(source: &[u8; 32]) -> Self {
        Self { source: hex::encode(source), table: 0, after: None }
    }

    /// That of the copy into this database, if there was ever one.
    pub(crate) async fn read(sql: &mut dyn Sql) -> Result<Option<Self>, StoreError> {
        match setting(sql, COPY).await? {
            None => Ok(None),
            Some(bytes) => Self::decode(&bytes).map(Some).ok_or_else(|| StoreError::Corrupt {
                table: "settings",
                column: "value",
                reason: "the position of a copy cannot be read".to_owned(),
            }),
        }
    }

    pub(crate) async fn write(&self, sql: &mut dyn Sql) -> Result<(), StoreError> {
        put_setting(sql, COPY, &self.encode()).await
    }

    fn encode(&self) -> Vec<u8> {
        let table = TABLES.get(self.table).map(|table| table.name);
        let after = self.after.as_ref().map(|key| key.iter().map(word).collect::<Vec<_>>());
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
            Some(words) => Some(read_key(&TABLES[table], words)?),
        };
        Some(Self { source, table, after })
    }
}

/// A cell of a key as text: bytes in hex, numbers in digits.
fn word(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Int(value) => value.to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Bytes(bytes) => hex::encode(bytes),
    }
}

fn read_key(table: &TableInfo, words: &[Json]) -> Option<Cells> {
    let cells = words.iter().zip(key_kinds(table)).map(|(word, kind)| {
        let word = word.as_str()?;
        Some(match kind {
            Kind::Uuid | Kind::Bytes => Cell::Bytes(hex::decode(word).ok()?),
            Kind::Text => Cell::Text(word.to_owned()),
            Kind::Int | Kind::Bool | Kind::Time | Kind::Date => Cell::Int(word.parse().ok()?),
        })
    });
    cells.collect::<Option<Cells>>().filter(|cells| cells.len() == table.key.len())
}

/// A value of the database's own.
pub(crate) async fn setting(sql: &mut dyn Sql, name: &'static str) -> Result<Option<Vec<u8>>, StoreError> {
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

/// Stores a value of the database's own, in place of another.
pub(crate) async fn put_setting(sql: &mut dyn Sql, name: &'static str, value: &[u8]) -> Result<(), StoreError> {
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
