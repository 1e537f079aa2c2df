//! CSV files of lists, as `svc export` writes them (RFC 4180).

use svc_core::values::formulas;

/// Text of a CSV file under construction.
pub(super) struct Csv(String);

impl Csv {
    /// Returns a file with its headings.
    pub(super) fn new<'h>(headings: impl IntoIterator<Item = &'h str>) -> Self {
        let mut csv = Self(String::new());
        csv.row(headings.into_iter().map(str::to_owned));
        csv
    }

    /// Adds a row. A cell that a spreadsheet would run as a formula gets an apostrophe in front.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
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

    /// Returns the text.
    pub(super) fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formula_is_run() {
        let mut csv = Csv::new(["name", "phone"]);
        csv.row(["=cmd|'/c calc'!A0".to_owned(), "+61 2 5550 0100".to_owned()]);
        csv.row(["Smith, \"Ada\"\r\nof Hill".to_owned(), String::new()]);
        let want = "name,phone\r\n'=cmd|'/c calc'!A0,'+61 2 5550 0100\r\n\"Smith, \"\"Ada\"\"\r\nof Hill\",\r\n";
        assert_eq!(csv.into_text(), want);
    }
}
