//! `svc app` and `svc grant`.

use std::time::Duration;

use clap::{Args, Subcommand};
use svc_core::platform::KeyScopes;
use svc_core::values::{RedirectUri, Text, WebhookUrl};

use super::InAccount;
use crate::ids::IdArg;
use crate::values;

/// An app, by its id, its client id or its name.
#[derive(Args, Clone, Debug)]
pub struct AppArg {
    /// App, by its id, its client id or its name.
    pub app: IdArg,
    /// Whose app it is.
    #[command(flatten)]
    pub owner: Owner,
}

/// Whose app it is.
#[derive(Args, Clone, Debug)]
pub struct Owner {
    /// Account whose people develop the app, by its id or its name. The default is none: an app of the operator.
    #[arg(long, alias = "tenant", value_name = "ID")]
    pub account: Option<IdArg>,
}

/// `svc app …`
#[derive(Clone, Debug, Subcommand)]
pub enum AppCommand {
    /// Create an app.
    ///
    /// The secret is printed once and cannot be shown again: the database stores only a hash of it. A public app runs on the
    /// devices of its users and has none.
    #[command(
        after_help = "Examples:\n  svc app create --name 'Route Planner' --redirect-uri https://example.com/callback\n  \
                      svc app create --name Desk --public --redirect-uri http://127.0.0.1/callback --scopes read,write"
    )]
    Create {
        /// Name that owners of accounts see when they are asked for consent.
        #[arg(long, value_parser = Text::<100>::parse, value_name = "NAME")]
        name: Text<100>,
        /// URI to which the app lets the browser return. Can be repeated, up to ten times.
        #[arg(long, required = true, value_parser = RedirectUri::parse, value_name = "URI")]
        redirect_uri: Vec<RedirectUri>,
        /// Make it a public app, which keeps no secret.
        #[arg(long)]
        public: bool,
        /// What the app may ask for: read, or read,write.
        #[arg(long, value_parser = values::scopes, default_value = "read", value_name = "read[,write]")]
        scopes: KeyScopes,
        /// Website of the app.
        #[arg(long, value_parser = WebhookUrl::parse, value_name = "URL")]
        website: Option<WebhookUrl>,
        /// URL that is told, by a signed webhook, when an account ends the access of the app.
        #[arg(long, value_parser = WebhookUrl::parse, value_name = "URL")]
        disconnect_url: Option<WebhookUrl>,
        /// Whose app it is.
        #[command(flatten)]
        owner: Owner,
    },
    /// List the apps of the operator, or of an account, oldest first.
    #[command(visible_alias = "ls", after_help = "Example:\n  svc app list")]
    List {
        /// Whose app it is.
        #[command(flatten)]
        owner: Owner,
    },
    /// Show an app, without its secret.
    #[command(after_help = "Example:\n  svc app show 'Route Planner'")]
    Show(AppArg),
    /// Change an app. What is not given stays.
    #[command(after_help = "Example:\n  svc app update 'Route Planner' --redirect-uri https://example.com/new")]
    Update {
        /// The app.
        #[command(flatten)]
        app: AppArg,
        /// Name that owners of accounts see.
        #[arg(long, value_parser = Text::<100>::parse, value_name = "NAME")]
        name: Option<Text<100>>,
        /// URI to which the app lets the browser return, in place of all that it has. Can be repeated.
        #[arg(long, value_parser = RedirectUri::parse, value_name = "URI")]
        redirect_uri: Vec<RedirectUri>,
        /// What the app may ask for: read, or read,write. What was granted stays as it is.
        #[arg(long, value_parser = values::scopes, value_name = "read[,write]")]
        scopes: Option<KeyScopes>,
        /// Website of the app.
        #[arg(long, value_parser = WebhookUrl::parse, value_name = "URL")]
        website: Option<WebhookUrl>,
        /// URL that is told when an account ends the access of the app.
        #[arg(long, value_parser = WebhookUrl::parse, value_name = "URL")]
        disconnect_url: Option<WebhookUrl>,
    },
    /// Replace the secret of an app.
    ///
    /// The secret that it had is taken until the end of the overlap. The new one is printed once and cannot be shown again.
    #[command(after_help = "Example:\n  svc app rotate-secret 'Route Planner' --overlap 7d")]
    RotateSecret {
        /// The app.
        #[command(flatten)]
        app: AppArg,
        /// How long the old secret is taken; 0s refuses it immediately.
        #[arg(long, value_parser = values::duration, allow_hyphen_values = true, default_value = "24h", value_name = "DURATION")]
        overlap: Duration,
    },
    /// Disable an app: its tokens are refused from now on, and it can ask for no others.
    #[command(after_help = "Example:\n  svc app disable 'Route Planner'")]
    Disable(AppArg),
    /// Enable an app. Its tokens that have not expired work again.
    #[command(after_help = "Example:\n  svc app enable 'Route Planner'")]
    Enable(AppArg),
    /// Delete an app, and end its access to all accounts.
    #[command(after_help = "Example:\n  svc app delete 'Route Planner'")]
    Delete(AppArg),
}

/// `svc grant …`
#[derive(Clone, Debug, Subcommand)]
pub enum GrantCommand {
    /// List the apps that may work on an account, with who granted it and when they last did.
    #[command(visible_alias = "ls", after_help = "Example:\n  svc grant list")]
    List {
        /// The account.
        #[command(flatten)]
        account: InAccount,
    },
    /// End the access of an app to an account.
    ///
    /// Its tokens are refused from now on, and its webhook subscriptions are deleted.
    #[command(after_help = "Example:\n  svc grant revoke 'Route Planner'")]
    Revoke {
        /// Grant by its id, or the app by its name.
        grant: IdArg,
        /// The account.
        #[command(flatten)]
        account: InAccount,
    },
}
