//! The pages of quotes.

use svc_core::platform::operations::Records;
use svc_core::prelude::{Quote, QuoteStatus};
use svc_core::values::RecordKind;

use super::Control::{Amount, Choice, Day, Line};
use super::FormPurpose::{Edited, New};
use super::{CONTACT_HINT, Kind, bulk, contact, field};

pub(crate) const QUOTES: Kind = Kind {
    records: RecordKind::Quote,
    collection: "quotes",
    title: "Quotes",
    one: "quote",
    icon: "quote",
    statuses,
    name: &["quote_number"],
    columns: &[
        ("Contact", "contact_id"),
        ("Status", "status"),
        ("Total", "total"),
        ("Valid until", "valid_until"),
        ("Created", "created_at"),
    ],
    file: "id quote_number contact_id contact status issue_date valid_until currency total created_at \
        updated_at",
    form: &[
        contact(CONTACT_HINT).only(New),
        field("status", "Status", Choice(statuses), "").only(Edited),
        field("total", "Total", Amount, "Such as 149.50."),
        field("currency", "Currency", Line, "A code such as AUD.").only(New),
        field("valid_until", "Valid until", Day, "30 days from today, if it is empty.").only(New),
        field("valid_until", "Valid until", Day, "").only(Edited),
    ],
    create: &Records::<Quote>::CREATE,
    update: &Records::<Quote>::UPDATE,
    bulk: &[bulk("send", "Mark as sent", &Records::<Quote>::UPDATE, r#"{"status":"sent"}"#, &["draft"])],
};

fn statuses() -> Vec<&'static str> {
    QuoteStatus::ALL.iter().map(|status| status.as_str()).collect()
}
