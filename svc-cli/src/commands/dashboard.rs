//! `svc dashboard`.

use serde_json::json;
use svc_core::accounts::sessions::Role;
use svc_core::platform::{DashboardLinkCreate, OperatorLinkCreate, operations};

use super::account;
use super::lookup;
use crate::cli::DashboardCommand;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::Outcome;
use crate::service::Service;

pub(super) async fn run(service: &Service, command: DashboardCommand) -> Result<Outcome, Failure> {
    let DashboardCommand::Link { account, role, operator, url } = command;
    if operator {
        return for_operator(service, &url).await;
    }
    let id = lookup::account(service, &account).await?.id;
    let input = DashboardLinkCreate { role: role.into(), identity: None };
    let made = service.call(&operations::CREATE_DASHBOARD_LINK, id, input).await;
    let link = made.or_not_found("account", id, account::HINT)?;
    let url = format!("{}{}", url.trim_end_matches('/'), link.path);
    let value = json!({ "url": url, "tenant_id": link.tenant_id, "role": link.role, "expires_at": link.expires_at });
    Outcome::new(&value, url)
}

/// Makes a link for operators.
async fn for_operator(service: &Service, url: &str) -> Result<Outcome, Failure> {
    let link = service.call(&operations::CREATE_OPERATOR_LINK, (), OperatorLinkCreate::default()).await?;
    let url = format!("{}{}", url.trim_end_matches('/'), link.path);
    let value = json!({ "url": url, "tenant_id": null, "role": Role::Owner, "expires_at": link.expires_at });
    Outcome::new(&value, url)
}
