//! `svc open`: the page of the dashboard that shows something.

use std::pin::Pin;
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;
use svc_core::accounts::sessions::Role;
use svc_core::lookup::KindInAccount;
use svc_core::platform::{ApiKey, DashboardLinkCreate, DeliveryDetails, Event, operations};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::Invoice;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::values::TenantId;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::lookup::{self, Lookup};
use crate::exit::{Exit, Failure};
use crate::ids::{IdArg, InAccount};
use crate::output::Outcome;
use crate::service::Service;
use crate::session::Session;

/// Print the address of the page of the dashboard that shows something, or open it in the browser.
///
/// The address signs the browser in as an owner of the account: it works once, for ten minutes, so give it to nobody. A platform
/// key makes it only with the scope members:write. Without one, and with --no-sign-in, the browser needs a session of its own.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc open\n  svc open 6f1c02d93b5e --browser\n  \
                  svc open 6f1c02d93b5e --url https://api.example.com")]
pub(crate) struct Open {
    /// Id of a record, webhook, event or delivery, or a part of it. The default is the overview of the account.
    id: Option<IdArg>,
    /// Open the page in the browser, which is $BROWSER or the one of the desktop.
    #[arg(long)]
    browser: bool,
    /// Do not sign in: the address is that of the page alone.
    #[arg(long)]
    no_sign_in: bool,
    /// URL at which the browser reaches the server.
    #[arg(long, env = "SVC_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    url: String,
    #[command(flatten)]
    account: InAccount,
}

/// A page of the dashboard: its path below `/dashboard`, and its account.
struct DashboardPage {
    path: String,
    account: TenantId,
}

/// The page of a record, if it is there.
type PageOf<'a> = Pin<Box<dyn Future<Output = Result<Option<DashboardPage>, Failure>> + 'a>>;

pub(crate) async fn run(session: &Session, options: Open) -> Result<Outcome, Failure> {
    let service = &session.service().await?;
    let Open { id, browser, no_sign_in, url, account } = options;
    let DashboardPage { path, account } = match id {
        None => DashboardPage { path: String::new(), account: lookup::account(service, &account).await?.id },
        Some(id) => page_of(service, &id, &account).await?,
    };
    let base = url.trim_end_matches('/');
    let page = format!("{base}/dashboard{path}");
    let link = if no_sign_in { None } else { sign_in_link(service, account).await? };
    let note = (link.is_none() && !no_sign_in).then_some(
        "The platform key does not have the scope members:write, so this does not sign in: the page asks for it, unless the \
         browser is signed in already.",
    );
    // The link leads to the page.
    let to = if path.is_empty() { String::new() } else { format!("&page={path}") };
    let sign_in = link.map(|link| format!("{base}{link}{to}"));
    let shown = sign_in.as_ref().unwrap_or(&page).clone();
    if browser {
        open_in_browser(&shown)?;
    }
    Ok(Outcome::new(&json!({ "url": page, "sign_in_url": sign_in }), shown)?.with_note(note.map(str::to_owned)))
}

/// Returns the path of a link that signs an owner in. `None` if the platform key may not make one.
async fn sign_in_link(service: &Service, account: TenantId) -> Result<Option<String>, Failure> {
    let input = DashboardLinkCreate::new(Role::Owner);
    match service.call(&operations::CREATE_DASHBOARD_LINK, account, input).await {
        Err(error) if error.is_forbidden() => Ok(None),
        link => Ok(Some(link?.path)),
    }
}

/// Returns the page of whatever has an id.
async fn page_of(service: &Service, id: &IdArg, named: &InAccount) -> Result<DashboardPage, Failure> {
    let account = match lookup::account(service, named).await {
        // Of several accounts, a whole id tells which is meant.
        Err(failure) if failure.exit() == Exit::Usage && matches!(id, IdArg::Whole(_)) => None,
        account => Some(account?.id),
    };
    let named = InAccount { account: account.map(|account| IdArg::Whole(account.0)) };
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
        if let Some(page) = page.await? {
            return Ok(page);
        }
    }
    let account = account.map_or_else(|| "No account has a".to_owned(), |account| format!("Account {account} has no"));
    let reason = format!("{account} record, webhook, event, delivery or key {id}; list those of its type.");
    Err(Failure::new(Exit::NotFound, reason))
}

/// Returns the page of a record, if there is one of this type with the id. Keys have one page.
async fn page<R: Lookup>(service: &Service, id: &IdArg, account: &InAccount) -> Result<Option<DashboardPage>, Failure> {
    let found = match lookup::find::<R>(service, id, account).await {
        Err(failure) if failure.exit() == Exit::NotFound => return Ok(None),
        found => found?,
    };
    let path = match R::KIND {
        KindInAccount::Key => "/keys".to_owned(),
        _ => format!("/{}/{}", R::PLURAL, found.id),
    };
    Ok(Some(DashboardPage { path, account: found.tenant_id }))
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
