//! `svc invoice overdue`.

use serde::Serialize;
use svc_core::accounts::tenants::Tenant;
use svc_core::resources::invoices::{self, Invoice, OverduePosition};
use svc_core::store::Store;
use svc_core::values::TenantId;

use crate::commands::lookup;
use crate::exit::Failure;
use crate::ids::IdArg;
use crate::output::{Outcome, Table, or_dash, plain};

/// The number of tenants that one transaction reads.
const PAGE: u32 = 1_000;

/// An invoice that became overdue, with its tenant.
#[derive(Serialize)]
struct View {
    tenant_id: TenantId,
    #[serde(skip)]
    tenant_name: String,
    #[serde(flatten)]
    invoice: Invoice,
}

/// Marks the overdue invoices of one tenant or of all tenants, in many short transactions. After an interruption, the
/// next run continues where this one stopped, since it skips invoices that are already overdue.
pub(super) async fn run(store: &dyn Store, tenant: Option<&IdArg>) -> Result<Outcome, Failure> {
    let mut views: Vec<View> = Vec::new();
    if let Some(id) = tenant {
        mark(store, &lookup::tenant_by_id(store, id).await?, &mut views).await?;
    } else {
        let mut after = None;
        loop {
            let page = store.read("tenant.list", move |tx| Box::pin(async move { Ok(tx.tenants(after, PAGE).await?) }));
            let page = page.await?;
            for tenant in &page {
                mark(store, tenant, &mut views).await?;
            }
            after = match page.last() {
                Some(last) if page.len() == PAGE as usize => Some(last.id),
                _ => break,
            };
        }
    }
    let table = Table::new(["ID", "NUMBER", "DUE", "PAID", "TOTAL", "CURRENCY", "TENANT"], &views, |view| {
        let Invoice { id, invoice_number, due_date, amount_paid, total, currency, .. } = &view.invoice;
        [
            id.to_string(),
            plain(invoice_number),
            or_dash(*due_date),
            amount_paid.to_string(),
            total.to_string(),
            currency.to_string(),
            view.tenant_name.clone(),
        ]
    });
    Outcome::list(&views, &table, "No invoice became overdue.")
}

/// Marks the overdue invoices of a tenant, and adds them to the result.
async fn mark(store: &dyn Store, tenant: &Tenant, views: &mut Vec<View>) -> Result<(), Failure> {
    let (id, tenant_name) = (tenant.id, plain(&tenant.name));
    let mut position = Some(OverduePosition::default());
    while let Some(from) = position {
        let step = store.write("invoice.overdue", move |tx| Box::pin(invoices::overdue(tx, id, from)));
        let (changed, next) = step.await?;
        let view = |invoice| View { tenant_id: id, tenant_name: tenant_name.clone(), invoice };
        views.extend(changed.into_iter().map(view));
        position = next;
    }
    Ok(())
}
