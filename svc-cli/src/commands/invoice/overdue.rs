//! `svc invoice overdue`.

use serde::Serialize;
use svc_core::pages::MAX_LIMIT;
use svc_core::platform::operations::MARK_OVERDUE_INVOICES;
use svc_core::platform::{Account, OverdueCheck};
use svc_core::resources::invoices::Invoice;
use svc_core::values::TenantId;

use crate::commands::lookup;
use crate::exit::Failure;
use crate::ids::IdArg;
use crate::output::{Outcome, Table, money, or_dash, plain};
use crate::service::Service;

/// An invoice that became overdue, with its account.
#[derive(Serialize)]
struct View {
    tenant_id: TenantId,
    #[serde(skip)]
    tenant_name: String,
    #[serde(flatten)]
    invoice: Invoice,
}

/// Marks the overdue invoices of one account or of all accounts, in many short transactions. After an interruption, the
/// next run continues where this one stopped, since it skips invoices that are already overdue.
pub(super) async fn run(service: &Service, account: Option<&IdArg>) -> Result<Outcome, Failure> {
    let mut views: Vec<View> = Vec::new();
    if let Some(id) = account {
        mark_overdue(service, &lookup::account_by_id(service, id).await?, &mut views).await?;
    } else {
        let mut after = None;
        loop {
            let (page, has_more) = service.accounts(after, MAX_LIMIT, false).await?;
            for account in &page {
                mark_overdue(service, account, &mut views).await?;
            }
            after = page.last().map(|last| last.id);
            if !has_more {
                break;
            }
        }
    }
    let table = Table::new(["ID", "NUMBER", "DUE", "PAID", "TOTAL", "ACCOUNT"], &views, |view| {
        let Invoice { id, invoice_number, due_date, amount_paid, total, currency, .. } = &view.invoice;
        [
            id.to_string(),
            plain(invoice_number),
            or_dash(*due_date),
            money(*amount_paid, *currency),
            money(*total, *currency),
            view.tenant_name.clone(),
        ]
    });
    Outcome::list(&views, &table, "No invoice became overdue.")
}

/// Marks the overdue invoices of an account, and adds them to the result.
async fn mark_overdue(service: &Service, account: &Account, views: &mut Vec<View>) -> Result<(), Failure> {
    let (id, tenant_name) = (account.id, plain(&account.name));
    let mut check = OverdueCheck::default();
    loop {
        let marked = service.call(&MARK_OVERDUE_INVOICES, id, check).await?;
        let view = |invoice| View { tenant_id: id, tenant_name: tenant_name.clone(), invoice };
        views.extend(marked.data.into_iter().map(view));
        if marked.next.is_none() {
            return Ok(());
        }
        check.next = marked.next;
    }
}
