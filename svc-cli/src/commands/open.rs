//! `svc open`: the page of the dashboard that shows something.

use std::pin::Pin;
use std::process::{Command, Stdio};

use serde_json::json;
use svc_core::lookup::KindInAccount;
use svc_core::platform::{ApiKey, DeliveryDetails, Event};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::lookup::{self, Found};
use crate::cli::{InAccount, Open};
use crate::exit::{Exit, Failure};
use crate::ids::IdArg;
use crate::output::Outcome;
use crate::service::Service;

/// The path of the page of a record, if it is there.
type PageOf<'a> = Pin<Box<dyn Future<Output = Result<Option<String>, Failure>> + 'a>>;

pub(super) async fn run(service: &Service, options: Open) -> Result<Outcome, Failure> {
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
async fn page<R: Found>(service: &Service, id: &IdArg, account: &InAccount) -> Result<Option<String>, Failure> {
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
