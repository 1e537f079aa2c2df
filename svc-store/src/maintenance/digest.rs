//! Digests of tables: the number of rows, and a checksum that does not depend on their order.

use std::fmt;

use svc_core::crypto::sha256;
use svc_core::store::StoreResult;

use super::table_reader::{Cell, Cells, TableReader};
use super::tables::TableInfo;
use crate::maintenance_connection::Transaction;

/// The number of rows and the checksum of a table. Tables with the same rows have the same digest, on all databases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// The number of rows.
    pub rows: u64,
    sum: u128,
}

impl Digest {
    /// Returns the checksum as 32 hex digits: the sum of the hashes of all rows.
    pub fn checksum(&self) -> String {
        format!("{:032x}", self.sum)
    }

    fn add(&mut self, row: &Cells) {
        let mut bytes = Vec::with_capacity(256);
        for cell in row {
            encode(cell, &mut bytes);
        }
        let hash = sha256(&bytes);
        let half = hash.first_chunk().copied().map_or(0, u128::from_be_bytes);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(half);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.checksum())
    }
}

/// Encodes a cell as its type, its length and its bytes, so that different rows have different encodings.
fn encode(cell: &Cell, out: &mut Vec<u8>) {
    let (kind, bytes): (u8, &[u8]) = match cell {
        Cell::Null => (0, &[]),
        Cell::Int(value) => (1, &value.to_be_bytes()),
        Cell::Text(text) => (2, text.as_bytes()),
        Cell::Bytes(bytes) => (3, bytes),
    };
    out.push(kind);
    out.extend((bytes.len() as u64).to_be_bytes());
    out.extend(bytes);
}

/// Computes the digest of a table. After each batch, `on_progress` is called with the number of rows read so far.
pub(crate) async fn digest(
    tx: &mut dyn Transaction,
    table: &'static TableInfo,
    on_progress: &mut (dyn FnMut(u64) + Send),
) -> StoreResult<Digest> {
    let mut reader = TableReader::new(table, tx.dialect(), None);
    let mut digest = Digest::default();
    loop {
        let rows = reader.batch(tx).await?;
        if rows.is_empty() {
            return Ok(digest);
        }
        rows.iter().for_each(|row| digest.add(row));
        on_progress(digest.rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_counts_and_the_order_of_rows_does_not() {
        let of = |rows: &[&[Cell]]| {
            let mut digest = Digest::default();
            rows.iter().for_each(|row| digest.add(&row.to_vec()));
            digest
        };
        let text = |text: &str| Cell::Text(text.to_owned());
        let (one, two) = ([text("a"), text("bc")], [text("ab"), text("c")]);
        assert_eq!(of(&[&one, &two]), of(&[&two, &one]));
        assert_ne!(of(&[&one]), of(&[&two]));
        assert_ne!(of(&[&one]), of(&[&one, &one]));
        assert_ne!(of(&[&one, &one]), of(&[&two, &two]));
        let odd = [Cell::Null, Cell::Int(0), text(""), Cell::Bytes(Vec::new()), text("0"), Cell::Bytes(vec![b'0'])];
        for (at, cell) in odd.iter().enumerate() {
            for other in &odd[at + 1..] {
                assert_ne!(of(&[std::slice::from_ref(cell)]), of(&[std::slice::from_ref(other)]), "{cell:?} {other:?}");
            }
        }
    }
}
