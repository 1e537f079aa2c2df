//! The pages of invoices.

use svc_core::platform::operations::{CREATE_INVOICE, SEND_INVOICE, UPDATE_INVOICE, VOID_INVOICE};
use svc_core::prelude::InvoiceStatus;
use svc_core::values::RecordKind;

use super::Control::{Amount, Day, Line};
use super::FormPurpose::{Edited, New};
use super::{Kind, OPTIONAL_CONTACT_HINT, bulk, contact, field};

pub(crate) const INVOICES: Kind = Kind {
    records: RecordKind::Invoice,
    collection: "invoices",
    title: "Invoices",
    one: "invoice",
    icon: "invoice",
    statuses,
    name: &["invoice_number"],
    columns: &[
        ("Contact", "contact_id"),
        ("Status", "status"),
        ("Total", "total"),
        ("Outstanding", "outstanding"),
        ("Issued", "issue_date"),
        ("Due", "due_date"),
    ],
    file: "id invoice_number contact_id contact status issue_date due_date currency total amount_paid \
        outstanding paid_at created_at updated_at",
    form: &[
        contact(OPTIONAL_CONTACT_HINT),
        field("total", "Total", Amount, "Such as 149.50."),
        field("currency", "Currency", Line, "A code such as AUD."),
        field("issue_date", "Issued", Day, "Today, if it is empty.").only(New),
        field("issue_date", "Issued", Day, "").only(Edited),
        field(
            "due_date",
            "Due",
            Day,
            "The last day before it is overdue. If it is empty, it follows from the days in Settings.",
        )
        .only(New),
        field("due_date", "Due", Day, "The last day before it is overdue. It can be empty.").only(Edited),
    ],
    create: &CREATE_INVOICE,
    update: &UPDATE_INVOICE,
    bulk: &[bulk("send", "Mark as sent", &SEND_INVOICE, "", &[]), bulk("void", "Void", &VOID_INVOICE, "", &[])],
};

fn statuses() -> Vec<&'static str> {
    InvoiceStatus::ALL.iter().map(|status| status.as_str()).collect()
}
