//! Tables for people, which fit their terminal.
//!
//! The columns of a table stand in the order of their importance. If they are too wide together, ids are shortened to their
//! ends, then long texts, and then the last columns are left out. Output that no terminal shows has all columns at their full
//! width.
//!
//! The beginning of an id is the time at which it was made, which records of the same minute have in common. Its end is
//! random, and names the record in a command as the whole id does.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};

use svc_core::values::parse_uuid;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::output::{DASH, HEADING, on_one_line, plain_styled};
use crate::values;

/// The space between two columns.
const GAP: usize = 2;
/// The width to which a long text can be shortened.
const MIN_TEXT: usize = 16;
/// The fewest characters of a shortened id: those after its last hyphen.
const MIN_ID: usize = 12;
/// The length of an id.
const ID: usize = 36;

/// A table with a heading and aligned columns.
pub(crate) struct Table {
    columns: Vec<Column>,
}

struct Column {
    heading: &'static str,
    cells: Vec<String>,
    shape: Shape,
}

/// How a column becomes narrower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// It does not.
    Fixed,
    /// To this many characters at the end of each id, which are enough to tell them apart.
    Ids(usize),
    /// By leaving out the ends of texts.
    Text,
}

impl Table {
    /// Creates a table with one row per item and one cell per heading.
    pub(crate) fn new<T, R: IntoIterator<Item = String>>(
        heading: impl IntoIterator<Item = &'static str>,
        items: &[T],
        row: impl Fn(&T) -> R,
    ) -> Self {
        let column = |heading| Column { heading, cells: Vec::with_capacity(items.len()), shape: Shape::Fixed };
        let mut columns: Vec<Column> = heading.into_iter().map(column).collect();
        for item in items {
            for (column, cell) in columns.iter_mut().zip(row(item)) {
                column.cells.push(on_one_line(&plain_styled(&cell)));
            }
        }
        for column in &mut columns {
            column.shape = shape(&column.cells);
        }
        Self { columns }
    }

    /// Formats the table as lines of text that fit the terminal, if there is one.
    pub(crate) fn to_text(&self) -> String {
        self.to_text_within(terminal_width())
    }

    /// Formats the table as lines of at most this width.
    fn to_text_within(&self, width: Option<usize>) -> String {
        let widths = match width {
            Some(width) => self.widths_within(width),
            None => self.columns.iter().map(Column::width).collect(),
        };
        let heading = self.columns.iter().map(|column| column.heading.to_owned());
        let mut text = format!("{HEADING}{}{HEADING:#}\n", line(heading, &widths));
        for row in 0..self.columns.first().map_or(0, |column| column.cells.len()) {
            let cells = self.columns.iter().zip(&widths).map(|(column, width)| column.cell(row, *width));
            text.push_str(&line(cells, &widths));
            text.push('\n');
        }
        text
    }

    /// Returns the widths of the columns that fit, which are the first ones.
    fn widths_within(&self, width: usize) -> Vec<usize> {
        let natural: Vec<usize> = self.columns.iter().map(Column::width).collect();
        if total(&natural) <= width {
            return natural;
        }
        let mut widths: Vec<usize> = self.columns.iter().map(Column::min_width).collect();
        while widths.len() > 1 && total(&widths) > width {
            widths.pop();
        }
        // What is left goes to the texts from the first on, then to ids, of which all is shown or what tells them apart.
        for is_turn_of_ids in [false, true] {
            for at in 0..widths.len() {
                let (rest, wanted) = (width.saturating_sub(total(&widths)), natural[at] - widths[at]);
                match self.columns[at].shape {
                    Shape::Ids(_) if is_turn_of_ids && wanted <= rest => widths[at] += wanted,
                    Shape::Text if !is_turn_of_ids => widths[at] += wanted.min(rest),
                    _ => {}
                }
            }
        }
        widths
    }
}

/// Returns the width of columns with the space between them.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Returns how a column with these cells becomes narrower.
fn shape(cells: &[String]) -> Shape {
    let ids: BTreeSet<&str> = cells.iter().map(String::as_str).filter(|cell| *cell != DASH).collect();
    if !ids.is_empty() && ids.iter().all(|cell| parse_uuid(cell).is_ok()) {
        return Shape::Ids(distinct_end(&ids));
    }
    // Times and styled states are always whole.
    let is_time = |cell: &&str| cell.as_bytes().get(10) == Some(&b' ') && values::time(cell).is_ok();
    if ids.iter().all(is_time) || cells.iter().any(|cell| cell.contains('\u{1b}')) { Shape::Fixed } else { Shape::Text }
}

/// Returns how many characters at their end tell these ids apart. None of the ends begins with a hyphen, as an option does.
fn distinct_end(ids: &BTreeSet<&str>) -> usize {
    let end = |id: &str, length: usize| id.get(ID.saturating_sub(length)..).map(str::to_owned);
    let is_distinct = |length: usize| {
        let ends: BTreeSet<_> = ids.iter().map(|id| end(id, length)).collect();
        ends.len() == ids.len() && !ends.iter().flatten().any(|end| end.starts_with('-'))
    };
    (MIN_ID..ID).find(|length| is_distinct(*length)).unwrap_or(ID)
}

impl Column {
    /// Returns the width of the widest cell.
    fn width(&self) -> usize {
        self.cells.iter().map(|cell| shown_width(cell)).chain([self.heading.width()]).max().unwrap_or(0)
    }

    /// Returns the width below which the column is left out.
    fn min_width(&self) -> usize {
        let width = match self.shape {
            Shape::Fixed => self.width(),
            Shape::Ids(length) => length,
            Shape::Text => self.width().min(MIN_TEXT),
        };
        width.max(self.heading.width())
    }

    /// Returns a cell, shortened to this width.
    fn cell(&self, row: usize, width: usize) -> String {
        let cell = self.cells.get(row).map(String::as_str).unwrap_or_default();
        match self.shape {
            Shape::Ids(length) if width < ID && cell != DASH => {
                cell.get(ID.saturating_sub(length)..).unwrap_or(cell).to_owned()
            }
            Shape::Text if shown_width(cell) > width => shorten(cell, width),
            _ => cell.to_owned(),
        }
    }
}

/// Returns the beginning of a text with an ellipsis, as wide as this at most.
fn shorten(text: &str, width: usize) -> String {
    let mut left = width.saturating_sub(1);
    let fits = |char: &char| match left.checked_sub(char.width().unwrap_or(0)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// Returns the width of a text on a terminal, without its styles.
fn shown_width(text: &str) -> usize {
    if text.contains('\u{1b}') { anstream::adapter::strip_str(text).to_string().width() } else { text.width() }
}

/// Formats one row, each cell padded to its column's width.
fn line(cells: impl Iterator<Item = String>, widths: &[usize]) -> String {
    let padded = cells.zip(widths).map(|(cell, width)| {
        let padding = width.saturating_sub(shown_width(&cell));
        format!("{cell}{:padding$}", "")
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// Returns the width of the terminal that shows stdout, if one does.
fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &Table, width: Option<usize>) -> String {
        anstream::adapter::strip_str(&table.to_text_within(width)).to_string()
    }

    #[test]
    fn columns_align_in_every_script() {
        let table = Table::new(["NAME", "ACCESS"], &["Ada", "港湾配管", "Zoë"], |name| {
            [(*name).to_owned(), "approved".to_owned()]
        });
        let want = "NAME      ACCESS\nAda       approved\n港湾配管  approved\nZoë       approved\n";
        assert_eq!(text(&table, None), want);
        assert_eq!(text(&table, Some(18)), want);
    }

    #[test]
    fn a_table_becomes_narrower_by_its_ids_then_its_texts_then_its_last_columns() {
        let ids = ["0195a3c8-0000-7000-8000-6f1c02d93b5e", "0195a3c8-0001-7000-8000-b27d40aa91c3"];
        let table = Table::new(["ID", "NAME", "AT", "URL"], &ids, |id| {
            [
                (*id).to_owned(),
                "Ada, Countess of Lovelace".to_owned(),
                "2026-03-14 15:09:26Z".to_owned(),
                "https://example.com/hooks".to_owned(),
            ]
        });
        assert_eq!(text(&table, Some(112)), text(&table, None));
        let first = |width| text(&table, Some(width)).lines().nth(1).unwrap_or_default().to_owned();
        let (id, at) = ("6f1c02d93b5e", "2026-03-14 15:09:26Z");
        assert_eq!(first(111), format!("{id}  Ada, Countess of Lovelace  {at}  https://example.com/hooks"));
        assert_eq!(first(79), format!("{id}  Ada, Countess of Lovelace  {at}  https://example…"));
        assert_eq!(first(71), format!("{id}  Ada, Countess of…  {at}  https://example…"));
        assert_eq!(first(59), format!("{id}  Ada, Countess of Lovel…  {at}"));
        assert_eq!(first(20), id);
        assert!(text(&table, Some(40)).lines().all(|line| line.width() <= 40));
    }

    #[test]
    fn ids_of_one_moment_are_told_apart_by_their_ends() {
        let shown = |ids: &[&str]| {
            let table =
                Table::new(["ID", "NAME"], ids, |id| [(*id).to_owned(), "Ada, Countess of Lovelace".to_owned()]);
            let text = text(&table, Some(60));
            let cells = text.lines().skip(1).map(|line| line.split(' ').next().unwrap_or_default().to_owned());
            cells.collect::<Vec<_>>()
        };
        let one = "0195a3c8-0000-7000-8000-6f1c02d93b5e";
        assert_eq!(shown(&[one]), ["6f1c02d93b5e"], "the beginning of one id is that of many others");
        assert_eq!(shown(&[one, "0195a3c8-0000-7000-8000-b27d40aa91c3"]), ["6f1c02d93b5e", "b27d40aa91c3"]);
        // An import can bring ids whose ends are not random. An end with a hyphen in front would be taken for an option.
        assert_eq!(shown(&[one, "0195a3c8-0000-7000-9000-6f1c02d93b5e"]), ["8000-6f1c02d93b5e", "9000-6f1c02d93b5e"]);
    }

    #[test]
    fn a_text_is_shortened_to_its_width() {
        assert_eq!(shorten("https://example.com", 8), "https:/…");
        assert_eq!(shorten("港湾配管", 4), "港…");
        assert_eq!(shorten("a", 1), "…");
    }
}
