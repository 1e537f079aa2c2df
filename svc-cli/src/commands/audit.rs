//! `svc audit`.

use svc_core::accounts::audit::{self, Entry};
use svc_core::accounts::tenants;
use svc_core::store::Store;
use svc_core::values::Timestamp;

use super::{lookup, tenant};
use crate::cli::AuditCommand;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::{Outcome, Table};
use crate::times::full;

pub(super) async fn run(store: &dyn Store, command: AuditCommand) -> Result<Outcome, Failure> {
    let AuditCommand::List { tenant, since, limit } = command;
    let tenant = lookup::tenant(store, &tenant).await?.id;
    let since = since.map_or(Timestamp::from_micros(0), |since| since.from(store.env().now()));
    let listed = store.read("audit.list", move |tx| {
        Box::pin(async move {
            tenants::get(tx, tenant).await?;
            // One entry more than the limit tells whether there are more.
            audit::list(tx, tenant, since, limit.saturating_add(1)).await
        })
    });
    let mut entries: Vec<Entry> = listed.await.or_not_found("tenant", tenant, tenant::HINT)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = entries.len() > limit;
    entries.truncate(limit);
    let table = Table::new(["AT", "ACTION", "OBJECT", "ACTOR"], &entries, |entry| {
        let action = format!("{} {}", entry.action, entry.object_kind);
        [full(entry.at), action, entry.object_id.to_string(), crate::output::plain(&entry.actor)]
    });
    let note = more.then(|| "There are more entries; raise --limit to see them.".to_owned());
    Ok(Outcome::list(&entries, &table, "No changes were recorded.")?.with_note(note))
}
