//! The URL of the server, before the paths that commands print.

use clap::Args;

/// The URL at which people reach the server.
#[derive(Args, Clone, Debug)]
pub(crate) struct PublicUrl {
    /// URL at which people reach the server.
    #[arg(long, env = "SVC_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    url: String,
}

impl PublicUrl {
    /// Returns the URL of a path.
    pub(crate) fn with(&self, path: &str) -> String {
        format!("{}{path}", self.url.trim_end_matches('/'))
    }
}
