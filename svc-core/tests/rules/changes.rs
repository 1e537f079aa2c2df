//! What the history of a record and the audit log of the dashboard show: one change for each operation.

use futures_util::FutureExt as _;
use svc_core::accounts::audit::AuditAction;
use svc_core::changes::{Change, ChangeFilter};
use svc_core::prelude::*;

use super::Rules;

impl Rules {
    /// Returns the changes of all pages of this size, newest first.
    fn changes(&self, filter: &ChangeFilter, size: u32) -> Vec<Change> {
        let (mut changes, mut filter) = (Vec::new(), filter.clone());
        loop {
            let page = self.account().audit_log().changes(filter.clone(), size).now_or_never().unwrap().unwrap();
            assert!(page.data.len() <= size as usize && !page.data.is_empty());
            changes.extend(page.data);
            filter.until = page.next;
            if filter.until.is_none() {
                return changes;
            }
        }
    }
}

/// Returns what a change did, and the amount of its payment or refund.
fn words(change: &Change) -> String {
    let payment = change.payment.as_ref().map(|payment| format!(" {}", payment.amount));
    let refund = change.refunded.map(|amount| format!(" -{amount}"));
    let amount = payment.or(refund).unwrap_or_default();
    format!("{} {}{amount}", change.entry.object_kind, change.actions.join("+"))
}

#[test]
fn each_operation_is_one_change_on_pages_of_any_size() {
    let rules = Rules::new();
    rules.contact();
    let operations = async {
        let invoices = rules.account().invoices();
        let invoice = invoices.create(InvoiceCreate::new("100".parse()?)).await?;
        invoices.send(invoice.id).await?;
        invoices.pay_part(invoice.id, "30".parse()?).await?;
        invoices.pay_part(invoice.id, "20".parse()?).await?;
        let other = invoices.create(InvoiceCreate::new("5".parse()?)).await?;
        invoices.pay(invoice.id).await?;
        invoices.refund_part(invoice.id, "10".parse()?).await?;
        invoices.pay(other.id).await?;
        Ok::<_, Box<dyn std::error::Error>>(invoice.id)
    };
    let invoice = operations.now_or_never().unwrap().unwrap();
    let all = [
        "invoice paid+updated 5",
        "invoice refunded+updated -10",
        "invoice paid+updated 50",
        "invoice created",
        "invoice updated 20",
        "invoice updated 30",
        "invoice sent+updated",
        "invoice created",
        "contact created",
        "tenant create",
    ];
    let its_own = [all[1], all[2], all[4], all[5], all[6], all[7]];
    let times = |changes: &[Change]| changes.iter().map(|change| change.entry.at).collect::<Vec<_>>();
    for size in 1..=12 {
        let changes = rules.changes(&ChangeFilter::default(), size);
        assert_eq!(changes.iter().map(words).collect::<Vec<_>>(), all, "pages of {size}");
        assert!(times(&changes).is_sorted_by(|newer, older| newer > older), "{changes:?}");
        let changes = rules.changes(&ChangeFilter::of(invoice.uuid()), size);
        assert_eq!(changes.iter().map(words).collect::<Vec<_>>(), its_own, "pages of {size}");
        let invoices = ChangeFilter { object_kind: Some("invoice".to_owned()), ..ChangeFilter::default() };
        assert_eq!(rules.changes(&invoices, size).len(), 8, "pages of {size}");
    }
}

/// Such an event would be taken for an entry that the log has of its own, and would have no link.
#[test]
fn no_kind_of_event_ends_like_an_action_of_the_audit_log() {
    for kind in EventKind::BUILT_IN {
        let (_, action) = kind.as_str().split_once('.').unwrap();
        assert_eq!(AuditAction::from_text(action), None, "{kind}");
    }
}
