//! Calendars as iCalendar (RFC 5545), which calendar programs subscribe to.
//!
//! A text depends on the records alone, and not on the time at which it is written: so it has another digest exactly when
//! something changed. `DTSTAMP` is the time of the last change, as RFC 5545 says for a calendar without `METHOD`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Calendar, Certainty, Entry};
use crate::resources::contacts::ContactId;
use crate::values::{Date, TimeZone, Timestamp};

/// The media type of a calendar.
pub const MEDIA_TYPE: &str = "text/calendar; charset=utf-8";
/// The longest line in octets, without its end.
const MAX_LINE: usize = 75;
/// How often programs may ask again: every hour.
const REFRESH: &str = "PT1H";

/// A program does not accept a calendar without any part, so one without entries has its time zone.
const NOTHING: [&str; 8] = [
    "BEGIN:VTIMEZONE",
    "TZID:UTC",
    "BEGIN:STANDARD",
    "DTSTART:19700101T000000",
    "TZOFFSETFROM:+0000",
    "TZOFFSETTO:+0000",
    "END:STANDARD",
    "END:VTIMEZONE",
];

/// The properties of a calendar besides its entries, and the names in these.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'a> {
    /// The name of the calendar, such as that of the account.
    pub name: &'a str,
    /// The time zone of the account. Entries that take whole days there have dates in place of times.
    pub zone: &'a TimeZone,
    /// The names of the contacts.
    pub contacts: &'a BTreeMap<ContactId, String>,
}

/// Returns the text of a calendar.
pub fn write(calendar: &Calendar, heading: Heading<'_>) -> String {
    let mut text = Lines(String::with_capacity(400 + calendar.entries.len() * 400));
    for line in ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//svc//Calendar//EN", "CALSCALE:GREGORIAN"] {
        text.line(line);
    }
    text.text("NAME", heading.name);
    text.text("X-WR-CALNAME", heading.name);
    text.text("X-WR-TIMEZONE", &heading.zone.to_string());
    text.line(&format!("REFRESH-INTERVAL;VALUE=DURATION:{REFRESH}"));
    text.line(&format!("X-PUBLISHED-TTL:{REFRESH}"));
    for entry in &calendar.entries {
        event(&mut text, entry, heading);
    }
    if calendar.entries.is_empty() {
        NOTHING.iter().for_each(|line| text.line(line));
    }
    text.line("END:VCALENDAR");
    text.0
}

fn event(text: &mut Lines, entry: &Entry, Heading { zone, contacts, .. }: Heading<'_>) {
    text.line("BEGIN:VEVENT");
    text.line(&format!("UID:{}", entry.id));
    text.line(&format!("DTSTAMP:{}", utc(entry.updated_at)));
    match entry.whole_days(zone) {
        Some(days) => {
            text.line(&format!("DTSTART;VALUE=DATE:{}", date(*days.start())));
            text.line(&format!("DTEND;VALUE=DATE:{}", date(days.end().plus_days(1))));
        }
        None => {
            text.line(&format!("DTSTART:{}", utc(entry.start)));
            // The end of an event is after its start.
            let end = entry.end.filter(|end| end.as_seconds() > entry.start.as_seconds());
            if let Some(end) = end {
                text.line(&format!("DTEND:{}", utc(end)));
            }
        }
    }
    let contact = entry.contact_id.and_then(|id| contacts.get(&id));
    match contact {
        Some(contact) => text.text("SUMMARY", &format!("{} – {contact}", entry.title)),
        None => text.text("SUMMARY", &entry.title),
    }
    if let Some(site) = &entry.site {
        text.text("LOCATION", site);
    }
    text.text("CATEGORIES", entry.kind.as_str());
    text.line(match entry.certainty {
        Certainty::Confirmed => "STATUS:CONFIRMED",
        Certainty::Tentative => "STATUS:TENTATIVE",
        Certainty::Cancelled => "STATUS:CANCELLED",
    });
    text.line(&format!("CREATED:{}", utc(entry.created_at)));
    text.line(&format!("LAST-MODIFIED:{}", utc(entry.updated_at)));
    text.line("END:VEVENT");
}

/// Returns a time as `20260314T150926Z`.
fn utc(at: Timestamp) -> String {
    let text = at.to_string();
    let whole_seconds = text.split('.').next().unwrap_or_default();
    format!("{}Z", whole_seconds.replace(['-', ':'], ""))
}

/// Returns a date as `20260314`.
fn date(date: Date) -> String {
    date.to_string().replace('-', "")
}

/// Lines of a calendar, with their ends.
struct Lines(String);

impl Lines {
    /// Adds a line. A long one goes on in the next, after a space, and no character is split.
    fn line(&mut self, line: &str) {
        let mut used = 0;
        for char in line.chars() {
            if used + char.len_utf8() > MAX_LINE {
                self.0.push_str("\r\n ");
                used = 1;
            }
            self.0.push(char);
            used += char.len_utf8();
        }
        self.0.push_str("\r\n");
    }

    /// Adds a property whose value is a text.
    fn text(&mut self, name: &str, value: &str) {
        let mut line = String::with_capacity(name.len() + value.len() + 1);
        let _ = write!(line, "{name}:{}", escaped(value));
        self.line(&line);
    }
}

/// Returns a text as the value of a property. Control characters, which a calendar cannot have, are left out.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\r' if chars.peek() == Some(&'\n') => {}
            // Some programs end a line at the last three as well.
            '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => text.push_str("\\n"),
            '\\' | ';' | ',' => text.extend(['\\', char]),
            '\t' => text.push('\t'),
            char if char.is_control() => {}
            char => text.push(char),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::values::RecordKind;

    /// Reads a text property back as RFC 5545 says: lines are joined first, and then what was escaped is read.
    fn read_back(calendar: &str, name: &str) -> Option<String> {
        let joined = calendar.replace("\r\n ", "");
        let value = joined.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let (mut text, mut chars) = (String::new(), value.chars());
        while let Some(char) = chars.next() {
            match char {
                '\\' => match chars.next()? {
                    'n' | 'N' => text.push('\n'),
                    escaped @ ('\\' | ';' | ',') => text.push(escaped),
                    _ => return None,
                },
                ';' | ',' => return None,
                char => text.push(char),
            }
        }
        Some(text)
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn entry(title: &str, start: &str, end: Option<&str>) -> Entry {
        Entry {
            kind: RecordKind::Job,
            id: Uuid::from_u128(0x0195_a3c8_0000_7000_8000_0000_0000_0001),
            title: title.to_owned(),
            contact_id: None,
            site: None,
            status: "scheduled",
            certainty: Certainty::Confirmed,
            start: at(start),
            end: end.map(at),
            created_at: at("2026-03-01T08:00:00.123456Z"),
            updated_at: at("2026-03-02T08:00:00.999999Z"),
        }
    }

    fn written(entries: Vec<Entry>, zone: &str, name: &str, contacts: &[(ContactId, &str)]) -> String {
        let contacts = contacts.iter().map(|(id, name)| (*id, (*name).to_owned())).collect();
        let zone = TimeZone::parse(zone).unwrap();
        write(&Calendar { entries, is_cut: false }, Heading { name, zone: &zone, contacts: &contacts })
    }

    fn assert_lines(calendar: &str) {
        assert!(calendar.ends_with("END:VCALENDAR\r\n"), "{calendar}");
        assert!(!calendar.replace("\r\n", "").contains(['\r', '\n']), "{calendar:?}");
        for line in calendar.split("\r\n") {
            assert!(line.len() <= MAX_LINE, "{line:?} has {} octets", line.len());
        }
    }

    #[test]
    fn a_calendar_has_what_programs_need() {
        let contact = ContactId::from(Uuid::from_u128(7));
        let visit = Entry {
            kind: RecordKind::Booking,
            contact_id: Some(contact),
            certainty: Certainty::Cancelled,
            ..entry("Consultation", "2026-03-14T15:00:00Z", Some("2026-03-14T16:30:00Z"))
        };
        let job = Entry {
            site: Some("1 Quay St, Sydney; upstairs".to_owned()),
            certainty: Certainty::Tentative,
            ..entry("New pump (JOB-0001)", "2026-03-20T09:00:00Z", None)
        };
        let calendar = written(vec![visit, job], "Australia/Sydney", "Harbour Plumbing", &[(contact, "Ada Lovelace")]);
        assert_lines(&calendar);
        insta::assert_snapshot!(calendar.replace("\r\n", "\n"));
    }

    #[test]
    fn whole_days_are_dates_in_the_zone_of_the_account() {
        for (zone, start, end, first, after) in [
            ("UTC", "2026-03-14T00:00:00Z", Some("2026-03-16T00:00:00Z"), "20260314", "20260316"),
            ("UTC", "2026-03-14T00:00:00Z", None, "20260314", "20260315"),
            // The days on which clocks change have 23 and 25 hours.
            ("Australia/Sydney", "2026-10-03T14:00:00Z", Some("2026-10-04T13:00:00Z"), "20261004", "20261005"),
            ("Australia/Sydney", "2026-04-04T13:00:00Z", Some("2026-04-05T14:00:00Z"), "20260405", "20260406"),
            ("Europe/Berlin", "2026-03-28T23:00:00Z", Some("2026-03-29T22:00:00Z"), "20260329", "20260330"),
            ("Europe/Berlin", "2026-10-24T22:00:00Z", Some("2026-10-25T23:00:00Z"), "20261025", "20261026"),
        ] {
            let calendar = written(vec![entry("Leave", start, end)], zone, "", &[]);
            let days = format!("DTSTART;VALUE=DATE:{first}\r\nDTEND;VALUE=DATE:{after}\r\n");
            assert!(calendar.contains(&days), "{zone} {start}: {calendar}");
        }
        for (start, end) in [
            ("2026-03-14T00:00:00Z", Some("2026-03-14T00:00:00Z")),
            ("2026-03-14T00:00:00Z", Some("2026-03-14T12:00:00Z")),
            ("2026-03-14T12:00:00Z", Some("2026-03-15T00:00:00Z")),
            ("2026-03-14T12:00:00Z", None),
        ] {
            let calendar = written(vec![entry("Work", start, end)], "UTC", "", &[]);
            assert!(calendar.contains("DTSTART:20260314T") && !calendar.contains("VALUE=DATE:"), "{calendar}");
        }
    }

    #[test]
    fn an_end_that_is_no_later_second_is_left_out() {
        let start = "2026-03-14T12:00:00Z";
        for end in [start, "2026-03-14T12:00:00.5Z"] {
            assert!(!written(vec![entry("Call", start, Some(end))], "UTC", "", &[]).contains("DTEND"), "{end}");
        }
    }

    #[test]
    fn a_calendar_without_entries_has_a_part() {
        let calendar = written(Vec::new(), "UTC", "Empty", &[]);
        assert_lines(&calendar);
        assert!(calendar.contains("BEGIN:VTIMEZONE\r\n"), "{calendar}");
    }

    #[test]
    fn control_characters_are_left_out_and_lines_are_kept() {
        assert_eq!(escaped("a\0\u{7}b\u{7f}\tc"), "ab\tc");
        assert_eq!(escaped("a\r\nb\rc\nd\u{85}e\u{2028}f\u{2029}g"), "a\\nb\\nc\\nd\\ne\\nf\\ng");
    }

    proptest::proptest! {
        #[test]
        fn any_text_survives_folding_and_escaping(text in "\\PC{0,300}", name in proptest::prelude::any::<String>()) {
            let calendar = written(vec![entry(&text, "2026-03-14T12:00:00Z", None)], "UTC", &name, &[]);
            assert_lines(&calendar);
            let plain = |text: &str| {
                let lines = text.replace("\r\n", "\n").replace(['\r', '\u{85}', '\u{2028}', '\u{2029}'], "\n");
                lines.chars().filter(|char| matches!(char, '\n' | '\t') || !char.is_control()).collect::<String>()
            };
            proptest::prop_assert_eq!(read_back(&calendar, "SUMMARY"), Some(plain(&text)));
            proptest::prop_assert_eq!(read_back(&calendar, "X-WR-CALNAME"), Some(plain(&name)));
        }
    }
}
