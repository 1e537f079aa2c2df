//! The documentation as text: for assistants, for programs, and for people without a browser.

/// A page of the documentation.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its name, which is its path below `/docs/`, without `.md`.
    pub(crate) name: &'static str,
    /// What it is about.
    pub(crate) about: &'static str,
    /// Its text, in Markdown.
    pub(crate) text: &'static str,
}

/// A section of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Section {
    /// The name of the page.
    pub(crate) page: &'static str,
    /// Its heading.
    pub(crate) title: &'static str,
    /// Its text, with the heading.
    pub(crate) text: &'static str,
}

/// The pages, for developers of an account first.
pub(crate) const PAGES: [Page; 11] = [
    Page {
        name: "contract",
        about: "What the API promises: operations, errors, limits, lists, idempotency, resources, events.",
        text: include_str!("../docs/contract.md"),
    },
    Page {
        name: "webhooks",
        about: "Receiving webhooks: signatures, retries, filters and other options, replays.",
        text: include_str!("../docs/webhooks.md"),
    },
    Page { name: "sync", about: "Keeping a copy of the records in sync.", text: include_str!("../docs/sync.md") },
    Page {
        name: "oauth",
        about: "Connecting an app of somebody else with OAuth 2.0.",
        text: include_str!("../docs/oauth.md"),
    },
    Page {
        name: "agents",
        about: "Connecting assistants with MCP, and what to switch on.",
        text: include_str!("../docs/agents.md"),
    },
    Page {
        name: "dashboard",
        about: "The pages for the people of an account.",
        text: include_str!("../docs/dashboard.md"),
    },
    Page {
        name: "limits",
        about: "What the service does not do, and its bounds.",
        text: include_str!("../docs/limits.md"),
    },
    Page {
        name: "platform",
        about: "The platform API, for programs of whoever runs the service.",
        text: include_str!("../docs/platform.md"),
    },
    Page {
        name: "operations",
        about: "Running the server: settings, backups, upgrades, several nodes.",
        text: include_str!("../docs/operations.md"),
    },
    Page {
        name: "embedding",
        about: "Using the service as a library of a Rust application.",
        text: include_str!("../docs/embedding.md"),
    },
    Page {
        name: "promises",
        about: "What is promised, and the test that proves it.",
        text: include_str!("../docs/promises.md"),
    },
];

/// How many characters of a section are returned at most.
const MAX_SECTION: usize = 6_000;

/// Returns the page with this name.
pub(crate) fn page(name: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.name == name)
}

/// Returns the index of the pages (<https://llmstxt.org>). `mount` is the path of the API in a host application.
pub(crate) fn index(mount: &str) -> String {
    let mut text = String::from(
        "# svc\n\n\
         > The API of a business platform: contacts, invoices, bookings, quotes, jobs, and webhooks about what happens to \
         them.\n\n",
    );
    text.push_str("## Documentation\n\n");
    for Page { name, about, .. } in &PAGES {
        text.push_str(&format!("- [{name}]({mount}/docs/{name}.md): {about}\n"));
    }
    text.push_str("\n## For machines\n\n");
    text.push_str(&format!("- [OpenAPI]({mount}/api/v1/openapi.json): every operation with its schemas.\n"));
    text
}

/// Returns the sections that have the words of a query, those that have most of them first.
pub(crate) fn search(query: &str, limit: usize) -> Vec<Section> {
    let words: Vec<String> = words_of(query).collect();
    let mut found: Vec<(usize, Section)> = Vec::new();
    for section in PAGES.iter().flat_map(sections_of) {
        let (title, text) = (section.title.to_lowercase(), section.text.to_lowercase());
        // A word in the heading says more than many in the text, and a text with all words more than one with some often.
        let score = words.iter().map(|word| {
            let inside = text.matches(word.as_str()).count();
            usize::from(title.contains(word.as_str())) * 8 + usize::from(inside > 0) * 10 + inside.min(4)
        });
        let score: usize = score.sum();
        if score > 0 {
            found.push((score, section));
        }
    }
    // Of equal ones the first in the order of the pages.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().take(limit).map(|(_, section)| section).collect()
}

/// Returns the words of a text in lower case, without endings that differ between singular and plural.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|character: char| !character.is_alphanumeric() && character != '_' && character != '-');
    let words = words.filter(|word| word.chars().count() > 2).map(str::to_lowercase);
    words
        .filter(|word| !COMMON.contains(&word.as_str()))
        .map(|word| word.strip_suffix('s').map(str::to_owned).unwrap_or(word))
}

/// Words that every section has.
const COMMON: [&str; 12] = ["the", "and", "for", "how", "can", "what", "why", "does", "with", "that", "are", "from"];

/// Returns the sections of a page, each from its heading to the next.
fn sections_of(page: &Page) -> Vec<Section> {
    let mut starts = Vec::new();
    let (mut at, mut is_code) = (0, false);
    for line in page.text.split_inclusive('\n') {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        if line.starts_with('#') && !is_code {
            starts.push((at, line.trim_start_matches('#').trim()));
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([page.text.len()]);
    let section = |((start, title), end): (&(usize, &'static str), usize)| {
        let end = page.text.floor_char_boundary(end.min(start + MAX_SECTION));
        Section { page: page.name, title, text: page.text[*start..end].trim_end() }
    };
    starts.iter().zip(ends).map(section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_section_comes_first() {
        for (query, page, title) in [
            ("verify webhook signature", "webhooks", "Verify"),
            ("how do I retry safely with an idempotency key?", "contract", "Idempotency"),
            ("rate limits", "contract", "Rate limits"),
            ("keep a copy in sync", "sync", "sync"),
        ] {
            let found = search(query, 3);
            assert!(
                found.iter().any(|section| section.page == page && section.title.contains(title)),
                "{query}: {found:?}"
            );
        }
        assert_eq!(search("zzzzzz", 3), []);
        assert_eq!(search("", 3), []);
    }

    #[test]
    fn a_comment_in_code_is_no_heading() {
        let page = Page { name: "a", about: "", text: "# A\n```sh\n# not\n```\n## B\nend\n" };
        let titles: Vec<&str> = sections_of(&page).iter().map(|section| section.title).collect();
        assert_eq!(titles, ["A", "B"]);
    }

    #[test]
    fn the_index_links_to_each_page() {
        let index = index("/business");
        for page in &PAGES {
            assert!(index.contains(&format!("(/business/docs/{}.md)", page.name)), "{index}");
        }
    }
}
