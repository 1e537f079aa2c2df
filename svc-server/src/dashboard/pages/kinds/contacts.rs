//! The pages of contacts.

use svc_core::platform::operations::Records;
use svc_core::prelude::Contact;
use svc_core::values::RecordKind;

use super::Control::{Email, Line, Phone};
use super::FormPurpose::{Edited, New};
use super::{Kind, bulk, field};

pub(crate) const CONTACTS: Kind = Kind {
    records: RecordKind::Contact,
    collection: "contacts",
    title: "Contacts",
    one: "contact",
    icon: "contact",
    statuses: Vec::new,
    name: &["first_name", "last_name"],
    columns: &[("Phone", "phone"), ("Email", "email"), ("Company", "company_name"), ("Suburb or city", "city")],
    file: "id first_name last_name email phone company_name city state postcode created_at updated_at",
    form: &[
        field("first_name", "First name", Line, ""),
        field("last_name", "Last name", Line, ""),
        field("email", "Email", Email, "A new contact needs one.").only(New),
        field("email", "Email", Email, "").only(Edited),
        field("phone", "Phone", Phone, ""),
        field("company_name", "Company", Line, ""),
        field("city", "Suburb or city", Line, ""),
        field("state", "State", Line, ""),
        field("postcode", "Postcode", Line, ""),
    ],
    create: &Records::<Contact>::CREATE,
    update: &Records::<Contact>::UPDATE,
    bulk: &[bulk("delete", "Delete", &Records::<Contact>::DELETE, "", &[])],
};
