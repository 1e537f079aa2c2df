//! `svc init`.

use std::fmt::Display;
use std::io::{self, IsTerminal as _};

use clap::Args;
use serde_json::json;
use svc_core::accounts::keys::{self, KeyCreate, NewKey};
use svc_core::accounts::tenants::{self, Tenant, TenantCreate};
use svc_core::error::{Error, Issue};
use svc_core::store::{Store, Tx};
use svc_core::values::{Currency, Text, TimeZone};

use crate::confirm;
use crate::exit::Failure;
use crate::output::Outcome;
use crate::session::Session;

/// Set up a new database with an account and an API key.
///
/// Creates the database if it does not exist, an account with access to the API, and a key with the scopes read and
/// write. Prints lines for your shell that set SVC_DATABASE_URL, SVC_URL, SVC_TENANT and SVC_KEY, and nothing else on stdout.
/// The key is printed once and cannot be shown again. A database that already has an account is refused. On a terminal, it asks
/// for the time zone and the currency, unless they are given or --yes is.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc init\n  \
                  svc init --name 'Harbour Plumbing' --time-zone Australia/Sydney --currency AUD\n  \
                  eval \"$(svc init --database-url sqlite:///var/lib/svc/svc.db)\"")]
pub(crate) struct Init {
    /// Name of the account.
    #[arg(long, value_parser = Text::<300>::parse, default_value = "My business", value_name = "NAME")]
    name: Text<300>,
    /// IANA time zone of the account, such as Australia/Sydney. The default is UTC.
    #[arg(long, value_parser = TimeZone::parse, value_name = "ZONE")]
    time_zone: Option<TimeZone>,
    /// ISO 4217 code of the currency of quotes and invoices that name none. The default is AUD.
    #[arg(long, value_parser = Currency::parse, value_name = "CODE")]
    currency: Option<Currency>,
    /// URL at which the server will be reached.
    #[arg(long, env = "SVC_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    url: String,
}

pub(crate) async fn run(session: &Session, options: Init) -> Result<Outcome, Failure> {
    let Init { name, time_zone, currency, url } = options;
    let database = session.database("svc init")?;
    let store = database.open(true).await?;
    refuse_second(&*store).await?;
    let account = TenantCreate::named(name.as_str());
    let account = TenantCreate {
        time_zone: answer(
            session,
            "Time zone, such as Australia/Sydney",
            time_zone,
            TimeZone::parse,
            account.time_zone,
        )?,
        currency: answer(session, "Currency, such as AUD", currency, Currency::parse, account.currency)?,
        ..account
    };
    let (account, key) = create(&*store, account).await?;
    let database_url = svc_store::absolute_url(&database.url);
    let view = json!({
        "database_url": database_url,
        "url": url,
        "tenant_id": account.id,
        "tenant_name": account.name,
        "key_id": key.key.id,
        "key": key.text.reveal(),
    });
    let lines = [
        ("SVC_DATABASE_URL", database_url),
        ("SVC_URL", url),
        ("SVC_TENANT", account.id.to_string()),
        ("SVC_KEY", key.text.reveal().to_owned()),
    ];
    // A value can be quoted unless it has a NUL, which no URL that was opened has.
    let line =
        |(variable, value): (_, String)| format!("export {variable}={}", shlex::try_quote(&value).unwrap_or_default());
    let lines = lines.map(line).join("\n");
    let (account, url) = (&account.name, &view["url"]);
    let paste = match session.is_for_people() && io::stdout().is_terminal() {
        true => "Paste the lines above into your shell. ",
        // A shell reads them.
        false => "",
    };
    let note = format!(
        "Created the account {account}, and a key that reads and writes. Store the key now. It will not be shown \
         again. {paste}Start `svc-server`, then:\n  curl -H \"Authorization: Bearer $SVC_KEY\" $SVC_URL/api/v1/ping\n  \
         svc open --browser    # the dashboard, at {}/dashboard",
        url.as_str().unwrap_or_default().trim_end_matches('/')
    );
    Ok(Outcome::new(&view, lines)?.with_note(Some(note)))
}

/// Returns what was given, or else the answer of the person at the terminal, if there is one, and otherwise the default.
fn answer<T: Display>(
    session: &Session,
    question: &str,
    given: Option<T>,
    parse: impl Fn(&str) -> Result<T, Issue>,
    default: T,
) -> Result<T, Failure> {
    match given {
        Some(given) => Ok(given),
        None if session.asks_first => confirm::ask_for(question, default, parse),
        None => Ok(default),
    }
}

/// Refuses a database that has an account.
async fn refuse_second(store: &dyn Store) -> Result<(), Failure> {
    Ok(store.read("init.check", (), async |tx, ()| has_no_account(tx).await).await?)
}

async fn has_no_account(tx: &mut dyn Tx) -> Result<(), Error> {
    let Some(account) = tx.tenants(None, 1, false).await?.pop() else { return Ok(()) };
    Err(Error::NotAllowed(format!(
        "the database already has the account {} ({}); add another one with `svc account create`, or a key with \
         `svc key create`",
        account.id, account.name
    )))
}

/// Creates the account and its key, unless the database has an account.
async fn create(store: &dyn Store, account: TenantCreate) -> Result<(Tenant, NewKey), Failure> {
    let created = store.write("init", account, async |tx, account| {
        // Another program may have created one meanwhile.
        has_no_account(tx).await?;
        let account = tenants::create(tx, account.clone()).await?;
        let key = KeyCreate { name: None, write: true, expires_in: None, signed: false };
        let key = keys::create(tx, account.id, key).await?;
        Ok((account, key))
    });
    Ok(created.await?)
}
