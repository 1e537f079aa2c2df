//! The guides: the pages of the documentation as HTML at `/docs/{name}`, and as Markdown at `/docs/{name}.md`.
//!
//! A page is rendered when the first one is asked for, and links by relative paths, so one rendering serves every mount. A link
//! that leads out of what is served, such as to a file of the repository, becomes its text in both forms.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::LazyLock;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::kernel::response::escaped;
use crate::manual::search::{self, Section};
use crate::manual::{PAGES, Page};

/// The page around a guide. `{root}` is the relative path of `/docs/`.
const PAGE: &str = include_str!("guide.html");
/// The order and the titles of the pages, which the site of mdBook has as well.
const SUMMARY: &str = include_str!("../../docs/SUMMARY.md");
/// The search finds this many sections.
const RESULTS: usize = 20;
/// How many characters of a query count.
const MAX_QUERY: usize = 200;
/// How many characters of a section a result shows.
const EXCERPT: usize = 240;

/// The pictures of the guides that are text. Those of the dashboard are in the repository alone: the server shows the dashboard itself.
static PICTURES: LazyLock<BTreeMap<&str, &[u8]>> = LazyLock::new(|| {
    macro_rules! pictures {
        ($($name:literal),+) => {
            BTreeMap::from([$(($name, include_bytes!(concat!("../../docs/pictures/", $name)).as_slice())),+])
        };
    }
    pictures!(
        "checks.svg",
        "delivery-states.svg",
        "event.svg",
        "nodes.svg",
        "subscription-states.svg",
        "week-postgresql.svg",
        "week-sqlite.svg"
    )
});

/// The programs that the guides link to.
static PROGRAMS: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    macro_rules! programs {
        ($($name:literal),+) => {
            BTreeMap::from([$(($name, include_str!(concat!("../../docs/programs/", $name)))),+])
        };
    }
    programs!(
        "oauth_app.py",
        "oauth_program.mts",
        "sync.py",
        "verify.mjs",
        "verify.py",
        "verify_with_public_key.mjs",
        "verify_with_public_key.py"
    )
});

static GUIDES: LazyLock<HashMap<&str, Guide>> =
    LazyLock::new(|| PAGES.iter().map(|page| (page.name, Guide::new(page))).collect());

/// A page in both forms.
pub(super) struct Guide {
    /// The whole page.
    pub(super) html: String,
    /// Its Markdown.
    pub(super) text: String,
}

/// Returns the guide with this name, which is its path below `/docs/`.
pub(super) fn guide(name: &str) -> Option<&'static Guide> {
    GUIDES.get(name)
}

/// Returns the picture with this name.
pub(super) fn picture(name: &str) -> Option<&'static [u8]> {
    PICTURES.get(name).copied()
}

/// Returns the program with this name.
pub(super) fn program(name: &str) -> Option<&'static str> {
    PROGRAMS.get(name).copied()
}

/// Returns the page with what a search finds.
pub(super) fn results(query: &str) -> String {
    let query: String = query.chars().take(MAX_QUERY).collect();
    let found = if query.trim().is_empty() { Vec::new() } else { search::search(&query, RESULTS) };
    let mut content = String::from("<h1>Search the guides</h1>\n");
    let shown = escaped(query.trim());
    if found.is_empty() && !shown.is_empty() {
        let _ = writeln!(content, "<p>No section has the words “{shown}”. Try fewer or other words.</p>");
    } else if !found.is_empty() {
        let _ = writeln!(
            content,
            "<p class=\"soft\">Sections with the words “{shown}”, those that fit best first:</p>\n<dl>"
        );
        for section in &found {
            content.push_str(&result(section, &query));
        }
        content.push_str("</dl>\n");
    }
    layout("Search", "search", &content, &[], &query)
}

/// Returns the page in place of one that there is not, whose path has this many folders.
pub(super) fn missing(folders: usize) -> String {
    let content = "<h1>There is no such page</h1>\n<p>Choose one of the guides, or search them.</p>\n";
    layout("Not found", &"/".repeat(folders), content, &[], "")
}

/// Returns a section that a search found.
fn result(section: &Section, query: &str) -> String {
    let page = titles().find(|entry| entry.name == section.page).map_or(section.page, |entry| entry.title);
    let title = plain(section.title);
    let anchor = anchor(&title);
    let excerpt = escaped(&excerpt(section.text, query));
    format!(
        "<dt><a href=\"{}#{anchor}\">{} › {}</a></dt>\n<dd>{excerpt}</dd>\n",
        section.page,
        escaped(page),
        escaped(&title)
    )
}

/// Returns the text of a section around the first word of the query that it has.
fn excerpt(section: &str, query: &str) -> String {
    let text = plain(section.split_once('\n').map_or("", |(_, text)| text));
    let lower = text.to_lowercase();
    let first = query.to_lowercase().split_whitespace().filter(|word| word.len() > 2).find_map(|word| lower.find(word));
    let start = text.floor_char_boundary(first.unwrap_or(0).saturating_sub(60).min(text.len()));
    let start = text[start..].find(' ').filter(|_| start > 0).map_or(start, |space| start + space + 1);
    let mut excerpt: String = text[start..].chars().take(EXCERPT).collect();
    if excerpt.len() < text.len() - start {
        excerpt.push('…');
    }
    excerpt
}

/// Returns the words of Markdown.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    for event in Parser::new_ext(markdown, options()) {
        match event {
            Event::Text(part) | Event::Code(part) => text.push_str(&part),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            Event::End(TagEnd::TableCell | TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_)) => text.push(' '),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn options() -> Options {
    Options::ENABLE_TABLES
}

impl Guide {
    fn new(page: &'static Page) -> Self {
        let mut rendering = Rendering { page: page.name, ids: HashMap::new(), sections: Vec::new() };
        let content = rendering.html(page.text);
        let title = titles().find(|entry| entry.name == page.name).map_or(page.name, |entry| entry.title);
        Self { html: layout(title, page.name, &content, &rendering.sections, ""), text: with_live_links(page) }
    }
}

/// The state of rendering a page.
struct Rendering {
    page: &'static str,
    /// How often each anchor was used.
    ids: HashMap<String, u32>,
    /// The anchors and the titles of its sections.
    sections: Vec<(String, String)>,
}

impl Rendering {
    fn html(&mut self, markdown: &str) -> String {
        let mut events = Vec::new();
        let mut parser = Parser::new_ext(markdown, options());
        // Whether each open link or picture stays.
        let mut links = Vec::new();
        let mut is_rust = false;
        while let Some(event) = parser.next() {
            match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    let inside: Vec<Event<'_>> =
                        parser.by_ref().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_)))).collect();
                    self.heading(level, inside, &mut events);
                }
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    let target = target(self.page, &dest_url, Form::Html);
                    links.push(target.is_some());
                    if let Some(target) = target {
                        events.push(Event::Start(Tag::Link { link_type, dest_url: target.into(), title, id }));
                    }
                }
                Event::End(TagEnd::Link) => {
                    if links.pop() == Some(true) {
                        events.push(event);
                    }
                }
                Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                    match target(self.page, &dest_url, Form::Html) {
                        Some(target) => {
                            events.push(Event::Start(Tag::Image { link_type, dest_url: target.into(), title, id }))
                        }
                        None => drop(parser.by_ref().take_while(|event| *event != Event::End(TagEnd::Image)).count()),
                    }
                }
                Event::Start(Tag::Table(_)) => {
                    // Wide tables scroll by themselves. A keyboard reaches them.
                    events.push(block("<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">"));
                    events.push(event);
                }
                Event::End(TagEnd::Table) => events.extend([event, block("</div>\n")]),
                Event::Start(Tag::CodeBlock(ref kind)) => {
                    is_rust = matches!(kind, CodeBlockKind::Fenced(language) if language.starts_with("rust"));
                    events.push(block("<pre tabindex=\"0\"><code>"));
                }
                Event::End(TagEnd::CodeBlock) => events.push(block("</code></pre>\n")),
                // Lines that rustdoc hides are for the compiler.
                Event::Text(text) if is_rust => {
                    let shown = text.split_inclusive('\n').filter(|line| *line != "#\n" && !line.starts_with("# "));
                    events.push(Event::Text(shown.collect::<String>().into()));
                }
                event => events.push(event),
            }
            if matches!(events.last(), Some(Event::Html(end)) if end.starts_with("</code>")) {
                is_rust = false;
            }
        }
        let mut content = String::new();
        html::push_html(&mut content, events.into_iter());
        content
    }

    fn heading<'e>(&mut self, level: HeadingLevel, inside: Vec<Event<'e>>, events: &mut Vec<Event<'e>>) {
        let title: String = inside
            .iter()
            .filter_map(|event| match event {
                Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        let mut id = anchor(&title);
        let used = self.ids.entry(id.clone()).or_default();
        if *used > 0 {
            id = format!("{id}-{used}");
        }
        *used += 1;
        if level == HeadingLevel::H2 {
            self.sections.push((id.clone(), title));
        }
        let level = level as u8;
        events.push(block(&format!("<h{level} id=\"{id}\">")));
        events.extend(inside);
        events.push(block(&format!("</h{level}>\n")));
    }
}

fn block<'e>(html: &str) -> Event<'e> {
    Event::Html(CowStr::from(html.to_owned()))
}

/// Returns the anchor of a heading, as GitHub makes it.
fn anchor(title: &str) -> String {
    let kept = title
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .collect::<String>();
    kept.replace(' ', "-")
}

/// A form of a page.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Html,
    Markdown,
}

/// Returns where a link of a page leads in what is served; `None` if it leads out of that.
fn target(page: &str, link: &str, form: Form) -> Option<String> {
    if link.starts_with('#')
        || link.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphabetic()))
    {
        return Some(link.to_owned());
    }
    let (path, fragment) = link.split_once('#').map_or((link, None), |(path, fragment)| (path, Some(fragment)));
    let mut folders: Vec<&str> = page.split('/').collect();
    folders.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(folders.pop()?),
            "." | "" => {}
            part => folders.push(part),
        }
    }
    let path = folders.join("/");
    let name = match path.strip_suffix(".md") {
        Some(name) => PAGES.iter().any(|page| page.name == name).then_some(name)?,
        None => {
            let is_picture = path.strip_prefix("pictures/").is_some_and(|name| picture(name).is_some());
            let is_program = path.strip_prefix("programs/").is_some_and(|name| program(name).is_some());
            (is_picture || is_program).then_some(path.as_str())?
        }
    };
    let ending = if form == Form::Markdown && path.ends_with(".md") { ".md" } else { "" };
    let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
    Some(format!("{}{name}{ending}{fragment}", root(page)))
}

/// Returns the relative path from a page to `/docs/`.
fn root(page: &str) -> String {
    "../".repeat(page.matches('/').count())
}

/// Returns the Markdown of a page, in which links that lead out of what is served are their texts.
fn with_live_links(page: &Page) -> String {
    let mut text = String::with_capacity(page.text.len());
    let mut at = 0;
    for (event, range) in Parser::new_ext(page.text, options()).into_offset_iter() {
        let (Event::Start(Tag::Link { dest_url, .. }) | Event::Start(Tag::Image { dest_url, .. })) = event else {
            continue;
        };
        if target(page.name, &dest_url, Form::Markdown).is_some() {
            continue;
        }
        let link = &page.text[range.clone()];
        let shown = link.trim_start_matches('!').trim_start_matches('[');
        text.push_str(&page.text[at..range.start]);
        text.push_str(shown.rsplit_once("](").map_or(shown, |(shown, _)| shown));
        at = range.end;
    }
    text.push_str(&page.text[at..]);
    text
}

/// A line of the summary that is a page.
struct Entry {
    depth: usize,
    title: &'static str,
    name: &'static str,
}

/// Returns the pages of the summary that are served.
fn titles() -> impl Iterator<Item = Entry> {
    SUMMARY.lines().filter_map(entry)
}

fn entry(line: &'static str) -> Option<Entry> {
    let depth = (line.len() - line.trim_start().len()) / 4;
    let (title, path) = line.trim_start().trim_start_matches("- ").strip_prefix('[')?.split_once("](")?;
    let name = path.strip_suffix(".md)")?;
    PAGES.iter().any(|page| page.name == name).then_some(Entry { depth, title, name })
}

/// Returns the navigation on the page with this name.
fn navigation(current: &str) -> String {
    let (root, mut html, mut depth) = (root(current), String::new(), 0);
    for line in SUMMARY.lines() {
        if let Some(heading) = line.strip_prefix("# ").filter(|heading| *heading != "Summary") {
            html.push_str(&"</li>\n</ul>\n".repeat(std::mem::take(&mut depth)));
            let _ = writeln!(html, "<h2>{}</h2>", escaped(heading));
        }
        let Some(Entry { depth: own, title, name }) = entry(line) else { continue };
        if own < depth {
            html.push_str("</li>\n");
            html.push_str(&"</ul>\n</li>\n".repeat(depth - own - 1));
        } else {
            html.push_str("<ul>\n");
        }
        depth = own + 1;
        let current = if name == current { " aria-current=\"page\"" } else { "" };
        let _ = write!(html, "<li><a href=\"{root}{name}\"{current}>{}</a>", escaped(title));
    }
    html.push_str(&"</li>\n</ul>\n".repeat(depth));
    html
}

/// Returns a page with this content.
fn layout(title: &str, name: &str, content: &str, sections: &[(String, String)], query: &str) -> String {
    let mut list = String::new();
    if sections.len() > 1 {
        list.push_str("<nav id=\"sections\" aria-label=\"On this page\">\n<h2>On this page</h2>\n<ul>\n");
        for (id, title) in sections {
            let _ = writeln!(list, "<li><a href=\"#{id}\">{}</a></li>", escaped(title));
        }
        list.push_str("</ul>\n</nav>\n");
    }
    // The content is put in last: it may have any text.
    let page =
        PAGE.replace("{root}", &root(name)).replace("{title}", &escaped(title)).replace("{query}", &escaped(query));
    page.replace("{pages}", &navigation(name)).replace("{sections}", &list).replace("{content}", content)
}

#[cfg(test)]
mod tests;
