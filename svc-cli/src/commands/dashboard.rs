//! `svc dashboard`.

use serde_json::json;
use svc_core::accounts::dashboard_links::{self, DashboardLinkCreate};
use svc_core::store::Store;

use super::{lookup, tenant};
use crate::cli::DashboardCommand;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::Outcome;

pub(super) async fn run(store: &dyn Store, command: DashboardCommand) -> Result<Outcome, Failure> {
    let DashboardCommand::Link { tenant, role, operator, url } = command;
    let (name, input) = if operator {
        (String::new(), DashboardLinkCreate::for_operator())
    } else {
        let tenant = lookup::tenant(store, &tenant).await?;
        (tenant.id.to_string(), DashboardLinkCreate::to(tenant.id, role.into()))
    };
    let made = store
        .write("dashboard.link", move |tx| Box::pin(dashboard_links::create(tx, input.clone())))
        .await
        .or_not_found("tenant", name, tenant::HINT)?;
    let (url, link) = (made.url(&url), &made.link);
    let value = json!({
        "url": url,
        "tenant_id": link.tenant_id,
        "role": link.role,
        "expires_at": link.expires_at,
    });
    Outcome::new(&value, url)
}
