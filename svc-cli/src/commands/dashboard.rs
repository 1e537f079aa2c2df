//! `svc dashboard`.

use serde_json::json;
use svc_core::accounts::sessions::Role;
use svc_core::platform::{DashboardLinkCreate, OperatorLinkCreate, operations};

use super::lookup;
use crate::cli::DashboardCommand;
use crate::exit::Failure;
use crate::output::Outcome;
use crate::service::Service;

pub(super) async fn run(service: &Service, command: DashboardCommand) -> Result<Outcome, Failure> {
    let DashboardCommand::Link { account, role, operator, url } = command;
    let (path, account, role, expires_at) = if operator {
        let link = service.call(&operations::CREATE_OPERATOR_LINK, (), OperatorLinkCreate::default()).await?;
        (link.path, None, Role::Owner, link.expires_at)
    } else {
        let id = lookup::account(service, &account).await?.id;
        let input = DashboardLinkCreate { role, identity: None };
        let link = service.call(&operations::CREATE_DASHBOARD_LINK, id, input).await?;
        (link.path, Some(id), link.role, link.expires_at)
    };
    let url = format!("{}{path}", url.trim_end_matches('/'));
    Outcome::new(&json!({ "url": url, "tenant_id": account, "role": role, "expires_at": expires_at }), url)
}
