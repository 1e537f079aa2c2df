//! `svc dashboard`.

use serde_json::json;
use svc_core::accounts::dashboard_links::{self, DashboardLinkCreate};
use svc_core::platform::{self, DashboardLink};
use svc_core::store::Store;

use super::lookup::{self, path};
use super::tenant;
use crate::cli::DashboardCommand;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::Outcome;
use crate::service::Service;

pub(super) async fn run(service: &Service, command: DashboardCommand) -> Result<Outcome, Failure> {
    let DashboardCommand::Link { tenant, role, operator, url } = command;
    if operator {
        return for_operator(service.database("svc dashboard link --operator")?, &url).await;
    }
    let id = lookup::tenant(service, &tenant).await?.id;
    let input = platform::DashboardLinkCreate { role: role.into(), identity: None };
    let made = service.post(&path(id, "dashboard-links"), &input).await;
    let link: DashboardLink = made.or_not_found("tenant", id, tenant::HINT)?;
    let url = format!("{}{}", url.trim_end_matches('/'), link.path);
    let value = json!({ "url": url, "tenant_id": link.tenant_id, "role": link.role, "expires_at": link.expires_at });
    Outcome::new(&value, url)
}

/// Makes a link for operators. No platform key can make one: it opens more than any key.
async fn for_operator(store: &dyn Store, url: &str) -> Result<Outcome, Failure> {
    let input = DashboardLinkCreate::for_operator();
    let made = store.write("dashboard.link", move |tx| Box::pin(dashboard_links::create(tx, input.clone()))).await?;
    let (url, link) = (made.url(url), &made.link);
    let value = json!({ "url": url, "tenant_id": link.tenant_id, "role": link.role, "expires_at": link.expires_at });
    Outcome::new(&value, url)
}
