use std::collections::BTreeSet;

use url::Url;

use super::super::DocsFile;
use super::*;

/// Returns what stands in attributes with this name, outside of blocks of code.
fn attributes<'h>(html: &'h str, name: &str) -> Vec<&'h str> {
    let start = format!(" {name}=\"");
    let shown = html.split("<pre").map(|part| part.split_once("</pre>").map_or(part, |(_, after)| after));
    let of_part = |part: &'h str| -> Vec<&'h str> {
        part.split(start.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    };
    shown.flat_map(of_part).collect()
}

/// Returns why a link of a page leads nowhere.
fn fault(page: &str, link: &str) -> Option<String> {
    let base = Url::parse(&format!("http://svc/docs/{page}")).unwrap();
    let url = base.join(link).unwrap();
    if url.host_str() != Some("svc") {
        let is_fine = url.scheme() == "https" || url.host_str() == Some("127.0.0.1");
        return (!is_fine).then(|| format!("{page}: {link}: no https"));
    }
    let file = DocsFile::at(url.path()).filter(|file| !matches!(file, DocsFile::Missing(_)));
    let Some(file) = file else { return Some(format!("{page}: {link}: nothing is served there")) };
    let fragment = url.fragment()?;
    let html = match file {
        DocsFile::Guide(guide) | DocsFile::Text(guide) => &guide.html,
        _ => return Some(format!("{page}: {link}: a fragment of no guide")),
    };
    let is_there = attributes(html, "id").contains(&fragment);
    (!is_there).then(|| format!("{page}: {link}: no such heading"))
}

#[test]
fn every_link_of_every_page_leads_somewhere() {
    let mut faults = Vec::new();
    let mut walked = 0;
    for Page { name, .. } in PAGES {
        let guide = guide(name).unwrap();
        for link in [attributes(&guide.html, "href"), attributes(&guide.html, "src")].concat() {
            if link != "data:," {
                faults.extend(fault(name, link));
                walked += 1;
            }
        }
        for event in Parser::new_ext(&guide.text, options()) {
            if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
                faults.extend(fault(&format!("{name}.md"), &dest_url));
                walked += 1;
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(walked > 1_500, "{walked}");
}

#[test]
fn a_link_out_of_what_is_served_is_its_text_in_both_forms() {
    let guide = guide("operations/tls").unwrap();
    assert!(guide.text.contains("\nops/nginx.conf is a working example"), "{}", guide.text);
    assert!(guide.html.contains("<p>ops/nginx.conf is a working example"), "{}", guide.html);
    let dashboard = self::guide("dashboard").unwrap();
    assert!(!dashboard.html.contains("<img") && !dashboard.text.contains(".png"), "its pictures are not served");
}

#[test]
fn every_program_is_served_and_linked() {
    let texts: String = PAGES.iter().map(|page| guide(page.name).unwrap().text.as_str()).collect();
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/programs")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(program(&name).is_some() && texts.contains(&format!("](programs/{name})")), "{name}");
    }
}

#[test]
fn a_page_has_its_title_its_sections_and_a_mark_in_the_navigation() {
    let html = &guide("operations/tls").unwrap().html;
    assert!(html.contains("<title>TLS and proxies · svc</title>"), "{html}");
    assert!(html.contains("<h2 id=\"behind-a-proxy\">Behind a proxy</h2>"), "{html}");
    assert!(html.contains("<a href=\"#behind-a-proxy\">Behind a proxy</a>"), "{html}");
    assert!(html.contains("<a href=\"../operations/tls\" aria-current=\"page\">TLS and proxies</a>"), "{html}");
    assert_eq!(html.matches("aria-current").count(), 1);
    assert!(guide("operations/several-nodes").unwrap().html.contains("<img src=\"../pictures/nodes.svg\""));
}

#[test]
fn the_summary_has_each_page_once() {
    let listed: Vec<&str> = titles().map(|entry| entry.name).collect();
    let names: BTreeSet<&str> = PAGES.iter().map(|page| page.name).collect();
    assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), names);
    assert_eq!(listed.len(), names.len());
}

#[test]
fn hidden_lines_of_rust_are_not_shown() {
    let mut rendering = Rendering { page: "embedding", ids: HashMap::new(), sections: Vec::new() };
    let html =
        rendering.html("```rust\n# use hidden;\n#\n#[test]\nlet a = 1;\n```\n\n# Title\n\n```sh\n# shown\n```\n");
    assert!(!html.contains("hidden") && html.contains("#[test]\nlet a = 1;") && html.contains("# shown"), "{html}");
}

#[test]
fn headings_with_one_title_have_anchors_of_their_own() {
    let mut rendering = Rendering { page: "embedding", ids: HashMap::new(), sections: Vec::new() };
    let html = rendering.html("## `svc` & more\n\n## `svc` & more\n");
    assert!(html.contains("id=\"svc--more\"") && html.contains("id=\"svc--more-1\""), "{html}");
}

#[test]
fn a_search_shows_sections_with_their_words() {
    let html = results("idle connections <b>");
    assert!(
        html.contains("<a href=\"operations/tls#idle-connections\">TLS and proxies › Idle connections</a>"),
        "{html}"
    );
    assert!(html.contains("value=\"idle connections &lt;b&gt;\"") && !html.contains("<b>"), "{html}");
    assert!(results("zzzzzz").contains("No section has the words “zzzzzz”"));
    assert!(!results("").contains("No section"));
    assert!(results(&"ä".repeat(10_000)).len() < 50_000);
}

#[test]
fn every_result_of_a_search_leads_to_its_section() {
    for query in ["webhook signature", "backup restore", "rate limits", "partition", "rust", "token"] {
        for link in attributes(&results(query), "href") {
            // Its own content is no guide.
            if !["data:,", "#content", "#pages"].contains(&link) {
                assert_eq!(fault("search", link), None);
            }
        }
    }
}
