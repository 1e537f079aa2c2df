//! `svc open`: the page of the dashboard that shows something.

use std::pin::Pin;
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;
use svc_core::lookup::KindInAccount;
use svc_core::platform::{ApiKey, DeliveryDetails, Event};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::lookup::{self, Lookup};
use crate::exit::{Exit, Failure};
use crate::ids::{IdArg, InAccount};
use crate::output::Outcome;
use crate::service::Service;
use crate::session::Session;

/// Print the address of the page of the dashboard that shows something, or open it in the browser.
///
/// The browser needs a session of the account, which `svc dashboard link` begins.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc open\n  svc open 6f1c02d93b5e --browser\n  \
                  svc open 6f1c02d93b5e --url https://api.example.com")]
pub(crate) struct Open {
    /// Id of a record, webhook, event or delivery, or a part of it. The default is the overview of the account.
    id: Option<IdArg>,
    /// Open the page in the browser, which is $BROWSER or the one of the desktop.
    #[arg(long)]
    browser: bool,
    /// URL at which the browser reaches the server.
    #[arg(long, env = "SVC_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    url: String,
    #[command(flatten)]
    account: InAccount,
}

/// The path of the page of a record, if it is there.
type PageOf<'a> = Pin<Box<dyn Future<Output = Result<Option<String>, Failure>> + 'a>>;

pub(crate) async fn run(session: &Session, options: Open) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    let Open { id, browser, url, account } = options;
    let path = match id {
        None => String::new(),
        Some(id) => path_of(service, &id, &account).await?,
    };
    let url = format!("{}/dashboard{path}", url.trim_end_matches('/'));
    if browser {
        open_in_browser(&url)?;
    }
    Outcome::new(&json!({ "url": url }), url)
}

/// Returns the path of the page of whatever has an id, below `/dashboard`.
async fn path_of(service: &Service, id: &IdArg, account: &InAccount) -> Result<String, Failure> {
    let account = lookup::account(service, account).await?.id;
    let named = InAccount { account: Some(IdArg::Whole(account.0)) };
    let pages: [PageOf<'_>; 9] = [
        Box::pin(page::<Contact>(service, id, &named)),
        Box::pin(page::<Invoice>(service, id, &named)),
        Box::pin(page::<Quote>(service, id, &named)),
        Box::pin(page::<Booking>(service, id, &named)),
        Box::pin(page::<Job>(service, id, &named)),
        Box::pin(page::<WebhookSubscription>(service, id, &named)),
        Box::pin(page::<Event>(service, id, &named)),
        Box::pin(page::<DeliveryDetails>(service, id, &named)),
        Box::pin(page::<ApiKey>(service, id, &named)),
    ];
    for page in pages {
        if let Some(path) = page.await? {
            return Ok(path);
        }
    }
    let reason =
        format!("Account {account} has no record, webhook, event, delivery or key {id}; list those of its type.");
    Err(Failure::new(Exit::NotFound, reason))
}

/// Returns the path of the page of a record, if there is one of this type with the id. Keys have one page.
async fn page<R: Lookup>(service: &Service, id: &IdArg, account: &InAccount) -> Result<Option<String>, Failure> {
    match lookup::find::<R>(service, id, account).await {
        Ok(_) if R::KIND == KindInAccount::Key => Ok(Some("/keys".to_owned())),
        Ok(found) => Ok(Some(format!("/{}/{}", R::PLURAL, found.id))),
        Err(failure) if failure.exit() == Exit::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Starts the browser, and does not wait for it.
fn open_in_browser(url: &str) -> Result<(), Failure> {
    let desktop = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let browser = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let browser = browser.unwrap_or_else(|| desktop.into());
    let mut command = Command::new(&browser);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop).map_err(|error| {
        let browser = browser.to_string_lossy();
        Failure::new(
            Exit::Failed,
            format!("Cannot start {browser}: {error}. Set BROWSER to the program, or open {url}."),
        )
    })
}
