//! The documentation as text: for assistants, for programs, and for people without a browser.

/// A page of the documentation.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its name, which is its path below `/docs/`, without `.md`.
    pub(crate) name: &'static str,
    /// Its subject.
    pub(crate) about: &'static str,
    /// Its text, in Markdown.
    pub(crate) text: &'static str,
}

/// The pages, for developers of an account first.
pub(crate) const PAGES: [Page; 12] = [
    page(
        "contract",
        "What the API promises: operations, errors, limits, lists, idempotency, resources, events.",
        include_str!("../docs/contract.md"),
    ),
    page(
        "webhooks",
        "Receiving webhooks: signatures, retries, filters and other options, replays.",
        include_str!("../docs/webhooks.md"),
    ),
    page("sync", "Keeping a copy of the records in sync.", include_str!("../docs/sync.md")),
    page("oauth", "Connecting an app of somebody else with OAuth 2.0.", include_str!("../docs/oauth.md")),
    page("agents", "Connecting assistants with MCP, and what to switch on.", include_str!("../docs/agents.md")),
    page("dashboard", "The pages for the people of an account.", include_str!("../docs/dashboard.md")),
    page("limits", "What the service does not do, and its bounds.", include_str!("../docs/limits.md")),
    page("platform", "The platform API, for programs of the operator.", include_str!("../docs/platform.md")),
    page(
        "operations",
        "Running the server: settings, backups, upgrades, several nodes.",
        include_str!("../docs/operations.md"),
    ),
    page("streams", "Sending events to NATS, RabbitMQ or Kafka, for the operator.", include_str!("../docs/streams.md")),
    page("embedding", "Using the service as a library of a Rust application.", include_str!("../docs/embedding.md")),
    page("promises", "What is promised, and the test that proves it.", include_str!("../docs/promises.md")),
];

const fn page(name: &'static str, about: &'static str, text: &'static str) -> Page {
    Page { name, about, text }
}
