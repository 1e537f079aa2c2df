//! The search of the documentation.

use std::cmp::Reverse;
use std::sync::LazyLock;

use super::{PAGES, Page};

/// How many bytes of a section are returned at most.
const MAX_SECTION: usize = 6_000;

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

/// How many words of a query are looked for.
const MAX_WORDS: usize = 20;

/// A section, with its texts in lower case.
struct Searched {
    section: Section,
    about: String,
    title: String,
    text: String,
}

static SECTIONS: LazyLock<Vec<Searched>> = LazyLock::new(|| {
    let of_page = |page: &'static Page| {
        let searched = |section: Section| Searched {
            about: page.about.to_lowercase(),
            title: section.title.to_lowercase(),
            text: section.text.to_lowercase(),
            section,
        };
        sections_of(page).into_iter().map(searched)
    };
    PAGES.iter().flat_map(of_page).collect()
});

/// Returns the sections that have the words of a query, those that have most of them first.
pub(crate) fn search(query: &str, limit: usize) -> Vec<Section> {
    let mut words: Vec<String> = words_of(query).take(MAX_WORDS).collect();
    words.sort_unstable();
    words.dedup();
    let mut found: Vec<(usize, Section)> = Vec::new();
    for Searched { section, about, title, text } in &*SECTIONS {
        // A word in the heading says more than many in the text, and a text with all words more than one with some often.
        let score = words.iter().map(|word| {
            let inside = text.matches(word.as_str()).take(4).count();
            let [is_about, is_title] = [about, title].map(|text| usize::from(text.contains(word.as_str())));
            2 * is_about + 8 * is_title + 10 * inside.min(1) + inside
        });
        let score: usize = score.sum();
        if score > 0 {
            found.push((score, *section));
        }
    }
    // Of equal ones the first in the order of the pages.
    found.sort_by_key(|(score, _)| Reverse(*score));
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
}
