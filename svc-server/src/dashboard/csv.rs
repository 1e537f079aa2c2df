//! CSV files of lists (RFC 4180), for spreadsheets.
//!
//! A file has all rows that the filters of its list select. It is read piece by piece while the browser takes it, so its size
//! does not matter. It begins with a byte order mark, without which Excel reads it in the code page of the system. `svc` reads
//! such a file, and writes none: programs read what it prints.

use std::future::Future;
use std::io;

use futures_util::stream::{self, StreamExt as _};
use svc_core::values::formulas;

use super::page_response::{PageError, PageResponse};
use crate::kernel::response::Piece;

/// The byte order mark of UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Rows of a CSV file.
#[derive(Default)]
pub(super) struct Rows(String);

impl Rows {
    /// Adds a row. A cell that a spreadsheet would run as a formula gets an apostrophe in front.
    pub(super) fn add(&mut self, cells: impl IntoIterator<Item = String>) {
        for (at, cell) in cells.into_iter().enumerate() {
            if at > 0 {
                self.0.push(',');
            }
            let cell = formulas::to_cell(cell, true);
            if cell.contains([',', '"', '\r', '\n']) {
                self.0.extend(["\"", &cell.replace('"', "\"\""), "\""]);
            } else {
                self.0.push_str(&cell);
            }
        }
        self.0.push_str("\r\n");
    }
}

/// Where the next piece of a file begins. `None` after the last one.
type Next<P> = Option<P>;

/// Responds with a file that has these headings. `read` reads and makes the piece that begins at a position, in the memory of
/// `records` records, and returns where the next one begins.
///
/// # Errors
///
/// Those of the first piece. When a later one cannot be read, the download fails.
pub(super) async fn respond<P, F>(
    name: &'static str,
    headings: &[&str],
    records: u32,
    first: P,
    read: impl Fn(P) -> F + Send + 'static,
) -> Result<PageResponse, PageError>
where
    P: Send + 'static,
    F: Future<Output = Result<(Rows, Next<P>), PageError>> + Send + 'static,
{
    let mut text = Rows(BYTE_ORDER_MARK.to_owned());
    text.add(headings.iter().map(|heading| (*heading).to_owned()));
    let (Rows(rows), next) = read(first).await?;
    let first = Piece { bytes: (text.0 + &rows).into(), is_last: next.is_none() };
    let rest = stream::try_unfold((next, read), move |(next, read)| async move {
        let Some(position) = next else { return Ok(None) };
        let (Rows(rows), next) = read(position).await.map_err(|error| {
            tracing::error!(file = name, ?error, "a file of the dashboard could not be read to its end");
            io::Error::other("the file could not be read to its end")
        })?;
        Ok(Some((Piece { bytes: rows.into(), is_last: next.is_none() }, (next, read))))
    });
    Ok(PageResponse::csv(name, first, rest.boxed(), records))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formula_is_run() {
        let mut rows = Rows::default();
        rows.add(["=cmd|'/c calc'!A0".to_owned(), "+61 2 5550 0100".to_owned()]);
        rows.add(["Smith, \"Ada\"\r\nof Hill".to_owned(), String::new()]);
        let want = "'=cmd|'/c calc'!A0,'+61 2 5550 0100\r\n\"Smith, \"\"Ada\"\"\r\nof Hill\",\r\n";
        assert_eq!(rows.0, want);
    }
}
