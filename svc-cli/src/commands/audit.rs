//! `svc audit`.

use svc_core::accounts::audit::object_word;
use svc_core::operation::Listing;
use svc_core::platform::operations::LIST_AUDIT_LOG;
use svc_core::platform::{LogFilter, LogParams};
use uuid::Uuid;

use super::lookup;
use crate::cli::AuditCommand;
use crate::exit::Failure;
use crate::output::{Outcome, Table};
use crate::service::{Service, cut};
use crate::times::full;

pub(super) async fn run(service: &Service, command: AuditCommand) -> Result<Outcome, Failure> {
    let AuditCommand::List { account, since, limit } = command;
    let account = lookup::account(service, &account).await?.id;
    let since = lookup::since_in(service, account, since).await?;
    let query = |limit, cursor: Option<Uuid>| {
        let page = LogParams { limit, cursor: cursor.map(Into::into) };
        Listing { page, filter: LogFilter { since } }
    };
    // One entry more than the limit tells whether there are more.
    let (mut entries, _) = service.list(&LIST_AUDIT_LOG, account, limit.saturating_add(1), query).await?;
    let more = cut(&mut entries, limit);
    let table = Table::new(["AT", "ACTION", "OBJECT", "ACTOR"], &entries, |entry| {
        let action = format!("{} {}", entry.action, object_word(&entry.object_kind));
        [full(entry.at), action, entry.object_id.to_string(), crate::output::plain(&entry.actor)]
    });
    let note = more.then(|| "There are more entries; raise --limit to see them.".to_owned());
    Ok(Outcome::list(&entries, &table, "No changes were recorded.")?.with_note(note))
}
