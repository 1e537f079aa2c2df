//! Which field each column of a file is for.
//!
//! A column is for the field of the same name. Programs write names for people, such as `First Name`, so case does not count,
//! nor which of spaces, hyphens and underscores are between the words. A mapping names the field of any other column, and takes
//! precedence.

use svc_core::input::json::Json;
use svc_core::input::similar;

use crate::dates::{Zone, zone_of_column};
use crate::error::ImportError;
use crate::plan::{ColumnMapping, UnusedMapping};
use crate::presets::PresetField;

/// The most columns of a file that an error names.
const MAX_NAMED: usize = 50;

/// The fields that are parts of an address.
const ADDRESS: [&str; 3] = ["city", "state", "postcode"];

/// How the names of columns are read.
#[derive(Clone, Debug)]
pub(super) struct ColumnNames {
    mapping: Vec<Mapping>,
    /// The columns of the preset.
    preset: Option<&'static [PresetField]>,
    /// Whether columns that are for no field are skipped.
    ignore_unknown: bool,
    /// The names of all fields.
    fields: &'static [&'static str],
}

/// A mapping of the plan.
#[derive(Clone, Debug)]
struct Mapping {
    given: ColumnMapping,
    /// The field. `None` if the column is left out.
    field: Option<&'static str>,
    /// Whether a line of NDJSON had the column.
    is_used: bool,
}

/// The header of a CSV file.
pub(super) struct Header {
    /// The line on which it begins.
    pub(super) line: u64,
    /// The names of the columns.
    pub(super) names: Vec<String>,
}

/// The columns of a file.
#[derive(Debug)]
pub(super) struct Columns {
    /// The field that each column is for.
    fields: Vec<Option<&'static str>>,
    /// The fields that a preset reads from one of several columns: where these are, the preferred one first.
    alternatives: Vec<(&'static str, Vec<Option<usize>>)>,
    /// The time zone that the name of each column has.
    zones: Vec<Option<Zone>>,
}

/// A column of a CSV file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderColumn {
    /// The name, without the blanks around it.
    pub name: String,
    /// The name by which a mapping finds this column and no other.
    pub mapped_as: String,
    /// The field that it is for. `None` if it is left out.
    pub field: Option<&'static str>,
}

/// A cell of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'r> {
    /// The field that its column is for.
    pub(super) field: &'static str,
    pub(super) bytes: &'r [u8],
    /// The time zone that the name of its column has.
    pub(super) zone: Option<&'r Zone>,
}

impl Columns {
    /// Returns how many columns there are.
    pub(super) fn count(&self) -> usize {
        self.fields.len()
    }

    /// Returns whether a column is for one of these fields.
    pub(super) fn have(&self, fields: &[&str]) -> bool {
        self.fields.iter().flatten().any(|field| fields.contains(field))
    }

    /// Returns columns that are for no field.
    pub(super) fn without_fields(count: usize) -> Self {
        Self { fields: vec![None; count], alternatives: Vec::new(), zones: Vec::new() }
    }

    /// Returns the columns with these names.
    pub(super) fn described(&self, names: &[String]) -> Vec<HeaderColumn> {
        let field = |position: usize| {
            let is_one_of = |(_, columns): &&(&str, Vec<Option<usize>>)| columns.contains(&Some(position));
            self.fields[position].or_else(|| self.alternatives.iter().find(is_one_of).map(|(field, _)| *field))
        };
        let described = |(position, name): (usize, &String)| HeaderColumn {
            name: name.clone(),
            mapped_as: mapped_as(names, position),
            field: field(position),
        };
        names.iter().enumerate().map(described).collect()
    }

    /// Returns the fields with their cells in a row. Cells that are missing at its end are empty. Of several columns of a
    /// field, the first counts whose cell is not empty; the parts of an address come from one address.
    pub(super) fn cells<'r>(&'r self, row: &[&'r [u8]]) -> Vec<Cell<'r>> {
        let cell = |position: usize| row.get(position).copied().unwrap_or_default();
        let alternative = |(_, columns): &(&str, Vec<Option<usize>>)| {
            // Spreadsheets also write an empty text as a formula.
            let has_text = |position| !matches!(cell(position).trim_ascii(), b"" | b"=\"\"");
            columns.iter().position(|column| column.is_some_and(has_text))
        };
        let addresses = self.alternatives.iter().filter(|(field, _)| ADDRESS.contains(field));
        let address = addresses.filter_map(alternative).min();
        let at = |field, position: Option<usize>| Cell {
            field,
            bytes: position.map_or(&[][..], cell),
            zone: position.and_then(|position| self.zones.get(position)?.as_ref()),
        };
        let read = |(position, field): (usize, &Option<&'static str>)| {
            let field = (*field)?;
            let Some(several) = self.alternatives.iter().find(|(name, _)| *name == field) else {
                return Some(at(field, Some(position)));
            };
            // A version of the export may name one part of an address otherwise than the rest.
            let of_address =
                address.filter(|at| ADDRESS.contains(&field) && several.1.get(*at).is_some_and(Option::is_some));
            let chosen = of_address.or_else(|| alternative(several));
            Some(at(field, chosen.and_then(|chosen| several.1[chosen])))
        };
        self.fields.iter().enumerate().filter_map(read).collect()
    }
}

impl ColumnNames {
    /// Creates it from the parts of a plan.
    ///
    /// # Errors
    /// A column is mapped to something that is no field, or two columns are mapped to one field.
    pub(super) fn new(
        mapping: &[ColumnMapping],
        preset: Option<&'static [PresetField]>,
        ignore_unknown: bool,
        fields: &'static [&'static str],
    ) -> Result<Self, ImportError> {
        let mut read: Vec<Mapping> = Vec::with_capacity(mapping.len());
        for given in mapping {
            let field = match &given.field {
                None => None,
                Some(name) => {
                    let field = fields.iter().copied().find(|field| field == name);
                    Some(field.ok_or_else(|| {
                        let meant = similar(name, fields.iter().copied());
                        ImportError::UnknownField { mapping: given.clone(), meant, fields }
                    })?)
                }
            };
            if let Some(other) = read.iter().find(|other| field.is_some() && other.field == field) {
                return Err(ImportError::SameField { first: other.given.clone(), second: given.clone() });
            }
            read.push(Mapping { given: given.clone(), field, is_used: false });
        }
        Ok(Self { mapping: read, preset, ignore_unknown, fields })
    }

    /// Returns the columns of a header.
    ///
    /// # Errors
    /// A mapped column is missing, a column that is used is there twice, or a column is unknown.
    pub(super) fn columns(&self, header: &Header) -> Result<Columns, ImportError> {
        let names: Vec<String> = header.names.iter().map(|name| normalized(name)).collect();
        let mut columns: Vec<Option<&'static str>> = vec![None; names.len()];
        let mut is_mapped = vec![false; names.len()];
        for Mapping { given, field, .. } in &self.mapping {
            let found = positions(&given.column, &header.names, &names);
            match (found.as_slice(), field) {
                ([], _) => return Err(header.without(given, &names)),
                ([first, _, ..], Some(field)) => return Err(header.repeats(*first, field, true)),
                _ => {}
            }
            for position in found {
                if std::mem::replace(&mut is_mapped[position], true) {
                    return Err(ImportError::MappedTwice { mapping: given.clone(), column: header.name(position) });
                }
                columns[position] = *field;
            }
        }
        let mapped = columns.clone();
        let mut unknown = Vec::new();
        let mut alternatives = Vec::new();
        let preset = self.preset.unwrap_or_default().iter();
        for (field, candidates) in preset.filter(|(field, _)| !mapped.contains(&Some(field.as_str()))) {
            let free = |position: &usize| !is_mapped[*position];
            let find = |name: &String| positions(name, &header.names, &names).into_iter().find(free);
            let found: Vec<Option<usize>> = candidates.iter().map(find).collect();
            if let Some(first) = found.iter().flatten().next() {
                columns[*first] = Some(field);
                alternatives.push((field.as_str(), found));
            }
        }
        if self.preset.is_some() {
            is_mapped.fill(true);
            unknown.extend((0..names.len()).map(|position| header.name(position)));
        }
        for (position, name) in names.iter().enumerate().filter(|(position, _)| !is_mapped[*position]) {
            match self.fields.iter().copied().find(|field| field == name) {
                Some(field) if mapped.contains(&Some(field)) => {}
                Some(field) if columns.contains(&Some(field)) => {
                    return Err(header.repeats(position, field, false));
                }
                Some(field) => columns[position] = Some(field),
                None if is_derived(name, &names) => {}
                None => unknown.push(format!("{}{}", header.name(position), suggestion(name, self.fields))),
            }
        }
        if columns.iter().all(Option::is_none) {
            let (line, columns) = (header.line, listed(&unknown));
            return Err(match self.preset {
                Some(_) => ImportError::NoPresetColumn { line, columns },
                None => ImportError::NoFieldColumn { line, columns, fields: self.fields },
            });
        }
        if !unknown.is_empty() && !self.ignore_unknown && self.preset.is_none() {
            let (columns, are_many) = (listed(&unknown), unknown.len() > 1);
            return Err(ImportError::UnknownColumns { columns, are_many, fields: self.fields });
        }
        let zones = header.names.iter().map(|name| zone_of_column(name)).collect();
        Ok(Columns { fields: columns, alternatives, zones })
    }

    /// Gives the members of a JSON object the names of the fields that they are for. Unknown ones keep their names, or are
    /// left out if they are to be ignored.
    pub(super) fn members(&mut self, members: Vec<(String, Json)>) -> Vec<(String, Json)> {
        let (mut named, mut others) = (Vec::with_capacity(members.len()), Vec::new());
        for (name, value) in members {
            let form = normalized(&name);
            let exact = self.mapping.iter().position(|mapping| mapping.given.column == name);
            let mapped =
                exact.or_else(|| self.mapping.iter().position(|mapping| normalized(&mapping.given.column) == form));
            match mapped.and_then(|position| self.mapping.get_mut(position)) {
                Some(mapping) => {
                    mapping.is_used = true;
                    named.extend(mapping.field.map(|field| (field.to_owned(), value)));
                }
                None => others.push((form, name, value)),
            }
        }
        let mapped = named.len();
        for (form, name, value) in others {
            match self.fields.iter().find(|field| **field == form) {
                Some(field) if named[..mapped].iter().any(|(taken, _)| taken == field) => {}
                Some(field) => named.push(((*field).to_owned(), value)),
                None if self.ignore_unknown => {}
                None => named.push((name, value)),
            }
        }
        named
    }

    /// Returns the mappings that no line of an NDJSON file was for.
    pub(super) fn unused(&self) -> Vec<UnusedMapping> {
        let unused = self.mapping.iter().filter(|mapping| !mapping.is_used);
        unused.map(|mapping| UnusedMapping::Column(mapping.given.clone())).collect()
    }
}

impl Header {
    /// Returns the name of a column as errors show it.
    fn name(&self, position: usize) -> String {
        let name: String = self.names[position].chars().take(100).collect();
        format!("{name:?}")
    }

    /// Returns the error of a mapped column that is missing.
    fn without(&self, given: &ColumnMapping, names: &[String]) -> ImportError {
        let meant = similar(&given.column, names.iter().map(String::as_str));
        let meant = meant.and_then(|meant| names.iter().position(|name| name == meant));
        let meant = meant.map(|meant| self.name(meant));
        let all: Vec<String> = (0..names.len()).map(|position| self.name(position)).collect();
        ImportError::UnknownColumn { mapping: given.clone(), meant, line: self.line, columns: listed(&all) }
    }

    /// Returns the error of a column that is used and has the name of another one.
    fn repeats(&self, position: usize, field: &'static str, is_mapped: bool) -> ImportError {
        ImportError::RepeatedColumn { column: self.name(position), field, is_mapped }
    }
}

/// Returns where a column is in a header, whose names are also given in the form of [`normalized`]: where exactly this name
/// is, or else where it is in another form. With a name such as `Email#2` that no column has, where `Email` is for the second
/// time.
fn positions(column: &str, header: &[String], names: &[String]) -> Vec<usize> {
    let find = |wanted: &str, names: &[String]| -> Vec<usize> {
        names.iter().enumerate().filter(|(_, name)| *name == wanted).map(|(position, _)| position).collect()
    };
    let either = |wanted: &str| [find(wanted, header), find(&normalized(wanted), names)];
    if let Some(found) = either(column).into_iter().find(|found| !found.is_empty()) {
        return found;
    }
    let numbered = column.rsplit_once('#').and_then(|(name, number)| Some((name, number.parse::<usize>().ok()?)));
    let nth = numbered.and_then(|(name, number)| {
        either(name).into_iter().find_map(|found| found.get(number.checked_sub(1)?).copied())
    });
    nth.into_iter().collect()
}

/// Returns the name by which a mapping finds the column at a position of a header.
pub(super) fn mapped_as(header: &[String], position: usize) -> String {
    let name = &header[position];
    let before = header[..position].iter().filter(|other| *other == name).count();
    let is_alone = before == 0 && !header[position + 1..].contains(name);
    if is_alone { name.clone() } else { format!("{name}#{}", before + 1) }
}

/// The column with the reason in a file of refused rows, which is no field.
pub const REASON_COLUMN: &str = "import_error";

/// Returns whether a column is no field, but of the service: the reason why a row was refused before, or one that repeats in other
/// words what another one of the file says. The downloads of the dashboard have the
/// name of the contact beside its id, and what is left to pay beside what was paid.
fn is_derived(name: &str, names: &[String]) -> bool {
    let has = |column: &str| names.iter().any(|name| name == column);
    match name {
        REASON_COLUMN => true,
        "contact" => has("contact_id"),
        "outstanding" => has("total") && has("amount_paid"),
        _ => false,
    }
}

/// Lists names, but not hundreds of them.
fn listed(names: &[String]) -> String {
    match names.get(..MAX_NAMED) {
        Some(first) if names.len() > MAX_NAMED => format!("{} and {} more", first.join(", "), names.len() - MAX_NAMED),
        _ => names.join(", "),
    }
}

/// Returns a name in the form in which fields are named.
fn normalized(name: &str) -> String {
    let words = name.split(|char: char| char.is_whitespace() || matches!(char, '-' | '_' | '.'));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// Returns the field that a name is most like, as a question, or nothing if it is like none.
fn suggestion(name: &str, known: &[&str]) -> String {
    let meant = similar(name, known.iter().copied());
    meant.map_or_else(String::new, |meant| format!(" (did you mean {meant}?)"))
}

/// Returns the character between the cells of a CSV file: that of the common ones which its header has most often outside of
/// quotes.
pub(super) fn delimiter(header: &[u8]) -> u8 {
    let mut quoted = false;
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
    for byte in header {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if quoted => {}
            byte => counts.iter_mut().filter(|(known, _)| known == byte).for_each(|(_, count)| *count += 1),
        }
    }
    // Of those that are as frequent, the first.
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(delimiter, _)| delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [&str; 3] = ["email", "first_name", "postcode"];

    fn column_mapping(text: &&str) -> ColumnMapping {
        let (column, field) = text.rsplit_once('=').unwrap();
        ColumnMapping { column: column.to_owned(), field: Some(field.to_owned()).filter(|field| !field.is_empty()) }
    }

    fn names(mapping: &[&str], ignore_unknown: bool) -> Result<ColumnNames, ImportError> {
        let mapping: Vec<ColumnMapping> = mapping.iter().map(column_mapping).collect();
        ColumnNames::new(&mapping, None, ignore_unknown, &FIELDS)
    }

    /// Returns the fields of the columns, in which a column without one is a dash, or the text of the error.
    fn columns(header: &[&str], mapping: &[&str], ignore_unknown: bool) -> Result<String, String> {
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        let header = Header { line: 1, names: header };
        let columns = names(mapping, ignore_unknown).unwrap().columns(&header);
        let shown =
            |columns: Columns| columns.fields.iter().map(|field| field.unwrap_or("-")).collect::<Vec<_>>().join(" ");
        columns.map(shown).map_err(|error| error.to_string())
    }

    #[test]
    fn columns_are_named_in_many_ways() {
        for (header, mapping, want) in [
            (&[" EMAIL ", "First Name"][..], &[][..], "email first_name"),
            (&["email", "first-name"], &[], "email first_name"),
            (&["e-mail  address"], &["E-Mail Address=email"], "email"),
            (&["Email", "- Email"], &["- Email=email"], "- email"),
            (&["Work Email", "Email"], &["Work Email=email"], "email -"),
            (&["Email", "EMAIL"], &["Email#2=email"], "- email"),
            (&["Email#2", "Email", "Email"], &["Email#2=email"], "email - -"),
            (&["email", "postcode"], &["postcode="], "email -"),
            (&["email", "postcode", "postcode"], &["Postcode="], "email - -"),
            (&["email", "Post Code"], &["post code=postcode"], "email postcode"),
        ] {
            assert_eq!(columns(header, mapping, false).as_deref(), Ok(want), "{header:?}");
        }
        assert_eq!(columns(&["email", "x", "x"], &[], true).unwrap(), "email - -");
        assert!(is_derived("contact", &["contact_id".to_owned()]) && !is_derived("contact", &["total".to_owned()]));
        let download = ["total", "amount_paid", "outstanding"].map(str::to_owned);
        assert!(is_derived("outstanding", &download) && !is_derived("outstanding", &download[..1]));
        assert_eq!(suggestion("Post Code", &FIELDS), " (did you mean postcode?)");
        assert_eq!(suggestion("total", &FIELDS), "");
    }

    #[test]
    fn a_preset_reads_the_first_column_that_is_not_empty_and_one_address() {
        let preset: Vec<PresetField> = serde_json::from_str(
            r#"[["phone", ["Mobile", "Work", "Home"]], ["city", ["Work City", "Home City"]], ["state", ["Work State", "Home State"]]]"#,
        )
        .unwrap();
        let fields = &["phone", "city", "state", "email"];
        let names = ColumnNames::new(&[], Some(preset.leak()), false, fields).unwrap();
        let header = ["Home", "Mobile", "Work City", "Work State", "Home City", "Home State"];
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        let columns = names.columns(&Header { line: 1, names: header }).unwrap();
        for (row, want) in [
            (&["1", "2", "Perth", "WA", "Hobart", "TAS"][..], ["2", "Perth", "WA"]),
            (&["1", " ", "", "", "Hobart", "TAS"], ["1", "Hobart", "TAS"]),
            (&["1", "=\"\"", "=\"\"", "", "Hobart", "TAS"], ["1", "Hobart", "TAS"]),
            (&["", "2", "Perth", "", "Hobart", "TAS"], ["2", "Perth", ""]),
            (&["1"], ["1", "", ""]),
            (&[], ["", "", ""]),
        ] {
            let row: Vec<&[u8]> = row.iter().map(|cell| cell.as_bytes()).collect();
            let mut cells: Vec<(&str, &str)> = columns
                .cells(&row)
                .into_iter()
                .map(|cell| (cell.field, std::str::from_utf8(cell.bytes).unwrap()))
                .collect();
            cells.sort_by_key(|(field, _)| ["phone", "city", "state"].iter().position(|name| name == field));
            assert_eq!(cells.iter().map(|(_, cell)| *cell).collect::<Vec<_>>(), want, "{row:?}");
        }
    }

    #[test]
    fn a_mapping_without_effect_is_refused() {
        for mapping in [&["a=frist_name"][..], &["a=email", "b=email"]] {
            assert!(names(mapping, false).is_err(), "{mapping:?}");
        }
        let error = |header: &[&str], mapping: &[&str]| {
            let names_of_header = header.iter().map(|name| (*name).to_owned()).collect();
            names(mapping, true).unwrap().columns(&Header { line: 1, names: names_of_header }).unwrap_err()
        };
        let missing = error(&["email", "Company"], &["Compny=first_name"]);
        assert!(matches!(missing, ImportError::UnknownColumn { meant: Some(meant), .. } if meant == "\"Company\""));
        assert!(matches!(error(&["email"], &["email#2=email"]), ImportError::UnknownColumn { .. }));
        assert!(matches!(error(&["email", "email"], &["email=email"]), ImportError::RepeatedColumn { .. }));
        assert!(matches!(error(&["email"], &["email=email", "EMAIL=postcode"]), ImportError::MappedTwice { .. }));
        assert!(matches!(error(&["Contacts 2026"], &[]), ImportError::NoFieldColumn { .. }));
    }

    #[test]
    fn a_column_has_a_name_of_its_own_for_mappings() {
        let header = ["Email", "Name", "Email"].map(str::to_owned);
        assert_eq!([0, 1, 2].map(|position| mapped_as(&header, position)), ["Email#1", "Name", "Email#2"]);
    }

    #[test]
    fn the_delimiter_is_the_most_frequent_one() {
        for (header, want) in [
            ("email", b','),
            ("email;first_name\n1,2,3,4", b';'),
            ("email;first_name\r1,2,3,4", b';'),
            ("email\tfirst_name", b'\t'),
            ("\"a;b;c\",email", b','),
            ("a|b|c,d", b'|'),
        ] {
            assert_eq!(delimiter(header.as_bytes()), want, "{header:?}");
        }
    }
}
