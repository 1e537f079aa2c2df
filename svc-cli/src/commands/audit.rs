//! `svc audit`.

use svc_core::accounts::audit::object_word;
use svc_core::pages::Since;
use svc_core::platform::operations::LIST_AUDIT_LOG;
use svc_core::platform::{Listing, LogFilter, LogParams};

use super::account;
use super::lookup;
use crate::cli::AuditCommand;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::{Outcome, Table};
use crate::service::Service;
use crate::times::full;

pub(super) async fn run(service: &Service, command: AuditCommand) -> Result<Outcome, Failure> {
    let AuditCommand::List { account, since, limit } = command;
    let account = lookup::account(service, &account).await?.id;
    let filter = LogFilter { since: since.map(|since| Since(since.from(service.now()))) };
    // One entry more than the limit tells whether there are more.
    let query = Listing { page: LogParams::default(), filter };
    let listed = service.list(&LIST_AUDIT_LOG, account, query, limit.saturating_add(1)).await;
    let (mut entries, _) = listed.or_not_found("account", account, account::HINT)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = entries.len() > limit;
    entries.truncate(limit);
    let table = Table::new(["AT", "ACTION", "OBJECT", "ACTOR"], &entries, |entry| {
        let action = format!("{} {}", entry.action, object_word(&entry.object_kind));
        [full(entry.at), action, entry.object_id.to_string(), crate::output::plain(&entry.actor)]
    });
    let note = more.then(|| "There are more entries; raise --limit to see them.".to_owned());
    Ok(Outcome::list(&entries, &table, "No changes were recorded.")?.with_note(note))
}
