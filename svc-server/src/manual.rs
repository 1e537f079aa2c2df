//! The documentation as text: for assistants, for programs, and for people without a browser.

pub(crate) mod search;

/// A page of the documentation.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its path below `/docs/`, without `.md`.
    pub(crate) name: &'static str,
    /// Its subject.
    pub(crate) about: &'static str,
    /// Its text, in Markdown.
    pub(crate) text: &'static str,
}

/// The pages, for developers of an account first.
pub(crate) const PAGES: &[Page] = {
    macro_rules! pages {
        ($($name:literal: $about:literal,)+) => {
            &[$(Page { name: $name, about: $about, text: include_str!(concat!("../docs/", $name, ".md")) }),+]
        };
    }
    pages! {
        "guides": "The pages by what you want to do.",
        "contract": "The promises of the API: operations, errors, limits, lists, idempotency, resources, events.",
        "webhooks": "Receiving webhooks: signatures, retries, pauses, replays.",
        "webhook-options": "Options of a webhook: headers, filters, rates, order, access tokens, public keys, certificates.",
        "sync": "Keeping a copy of the records in sync.",
        "clients": "Clients for Rust, TypeScript, Python and other languages.",
        "oauth": "Connecting a third-party app with OAuth 2.0.",
        "agents": "Connecting assistants with MCP, and what to switch on.",
        "dashboard": "The pages for the people of an account.",
        "limits": "Known limits and bounds of the service.",
        "platform": "The platform API, for programs of the operator.",
        "operations": "Running the server: every task, and the page about it.",
        "operations/install": "Installing the programs: Debian, systemd, containers, static archives, files.",
        "operations/configure": "Every setting with its default, the secret key, and the API reference.",
        "operations/tls": "Serving https, certificates, and reverse proxies.",
        "operations/static-addresses": "Sending webhooks through a proxy with a static address.",
        "operations/sign-in": "Signing members in with an identity provider such as Keycloak.",
        "operations/backup": "Backing up, restoring, and checking a database.",
        "operations/upgrade": "Installing a new version, and migrations.",
        "operations/move-to-postgresql": "Moving a database from SQLite to PostgreSQL.",
        "operations/several-nodes": "Running several nodes on PostgreSQL, on Kubernetes, and with a standby.",
        "operations/postgresql": "PostgreSQL: URL options, connections, poolers, partitions, other databases.",
        "operations/citus": "Distributing accounts over servers with Citus.",
        "operations/monitor": "Health checks, metrics, the request log, the audit log, OpenTelemetry.",
        "operations/alerts": "Each alert, and what to do about it.",
        "operations/log-lines": "Each line of the server's log, and what to do about it.",
        "operations/deliveries": "A delivery that does not arrive, failed attempts, paused endpoints, replays.",
        "operations/retention": "How long data is kept, and how it is deleted.",
        "operations/account-limits": "Rate limits and the number of webhooks of an account.",
        "operations/sizing": "Processors, memory, disk and open files to plan with.",
        "operations/import": "Importing contacts and invoices from files of other programs.",
        "operations/erase": "Returning or erasing the personal data of a contact.",
        "operations/event-kinds": "Event kinds of your own, with JSON Schema.",
        "operations/background": "Work that runs by itself: overdue invoices, the search index.",
        "operations/troubleshooting": "The server does not start, errors of clients, clocks, files that grow.",
        "streams": "Sending events to NATS, RabbitMQ or Kafka, for the operator.",
        "embedding": "Using the service as a library of a Rust application.",
        "promises": "Each guarantee, and the test that proves it.",
    }
};
