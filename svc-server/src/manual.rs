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
