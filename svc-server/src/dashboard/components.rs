//! The parts that pages are made of. Each is a function that returns HTML; all texts are escaped.

use maud::{Markup, PreEscaped, html};
pub(super) use svc_core::values::grouped as number;
use svc_core::values::{Date, TimeZone, Timestamp};

/// The context for rendering a part of a page of an account, also without a request: in a live list.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    /// The path in front of all links.
    pub(super) base: &'a str,
    pub(super) now: Timestamp,
    /// The time zone of the account.
    pub(super) zone: &'a TimeZone,
}

impl View<'_> {
    /// Returns the URL of a page, such as `/keys`.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns a time as a distance from now.
    pub(super) fn time(&self, at: Timestamp) -> Markup {
        time(self.now, self.zone, at)
    }
}

/// How a badge or a number is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Neutral,
    /// Something is on its way.
    Accent,
    Good,
    Warn,
    Bad,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Neutral => "neutral",
            Self::Accent => "accent",
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// Returns a text with a capital letter at its beginning.
pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns a text of a stranger without the characters that change the direction of what stands beside it.
pub(super) fn without_bidi_controls(text: &str) -> String {
    let is_control =
        |char| matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|char| !is_control(*char)).collect()
}

/// Returns a name that a stranger chose, such as that of an app. It cannot change the order of the text around it.
pub(super) fn isolated(name: &str) -> Markup {
    html! { bdi { (without_bidi_controls(name)) } }
}

/// Returns a short status.
pub(super) fn badge(tone: Tone, text: &str) -> Markup {
    html! { span class={ "badge " (tone.class()) } { (text) } }
}

/// Returns the heading of a page, with a sentence about it and what can be done there.
pub(super) fn heading(title: &str, about: &str, actions: Markup) -> Markup {
    heading_with(title, html! { (about) }, actions)
}

/// Returns the heading of a page, with what stands below it and what can be done there.
pub(super) fn heading_with(title: &str, about: Markup, actions: Markup) -> Markup {
    html! {
        div.heading {
            div {
                h1 { (title) }
                @if !about.0.is_empty() {
                    p.about { (about) }
                }
            }
            div.actions { (actions) }
        }
    }
}

/// Returns a card with a heading.
pub(super) fn section(title: &str, content: Markup) -> Markup {
    html! {
        section.card {
            h2 { (title) }
            (content)
        }
    }
}

/// Returns what a list shows that has nothing: what would be there, and what to do first.
pub(super) fn empty(symbol: &str, title: &str, text: &str, action: Markup) -> Markup {
    html! {
        div.empty {
            (icon(symbol))
            h2 { (title) }
            p { (text) }
            (action)
        }
    }
}

/// Returns a table. `rows` are its `tr` elements. A narrow screen shows each row as a card.
pub(super) fn table(caption: &str, headings: &[&str], rows: Markup) -> Markup {
    let (rows, numeric) = labelled(&rows.into_string(), headings);
    html! {
        div.table tabindex="0" role="region" aria-label=(caption) {
            table {
                caption.hidden { (caption) }
                thead {
                    tr {
                        @for (heading, is_numeric) in headings.iter().zip(numeric) {
                            th class=[is_numeric.then_some("number")] scope="col" {
                                @if heading.is_empty() { span.hidden { "Actions" } } @else { (heading) }
                            }
                        }
                    }
                }
                tbody { (PreEscaped(rows)) }
            }
        }
    }
}

/// Gives each cell of rows the heading of its column, which a card shows beside its value, and returns the columns of numbers,
/// whose headings are aligned as they are. In texts and attributes that maud has escaped, `<` and `>` cannot be.
fn labelled(rows: &str, headings: &[&str]) -> (String, Vec<bool>) {
    let (mut html, mut column) = (String::with_capacity(rows.len() * 2), 0);
    let mut numeric = vec![false; headings.len()];
    for (at, tag) in rows.split('<').enumerate() {
        if at > 0 {
            html.push('<');
        }
        let name = tag.split([' ', '>']).next().unwrap_or_default();
        match (name, tag.split_once('>')) {
            ("td" | "th", Some((opening, rest))) => {
                let heading = headings.get(column).copied().filter(|heading| !heading.is_empty() && name == "td");
                if opening.contains("class=\"number")
                    && let Some(is_numeric) = numeric.get_mut(column)
                {
                    *is_numeric = true;
                }
                column += 1;
                html.push_str(opening);
                if let Some(heading) = heading {
                    html.push_str(&format!(" data-label=\"{}\"", html! { (heading) }.into_string()));
                }
                html.push('>');
                html.push_str(rest);
            }
            _ => {
                column = if name == "tr" { 0 } else { column };
                html.push_str(tag);
            }
        }
    }
    (html, numeric)
}

/// Returns names with their values.
pub(super) fn facts<N: AsRef<str>>(facts: &[(N, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts {
                div { dt { (name.as_ref()) } dd { (value) } }
            }
        }
    }
}

/// Returns the links of a list: to its newest page, if that is another one, and these.
pub(super) fn page_links(label: &str, newest: Option<String>, others: Markup) -> Markup {
    html! {
        nav.pages aria-label=(label) {
            @match newest {
                Some(url) => { a.button href=(url) { "Newest" } }
                None => { span {} }
            }
            (others)
        }
    }
}

/// Returns a number with its name.
pub(super) fn figure(name: &str, value: &str, tone: Tone, note: &str) -> Markup {
    html! { div class={ "figure " (tone.class()) } { (figure_content(name, value, note)) } }
}

/// Returns a number with its name, linked to the list that it counts.
pub(super) fn linked_figure(url: &str, name: &str, value: &str, tone: Tone, note: &str) -> Markup {
    html! { a class={ "figure " (tone.class()) } href=(url) { (figure_content(name, value, note)) } }
}

fn figure_content(name: &str, value: &str, note: &str) -> Markup {
    html! {
        span.name { (name) }
        strong { (value) }
        span.note { (note) }
    }
}

/// Returns a time as a distance from now, with the exact time in the zone of the account as its title.
pub(super) fn time(now: Timestamp, zone: &TimeZone, at: Timestamp) -> Markup {
    let exact = format!("{} {zone}", zone.date_and_time_at(at));
    html! { time datetime=(at) title=(exact) { (distance(now, at)) } }
}

/// Renders a time that may be missing.
pub(super) fn time_or(now: Timestamp, zone: &TimeZone, at: Option<Timestamp>, missing: &str) -> Markup {
    match at {
        Some(at) => time(now, zone, at),
        None => html! { span.soft { (missing) } },
    }
}

/// Returns when something was used last, for a sentence.
pub(super) fn last_used(now: Timestamp, at: Option<Timestamp>) -> String {
    at.map_or_else(|| "never used".to_owned(), |at| format!("last used {}", distance(now, at)))
}

/// Returns a time exactly, in the zone of the account.
pub(super) fn exact_time(zone: &TimeZone, at: Timestamp) -> Markup {
    html! { time datetime=(at) title=(zone) { (zone.date_and_time_at(at)) } }
}

/// Returns a date as people write it.
pub(super) fn day(date: Date) -> Markup {
    html! { time datetime=(date) { (date.in_words()) } }
}

/// Returns a date with its day of the week.
pub(super) fn long_date(date: Date) -> String {
    format!("{}, {}", date.weekday(), date.in_words())
}

/// Returns a time as people write it, without its seconds, in the zone of the account. The exact time is its title.
pub(super) fn minute(zone: &TimeZone, at: Timestamp) -> Markup {
    let exact = format!("{} {zone}", zone.date_and_time_at(at));
    html! { time datetime=(at) title=(exact) { (minute_in_words(zone, at)) } }
}

/// Returns a time as people write it, without its seconds, in the zone of the account.
pub(super) fn minute_in_words(zone: &TimeZone, at: Timestamp) -> String {
    format!("{}, {}", zone.date_at(at).in_words(), clock(zone, at))
}

/// Returns the time of day, with the offset of a time that clocks show twice.
pub(super) fn clock(zone: &TimeZone, at: Timestamp) -> String {
    zone.minute_at(at).split_once(' ').map(|(_, clock)| clock.to_owned()).unwrap_or_default()
}

/// Returns a time as a distance from now.
pub(super) fn distance(now: Timestamp, at: Timestamp) -> String {
    let (seconds, is_past) = (now.since(at).as_secs().max(at.since(now).as_secs()), at <= now);
    let count = match seconds {
        0..=9 => return if is_past { "just now" } else { "now" }.to_owned(),
        10..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min", seconds / 60),
        3_600..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    };
    if is_past { format!("{count} ago") } else { format!("in {count}") }
}

/// Returns the URL that writes to an email address, with what the message begins with.
pub(super) fn mailto(email: &str, subject: &str, body: &str) -> String {
    let (name, host) = email.rsplit_once('@').unwrap_or((email, ""));
    let parts = [("subject", subject), ("body", body)].into_iter().filter(|(_, text)| !text.is_empty());
    let query: Vec<String> = parts.map(|(name, text)| format!("{name}={}", percent_encoded(text))).collect();
    format!(
        "mailto:{}@{}{}{}",
        percent_encoded(name),
        percent_encoded(host),
        if query.is_empty() { "" } else { "?" },
        query.join("&")
    )
}

/// Returns the URL that calls a phone number.
pub(super) fn tel(phone: &str) -> String {
    format!("tel:{}", digits(phone))
}

/// Returns the URL that writes a text message to a phone number. Phones know `body` with this separator, unlike that of RFC 5724.
pub(super) fn sms(phone: &str, body: &str) -> String {
    format!("sms:{}?&body={}", digits(phone), percent_encoded(body))
}

/// Returns a phone number without what people write between its digits, and without an extension.
fn digits(phone: &str) -> String {
    let number = phone.chars().take_while(|char| !char.is_alphabetic() && *char != '#');
    number.filter(|char| char.is_ascii_digit() || *char == '+').collect()
}

/// Encodes a text for a part of a URL in which a plus is a plus.
fn percent_encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

/// Returns a text that a program reads, such as a key, with a button that copies it.
pub(super) fn copyable(id: &str, label: &str, text: &str) -> Markup {
    html! {
        div.copyable {
            label for=(id) { (label) }
            div {
                input id=(id) type="text" readonly value=(text) autocomplete="off" spellcheck="false";
                button.js type="button" data-copy=(id) { "Copy" }
            }
        }
    }
}

/// Returns a symbol of 16 by 16. It is decoration: a text beside it says the same.
pub(super) fn icon(name: &str) -> Markup {
    let path = match name {
        "logo" => r#"<path d="M8 1.5 14 5v6l-6 3.5L2 11V5z"/><path d="m2.2 5.1 5.8 3.4 5.8-3.4M8 8.5v6"/>"#,
        "overview" => r#"<path d="M2 13.5h12M4 11V7.5M8 11V3M12 11V5.5"/>"#,
        "key" => r#"<circle cx="5.5" cy="10.5" r="3"/><path d="m7.7 8.3 5.8-5.8M11 5l2 2"/>"#,
        "webhook" => {
            r#"<circle cx="8" cy="4" r="2.2"/><circle cx="3.7" cy="11.5" r="2.2"/><circle cx="12.3" cy="11.5" r="2.2"/><path d="M7 6 5 9.5M9 6l2 3.5M6 11.5h4"/>"#
        }
        "delivery" => r#"<path d="M14 2 7.5 8.5M14 2 9.8 14l-2.3-5.5L2 6.2z"/>"#,
        "event" => r#"<path d="M9 1.5 3 9h4.5L7 14.5 13 7H8.5z"/>"#,
        "request" => r#"<path d="M2 5h11m-3-3 3 3-3 3M14 11H3m3-3-3 3 3 3"/>"#,
        "contact" => {
            r#"<circle cx="8" cy="5" r="2.8"/><path d="M2.5 14c.6-3 2.8-4.4 5.5-4.4s4.900 1.400 5.500 4.400"/>"#
        }
        "invoice" => r#"<path d="M3.500 1.500h9v13l-2.200-1.400L8 14.500l-2.300-1.400-2.200 1.400zM6 5h4M6 8h4"/>"#,
        "payment" => r#"<path d="M1.500 4h13v8.500h-13zM1.500 7h13M4 10h3"/>"#,
        "quote" => r#"<path d="M3 2h7l3 3v9H3zM10 2v3h3M6 8.500h4M6 11h4"/>"#,
        "booking" => r#"<path d="M2.500 3.500h11v10h-11zM2.500 6.500h11M5.500 2v2.500M10.500 2v2.500"/>"#,
        "calendar" => {
            r#"<path d="M2.500 3.500h11v10h-11zM2.500 6.500h11M5.500 2v2.500M10.500 2v2.500M5 9h1M7.500 9h1M10 9h1M5 11.300h1M7.500 11.300h1"/>"#
        }
        "job" => r#"<path d="M2 5.500h12v8H2zM5.500 5.500V3h5v2.500M2 9h12"/>"#,
        "app" => {
            r#"<path d="M2.500 2.500h4.500v4.500H2.500zM9 2.500h4.500v4.500H9zM2.500 9h4.500v4.500H2.500zM11.250 8.800v5M8.750 11.300h5"/>"#
        }
        "code" => r#"<path d="M5 4.500 1.500 8 5 11.500M11 4.500 14.500 8 11 11.500M9.200 3 6.800 13"/>"#,
        "guide" => {
            r#"<path d="M2.500 3h4A1.500 1.500 0 0 1 8 4.500V13a1.500 1.500 0 0 0-1.500-1.500h-4zM13.500 3h-4A1.500 1.500 0 0 0 8 4.500V13a1.500 1.500 0 0 1 1.500-1.500h4z"/>"#
        }
        "audit" => r#"<circle cx="8" cy="8" r="6"/><path d="M8 4.500V8l2.500 1.800"/>"#,
        "settings" => {
            r#"<path d="M2 4.500h7M13 4.500h1M2 11.500h1M7 11.500h7"/><circle cx="11" cy="4.500" r="1.900"/><circle cx="5" cy="11.500" r="1.900"/>"#
        }
        "sandbox" => {
            r#"<path d="M6 1.500h4M7 1.500v4.500L2.500 13a1 1 0 0 0 .900 1.500h9.200a1 1 0 0 0 .900-1.500L9 6V1.500M4.600 10h6.800"/>"#
        }
        "account" => {
            r#"<path d="M2.500 14V4L8 1.500 13.500 4v10zM6.500 14v-3h3v3M5.500 6h1M9.500 6h1M5.500 8.500h1M9.500 8.500h1"/>"#
        }
        "system" => r#"<path d="M2 3h12v4H2zM2 9h12v4H2zM4.500 5h.1M4.500 11h.1"/>"#,
        "theme" => {
            r#"<circle cx="8" cy="8" r="5.500"/><path d="M8 2.500v11A5.500 5.500 0 0 0 8 2.500z" fill="currentColor"/>"#
        }
        "leave" => r#"<path d="M6 2H2.500v12H6M10.500 4.500 14 8l-3.500 3.500M14 8H6"/>"#,
        "menu" => r#"<path d="M2 4h12M2 8h12M2 12h12"/>"#,
        "find" => r#"<circle cx="7" cy="7" r="4.500"/><path d="m10.500 10.500 3.500 3.500"/>"#,
        "not" => r#"<path d="m4 4 8 8M12 4l-8 8"/>"#,
        "done" => r#"<path d="m3 8.500 3.200 3.200L13 4.800"/>"#,
        _ => r#"<circle cx="8" cy="8" r="3"/>"#,
    };
    html! {
        svg.icon viewBox="0 0 16 16" aria-hidden="true" focusable="false" { (PreEscaped(path)) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn cells_have_the_heading_of_their_column() {
        let rows = html! {
            tr { th scope="row" { "<td>" } td.end title="a>b" { b { "1" } } td { } td { "x" } }
            tr { th { "b" } td.number { "2" } }
        };
        assert_eq!(
            labelled(&rows.into_string(), &["Name", "\"A\" & b", ""]),
            (
                "<tr><th scope=\"row\">&lt;td&gt;</th><td class=\"end\" title=\"a&gt;b\" data-label=\"&quot;A&quot; &amp; \
                 b\"><b>1</b></td><td></td><td>x</td></tr><tr><th>b</th><td class=\"number\" data-label=\"&quot;A&quot; &amp; \
                 b\">2</td></tr>"
                    .to_owned(),
                vec![false, true, false]
            )
        );
    }

    #[test]
    fn times_are_distances_in_both_directions() {
        let now = Timestamp::parse("2026-03-14T15:09:26Z").unwrap();
        for (seconds, past, future) in [
            (3, "just now", "now"),
            (59, "59 s ago", "in 59 s"),
            (60, "1 min ago", "in 1 min"),
            (7_199, "1 h ago", "in 1 h"),
            (172_799, "47 h ago", "in 47 h"),
            (172_800, "2 days ago", "in 2 days"),
        ] {
            let by = Duration::from_secs(seconds);
            assert_eq!((distance(now, now.minus(by)).as_str(), distance(now.minus(by), now).as_str()), (past, future));
        }
    }

    #[test]
    fn an_address_begins_a_message() {
        assert_eq!(mailto("a+b@example.com", "", ""), "mailto:a%2Bb@example.com");
        let hostile = mailto("x?bcc=y&z@example.com", "Invoice INV-1", "http://svc/share/1?a=b\n");
        let whole =
            "mailto:x%3Fbcc%3Dy%26z@example.com?subject=Invoice%20INV-1&body=http%3A%2F%2Fsvc%2Fshare%2F1%3Fa%3Db%0A";
        assert_eq!(hostile, whole);
    }

    #[test]
    fn a_phone_number_is_called_without_its_extension() {
        assert_eq!([tel("+61 (0)2 5550-0100"), tel("02 5550 0100 ext 12")], ["tel:+610255500100", "tel:0255500100"]);
        assert_eq!(sms("0491 570 158", "a & b"), "sms:0491570158?&body=a%20%26%20b");
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_name_cannot_reorder_what_stands_beside_it() {
        let shown = isolated("\u{202e}<b>\u{2069}שלום\u{200f}").into_string();
        assert_eq!(shown, "<bdi>&lt;b&gt;שלום</bdi>");
    }

    #[test]
    fn texts_are_escaped() {
        let hostile = "<script>\"&'";
        let shown = badge(Tone::Bad, hostile).into_string();
        assert_eq!(shown, r#"<span class="badge bad">&lt;script&gt;&quot;&amp;'</span>"#);
    }
}
