//! `svc app`.

use svc_core::accounts::apps::{App, AppId};
use svc_core::platform::{AppCreate, AppListParams, AppUpdate, AppWithSecret, SecretRotation, operations};
use svc_core::values::{Patch, RedirectUri};
use uuid::Uuid;

use super::key::scopes;
use super::lookup;
use crate::cli::{AppArg, AppCommand, Owner};
use crate::exit::{Exit, Failure};
use crate::ids::IdArg;
use crate::output::{Outcome, Table, fields, or_dash, plain, state};
use crate::service::Service;
use crate::times::{full, moment, seconds};

pub(super) async fn run(service: &Service, command: AppCommand) -> Result<Outcome, Failure> {
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
            Outcome::new(&app, details(&app))
        }
        AppCommand::Update { app, name, redirect_uri, scopes, website, disconnect_url } => {
            let redirect_uris = Some(redirect_uri).filter(|uris| !uris.is_empty());
            let change = AppUpdate {
                name: set(name),
                redirect_uris: set(redirect_uris.map(svc_core::platform::RedirectUris)),
                scopes: set(scopes),
                website: set(website.map(Some)),
                disconnect_url: set(disconnect_url.map(Some)),
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
            service.call(&operations::DELETE_APP, app.id, ()).await?;
            let text = format!("Deleted the app {}. It has no access to any account.", plain(app.name.as_str()));
            Outcome::new(&app, text)
        }
    }
}

fn set<T>(given: Option<T>) -> Patch<T> {
    given.map_or(Patch::Keep, Patch::Set)
}

async fn owner_id(service: &Service, owner: &Owner) -> Result<Option<Uuid>, Failure> {
    Ok(match &owner.account {
        Some(id) => Some(lookup::account_by_id(service, id).await?.id.0),
        None => None,
    })
}

async fn all(service: &Service, owner: &Owner) -> Result<Vec<App>, Failure> {
    let params = AppListParams { account_id: owner_id(service, owner).await? };
    Ok(service.call(&operations::LIST_APPS, (), params).await?.data)
}

/// Returns the app that is named. There are few of one owner, so all are read.
pub(super) async fn find(service: &Service, named: &AppArg) -> Result<App, Failure> {
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
    let is_named = |app: &App| app.client_id == text || app.name.as_str().eq_ignore_ascii_case(&text);
    let is_meant = |app: &App| match &named.app {
        IdArg::Part(part) => part.begins(app.id.uuid()) || part.ends(app.id.uuid()) || is_named(app),
        _ => is_named(app),
    };
    let mut apps = all(service, &named.owner).await?;
    apps.retain(is_meant);
    match (apps.pop(), apps.len()) {
        (Some(app), 0) => Ok(app),
        (None, _) => Err(unknown()),
        _ => {
            let reason = format!("Several apps are called {text}; name one by its client id.");
            Err(Failure::new(Exit::Refused, reason))
        }
    }
}

async fn list(service: &Service, owner: &Owner) -> Result<Outcome, Failure> {
    let apps = all(service, owner).await?;
    let table = Table::new(["CLIENT ID", "NAME", "STATUS", "TYPE", "SCOPES", "CREATED"], &apps, |app| {
        [
            app.client_id.clone(),
            app.name.to_string(),
            state(status(app)),
            kind(app).to_owned(),
            scopes(&app.scopes),
            full(app.created_at),
        ]
    });
    Outcome::list(&apps, &table, "There are no apps; create one with `svc app create`.")
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

fn details(app: &App) -> String {
    let uris: Vec<&str> = app.redirect_uris.iter().map(RedirectUri::as_str).collect();
    fields([
        ("id", app.id.to_string()),
        ("client id", app.client_id.clone()),
        ("name", plain(app.name.as_str())),
        ("status", status(app).to_owned()),
        ("type", kind(app).to_owned()),
        ("scopes", scopes(&app.scopes)),
        ("redirect uris", uris.join(" ")),
        ("website", or_dash(app.website.as_ref())),
        ("disconnect url", or_dash(app.disconnect_url.as_ref())),
        ("account", or_dash(app.tenant_id)),
        ("created at", moment(app.created_at)),
        ("created by", plain(&app.created_by)),
    ])
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
