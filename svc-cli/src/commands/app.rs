//! `svc app`.

use std::time::Duration;

use clap::{Args, Subcommand};
use svc_core::accounts::apps::{App, AppId};
use svc_core::platform::{
    AppCreate, AppListParams, AppUpdate, AppWithSecret, KeyScopes, RedirectUris, SecretRotation, operations,
};
use svc_core::values::{Patch, RedirectUri, Text, WebhookUrl};
use uuid::Uuid;

use super::input::patch;
use super::key::scopes;
use super::lookup;
use crate::exit::{Exit, Failure};
use crate::ids::IdArg;
use crate::output::{Outcome, fields, plain};
use crate::record::{Property, details, optional, state, table, text, time};
use crate::service::Service;
use crate::session::Session;
use crate::times::seconds;
use crate::values;

/// An app, by its id, its client id or its name.
#[derive(Args, Clone, Debug)]
pub(crate) struct AppArg {
    /// App, by its id, its client id or its name.
    app: IdArg,
    #[command(flatten)]
    owner: Owner,
}

/// Whose app it is.
#[derive(Args, Clone, Debug)]
pub(crate) struct Owner {
    /// Account of the developers, by its id or name. Without it, the app is the operator's.
    #[arg(long, alias = "tenant", value_name = "ID")]
    account: Option<IdArg>,
}

/// Manage third-party apps, which owners of accounts can connect (OAuth 2.0).
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc app create --name Desk --redirect-uri https://example.com/callback")]
pub(crate) enum AppCommand {
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
        /// The scopes that the app may ask for: read, or read,write.
        #[arg(long, value_parser = values::scopes, default_value = "read", value_name = "read[,write]")]
        scopes: KeyScopes,
        /// Website of the app.
        #[arg(long, value_parser = WebhookUrl::parse, value_name = "URL")]
        website: Option<WebhookUrl>,
        /// URL that is told, by a signed webhook, when an account ends the access of the app.
        #[arg(long, value_parser = WebhookUrl::parse, value_name = "URL")]
        disconnect_url: Option<WebhookUrl>,
        #[command(flatten)]
        owner: Owner,
    },
    /// List the apps of the operator, or of an account, oldest first.
    #[command(visible_alias = "ls", after_help = "Example:\n  svc app list")]
    List {
        #[command(flatten)]
        owner: Owner,
    },
    /// Show an app, without its secret.
    #[command(after_help = "Example:\n  svc app show 'Route Planner'")]
    Show(AppArg),
    /// Change an app. Options that are left out keep their values.
    #[command(after_help = "Example:\n  svc app update 'Route Planner' --redirect-uri https://example.com/new")]
    Update {
        #[command(flatten)]
        app: AppArg,
        /// Name that owners of accounts see.
        #[arg(long, value_parser = Text::<100>::parse, value_name = "NAME")]
        name: Option<Text<100>>,
        /// URI to which the app lets the browser return, in place of all that it has. Can be repeated.
        #[arg(long, value_parser = RedirectUri::parse, value_name = "URI")]
        redirect_uri: Vec<RedirectUri>,
        /// The scopes that the app may ask for: read, or read,write. Grants stay as they are.
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

pub(crate) async fn run(session: &Session, command: AppCommand) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    match command {
        AppCommand::Create { name, redirect_uri, public, scopes, website, disconnect_url, owner } => {
            let input = AppCreate {
                scopes: Some(scopes),
                public: Some(public),
                website,
                disconnect_url,
                account_id: owner_id(service, &owner).await?,
                ..AppCreate::new(name, redirect_uri)
            };
            let new = service.call(&operations::CREATE_APP, (), input).await?;
            let text = format!("Created the app {}.\n\n{}", plain(new.app.name.as_str()), secrets(&new));
            Outcome::new(&new, text)
        }
        AppCommand::List { owner } => list(service, &owner).await,
        AppCommand::Show(app) => {
            let app = find(service, &app).await?;
            Outcome::new(&app, details(describe(&app)))
        }
        AppCommand::Update { app, name, redirect_uri, scopes, website, disconnect_url } => {
            let redirect_uris = Some(redirect_uri).filter(|uris| !uris.is_empty());
            let change = AppUpdate {
                name: patch(name),
                redirect_uris: patch(redirect_uris.map(RedirectUris)),
                scopes: patch(scopes),
                website: patch(website.map(Some)),
                disconnect_url: patch(disconnect_url.map(Some)),
                disabled: Patch::Keep,
            };
            if change == AppUpdate::default() {
                let reason = "Give at least one option to change, such as --name; see `svc app update --help`.";
                return Err(Failure::new(Exit::Usage, reason));
            }
            let id = find(service, &app).await?.id;
            let changed = service.call(&operations::UPDATE_APP, id, change).await?;
            let text = format!("Changed the app {}.\n{}", plain(changed.app.name.as_str()), secrets(&changed));
            Outcome::new(&changed, text)
        }
        AppCommand::RotateSecret { app, overlap } => {
            let id = find(service, &app).await?.id;
            let rotation = SecretRotation { overlap: Some(seconds("overlap", overlap)?) };
            let new = service.call(&operations::ROTATE_APP_SECRET, id, rotation).await?;
            let text = format!("Replaced the secret of the app {}.\n\n{}", plain(new.app.name.as_str()), secrets(&new));
            Outcome::new(&new, text)
        }
        AppCommand::Disable(app) => set_disabled(service, find(service, &app).await?.id, true).await,
        AppCommand::Enable(app) => set_disabled(service, find(service, &app).await?.id, false).await,
        AppCommand::Delete(app) => {
            let app = find(service, &app).await?;
            session.confirm(&format!(
                "Delete the app {}? Its access to all accounts ends, and this cannot be undone.",
                app.name
            ))?;
            service.call(&operations::DELETE_APP, app.id, ()).await?;
            let text = format!("Deleted the app {}. It has no access to any account.", plain(app.name.as_str()));
            Outcome::new(&app, text)
        }
    }
}

async fn owner_id(service: &Service, owner: &Owner) -> Result<Option<Uuid>, Failure> {
    Ok(match &owner.account {
        Some(id) => Some(lookup::account_by_id(service, id).await?.id.0),
        None => None,
    })
}

async fn read_all(service: &Service, owner: &Owner) -> Result<Vec<App>, Failure> {
    let params = AppListParams { account_id: owner_id(service, owner).await? };
    Ok(service.call(&operations::LIST_APPS, (), params).await?.data)
}

/// Returns the app that is named. There are few of one owner, so all are read.
async fn find(service: &Service, named: &AppArg) -> Result<App, Failure> {
    let unknown = || {
        let hint = "`svc app list` lists the apps of the operator, and with --account those of an account";
        Failure::new(Exit::NotFound, format!("There is no app {}; {hint}.", named.app))
    };
    if let IdArg::Whole(id) = named.app {
        return match service.call(&operations::GET_APP, AppId::from(id), ()).await {
            Err(error) if error.is_not_found() => Err(unknown()),
            app => Ok(app?),
        };
    }
    let text = named.app.to_string();
    let is_meant = |app: &App| {
        named.app.is_of(app.id.uuid()) || app.client_id == text || app.name.as_str().eq_ignore_ascii_case(&text)
    };
    let mut apps = read_all(service, &named.owner).await?;
    apps.retain(is_meant);
    lookup::single_match(apps, unknown, |_| format!("Several apps are called {text}; name one by its client id."))
}

async fn list(service: &Service, owner: &Owner) -> Result<Outcome, Failure> {
    let apps = read_all(service, owner).await?;
    Outcome::list(&apps, &table(&apps, describe), "There are no apps; create one with `svc app create`.")
}

async fn set_disabled(service: &Service, id: AppId, disabled: bool) -> Result<Outcome, Failure> {
    let change = AppUpdate { disabled: Patch::Set(disabled), ..AppUpdate::default() };
    let changed = service.call(&operations::UPDATE_APP, id, change).await?;
    let name = plain(changed.app.name.as_str());
    let text = match disabled {
        true => format!("Disabled the app {name}. Its tokens are refused from now on."),
        false => format!("Enabled the app {name}. Its tokens that have not expired work again."),
    };
    Outcome::new(&changed, text)
}

fn status(app: &App) -> &'static str {
    if app.disabled_at.is_some() { "disabled" } else { "active" }
}

fn kind(app: &App) -> &'static str {
    if app.confidential { "confidential" } else { "public" }
}

fn describe(app: &App) -> Vec<Property> {
    let uris: Vec<&str> = app.redirect_uris.iter().map(RedirectUri::as_str).collect();
    vec![
        text("id", app.id),
        text("client id", &app.client_id).column(1, "CLIENT ID"),
        text("name", &app.name).column(2, "NAME"),
        state("status", status(app)).column(3, "STATUS"),
        text("type", kind(app)).column(4, "TYPE"),
        text("scopes", scopes(&app.scopes)).column(5, "SCOPES"),
        text("redirect uris", uris.join(" ")),
        optional("website", app.website.as_ref()),
        optional("disconnect url", app.disconnect_url.as_ref()),
        optional("account", app.tenant_id),
        time("created at", app.created_at).column(6, "CREATED"),
        text("created by", &app.created_by),
    ]
}

/// Formats what the developer of an app needs, with the secrets that were just made.
fn secrets(made: &AppWithSecret) -> String {
    let mut shown = vec![("id", made.app.id.to_string()), ("client id", made.app.client_id.clone())];
    shown.extend(made.client_secret.clone().map(|secret| ("client secret", secret)));
    shown.extend(made.webhook_secret.clone().map(|secret| ("webhook secret", secret)));
    let is_secret = shown.len() > 2;
    let note = if is_secret { "\nStore the secret now. It will not be shown again.\n" } else { "" };
    format!("{}{note}", fields(shown))
}
