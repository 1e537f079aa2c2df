//! Bodies of requests and responses: JSON is indented and coloured here, on the server. Nothing else about it changes: the
//! order of fields, the digits of numbers and the escapes in texts are those of the body.

use maud::{Markup, html};
use serde::de::IgnoredAny;

use super::components::number;

/// The number of bytes of a body that a page shows, so that it stays small.
pub(super) const MAX_SHOWN: usize = 12 * 1024;
/// The size of the HTML of a body in colours, in bytes. A longer one is shown as it is.
const MAX_HTML: usize = 40 * 1024;

/// Returns the beginning of a text, up to a number of bytes, and whether it is all of it.
pub(super) fn beginning(text: &str, bytes: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(bytes);
    (&text[..end], end == text.len())
}

/// Returns a body with a button that copies it, or its beginning. `id` is that of its element.
pub(super) fn body(id: &str, text: &str) -> Markup {
    let (shown, is_whole) = beginning(text, MAX_SHOWN);
    let coloured = if is_whole { coloured(shown) } else { None };
    html! {
        div.code {
            button.js type="button" data-copy=(id) { "Copy" }
            pre id=(id) tabindex="0" { code {
                @match coloured { Some(html) => { (html) } None => { (shown) } }
            } }
        }
        @if !is_whole { p.hint { "The first " (number(shown.len() as u64)) " of " (number(text.len() as u64)) " bytes." } }
    }
}

/// Returns JSON with a line for each field and a colour for each kind of value. `None` if it is no JSON, or if that would
/// make the page large.
fn coloured(text: &str) -> Option<Markup> {
    // It also bounds how deep the JSON is.
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut html = String::new();
    let mut depth = 0;
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if html.len() > MAX_HTML {
            return None;
        }
        let length = match first {
            '"' => string_length(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest.find([',', '}', ']', ' ', '\t', '\r', '\n']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        let after = after.trim_start();
        match first {
            '{' | '[' if after.starts_with(['}', ']']) => html.push(first),
            '{' | '[' => {
                depth += 1;
                html.push(first);
                new_line(&mut html, depth);
            }
            '}' | ']' => {
                if !html.ends_with(['{', '[']) {
                    depth = depth.saturating_sub(1);
                    new_line(&mut html, depth);
                }
                html.push(first);
            }
            ',' => {
                html.push(',');
                new_line(&mut html, depth);
            }
            ':' => html.push_str(": "),
            _ => {
                let class = match first {
                    '"' if after.starts_with(':') => "json-name",
                    '"' => "json-text",
                    't' | 'f' | 'n' => "json-word",
                    _ => "json-number",
                };
                html.push_str(&html! { span class=(class) { (token) } }.into_string());
            }
        }
        rest = after;
    }
    Some(maud::PreEscaped(html))
}

fn new_line(html: &mut String, depth: usize) {
    html.push('\n');
    html.extend(std::iter::repeat_n("  ", depth));
}

/// Returns the length of the JSON text that begins with a quote, with both of its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the HTML without its tags, as a browser shows it.
    fn text_of(html: &str) -> String {
        html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect()
    }

    #[test]
    fn json_has_a_line_for_each_field_and_keeps_its_digits() {
        let html = coloured(r#"{"b":1.50,"a":[true,null,{}],"t":"x","e":[],"n":{"d":-1e9}}"#).unwrap().into_string();
        let want = "{\n  \"b\": 1.50,\n  \"a\": [\n    true,\n    null,\n    {}\n  ],\n  \"t\": \"x\",\n  \"e\": [],\n  \"n\": {\n    \
                    \"d\": -1e9\n  }\n}";
        assert_eq!(text_of(&html).replace("&quot;", "\""), want);
        assert!(
            html.contains("<span class=\"json-name\">&quot;b&quot;</span>: <span class=\"json-number\">1.50</span>")
        );
        assert!(html.contains("<span class=\"json-word\">true</span>"), "{html}");
    }

    #[test]
    fn texts_in_json_are_escaped_and_keep_their_escapes() {
        let html = coloured(r#"{"<b>&\"":"</span><script>\\\" {}, [:\u0000"}"#).unwrap().into_string();
        assert_eq!(html.matches('<').count(), 4, "{html}");
        let text = r#"{
  "&lt;b&gt;&amp;\&quot;": "&lt;/span&gt;&lt;script&gt;\\\&quot; {}, [:\u0000"
}"#;
        assert_eq!(text_of(&html).replace("\"", "&quot;"), text.replace('"', "&quot;"));
    }

    #[test]
    fn what_is_no_json_or_makes_a_large_page_is_shown_as_it_is() {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        let wide = format!("[{}1]", "1,".repeat(6_000));
        for text in ["", "ok", "{\"a\":1", "{} {}", &deep, &wide] {
            assert!(coloured(text).is_none(), "{text:.20}");
            assert!(body("x", text).into_string().len() < MAX_HTML, "{text:.20}");
        }
        let cut = body("x", &format!("\"{}\"", "é".repeat(MAX_SHOWN))).into_string();
        assert!(cut.contains("The first 12,287 of 24,578 bytes."), "{}", &cut[cut.len() - 90..]);
    }
}
