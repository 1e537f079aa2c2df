//! The columns of the files that other programs export, for `svc import --from`.
//!
//! A field has the names of its columns, in versions of the export and for the phones and addresses of a contact, the
//! preferred one first. A column that is not listed is left out. Names are compared as `--map` compares them. A name in full,
//! where the export has no first and last name, is the last name. `tests/exports` has a file of each program.

use std::fmt;

use svc_core::platform::ImportKind;

/// A field, and the columns that it is read from: the first of them that is not empty. The parts of an address come from one
/// address, so their columns are in the same order.
pub type PresetField = (&'static str, &'static [&'static str]);

/// Which rows of an export are one invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvoiceRows {
    /// Each row is an invoice. If there is a row for each line of it, all rows are alike.
    Whole,
    /// There is a row for each line, and the total is the sum of those that follow each other with the same number.
    Summed,
    /// There is a row for each line, and only the first of those with the same number has a total.
    FirstHasTotal,
}

/// The exports of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name of the program in options, such as `xero`.
    pub name: &'static str,
    /// The name of the program for people.
    pub title: &'static str,
    /// The fields of contacts. Empty if contacts cannot be imported.
    pub contacts: &'static [PresetField],
    /// The fields of invoices. Empty if invoices cannot be imported.
    pub invoices: &'static [PresetField],
    /// Which rows are one invoice.
    pub invoice_rows: InvoiceRows,
    /// The statuses of invoices, as cells have them, with those of this service.
    pub statuses: &'static [(&'static str, &'static str)],
}

impl Preset {
    /// Returns the fields of a type of records.
    pub fn fields(&self, kind: ImportKind) -> &'static [PresetField] {
        match kind {
            ImportKind::Contacts => self.contacts,
            ImportKind::Invoices => self.invoices,
            ImportKind::All => &[],
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The programs, by name.
pub const PRESETS: [Preset; 12] = [
    Preset {
        name: "freshbooks",
        title: "FreshBooks",
        contacts: &[
            ("email", &["Email"]),
            ("first_name", &["First Name"]),
            ("last_name", &["Last Name"]),
            ("phone", &["Phone", "Mobile Phone", "Business Phone"]),
            ("company_name", &["Organization"]),
            ("city", &["City"]),
            ("state", &["Province/State", "State"]),
            ("postcode", &["Postal Code", "ZIP/Postal Code"]),
        ],
        invoices: &[
            ("invoice_number", &["Invoice #", "Invoice Number"]),
            ("status", &["Invoice Status", "Status"]),
            ("issue_date", &["Date Issued", "Issue Date"]),
            ("due_date", &["Date Due", "Due Date"]),
            ("total", &["Line Total", "Total"]),
            ("currency", &["Currency"]),
        ],
        invoice_rows: InvoiceRows::Summed,
        statuses: &[("Auto-Paid", "paid"), ("Outstanding", "sent"), ("Unpaid", "sent"), ("Disputed", "sent")],
    },
    Preset {
        name: "google",
        title: "Google Contacts",
        contacts: &[
            ("email", &["E-mail 1 - Value"]),
            ("first_name", &["First Name", "Given Name"]),
            ("last_name", &["Last Name", "Family Name"]),
            ("phone", &["Phone 1 - Value"]),
            ("company_name", &["Organization Name", "Organization 1 - Name"]),
            ("city", &["Address 1 - City"]),
            ("state", &["Address 1 - Region"]),
            ("postcode", &["Address 1 - Postal Code"]),
        ],
        invoices: &[],
        invoice_rows: InvoiceRows::Whole,
        statuses: &[],
    },
    Preset {
        name: "hubspot",
        title: "HubSpot",
        contacts: &[
            ("email", &["Email"]),
            ("first_name", &["First Name"]),
            ("last_name", &["Last Name"]),
            ("phone", &["Phone Number", "Mobile Phone Number"]),
            (
                "company_name",
                &[
                    "Company Name",
                    "Associated Company",
                    "Associated Company (Primary)",
                    "Associated Company Names (Primary)",
                ],
            ),
            ("city", &["City"]),
            ("state", &["State/Region"]),
            ("postcode", &["Postal Code"]),
        ],
        invoices: &[],
        invoice_rows: InvoiceRows::Whole,
        statuses: &[],
    },
    Preset {
        name: "mailchimp",
        title: "Mailchimp",
        contacts: &[
            ("email", &["Email Address"]),
            ("first_name", &["First Name"]),
            ("last_name", &["Last Name"]),
            ("phone", &["Phone Number", "Phone"]),
            ("company_name", &["Company"]),
        ],
        invoices: &[],
        invoice_rows: InvoiceRows::Whole,
        statuses: &[],
    },
    Preset {
        name: "myob",
        title: "MYOB AccountRight",
        contacts: &[
            ("email", &["- Email", "Addr 1 - Email"]),
            ("first_name", &["First Name"]),
            ("last_name", &["Co./Last Name"]),
            ("phone", &["- Phone # 1", "Addr 1 - Phone # 1", "- Phone #1", "Addr 1 - Phone #1"]),
            ("city", &["- City", "Addr 1 - City"]),
            ("state", &["- State", "Addr 1 - State"]),
            ("postcode", &["- Postcode", "Addr 1 - Postcode"]),
        ],
        invoices: &[
            ("invoice_number", &["Invoice No.", "Invoice #"]),
            ("status", &["Status"]),
            ("issue_date", &["Date", "Issue Date"]),
            ("due_date", &["Due Date"]),
            ("total", &["Amount ($)", "Inc-Tax Amount", "Amount"]),
            ("currency", &["Currency Code"]),
        ],
        invoice_rows: InvoiceRows::Whole,
        statuses: &[("Open", "sent"), ("Closed", "paid")],
    },
    Preset {
        name: "outlook",
        title: "Outlook",
        contacts: &[
            ("email", &["E-mail Address"]),
            ("first_name", &["First Name"]),
            ("last_name", &["Last Name"]),
            ("phone", &["Mobile Phone", "Business Phone", "Primary Phone", "Home Phone", "Other Phone"]),
            ("company_name", &["Company"]),
            ("city", &["Business City", "Home City", "Other City"]),
            ("state", &["Business State", "Home State", "Other State"]),
            ("postcode", &["Business Postal Code", "Home Postal Code", "Other Postal Code"]),
        ],
        invoices: &[],
        invoice_rows: InvoiceRows::Whole,
        statuses: &[],
    },
    Preset {
        name: "quickbooks",
        title: "QuickBooks",
        contacts: &[
            ("email", &["Email", "Main Email"]),
            ("first_name", &["First Name"]),
            ("last_name", &["Last Name", "Name", "Customer", "Customer full name"]),
            ("phone", &["Phone", "Phone Numbers", "Main Phone", "Mobile"]),
            ("company_name", &["Company Name", "Company"]),
            ("city", &["City", "Billing City", "Bill City"]),
            ("state", &["State", "Billing State", "Bill State"]),
            ("postcode", &["Zip", "Billing ZIP", "Bill Zip"]),
        ],
        invoices: &[
            ("invoice_number", &["Num", "No.", "Invoice No"]),
            ("status", &["Status"]),
            ("issue_date", &["Date", "Invoice Date", "Transaction date"]),
            ("due_date", &["Due Date"]),
            ("total", &["Amount", "Total"]),
            ("currency", &["Currency"]),
        ],
        invoice_rows: InvoiceRows::Whole,
        statuses: &[("Open", "sent"), ("Closed", "paid"), ("Deposited", "paid"), ("Voided", "cancelled")],
    },
    Preset {
        name: "shopify",
        title: "Shopify (customers and orders)",
        contacts: &[
            ("email", &["Email"]),
            ("first_name", &["First Name"]),
            ("last_name", &["Last Name"]),
            ("phone", &["Phone", "Default Address Phone"]),
            ("company_name", &["Default Address Company", "Company"]),
            ("city", &["Default Address City", "City"]),
            ("state", &["Default Address Province Code", "Province Code", "Province"]),
            ("postcode", &["Default Address Zip", "Zip"]),
        ],
        invoices: &[
            ("invoice_number", &["Name"]),
            ("status", &["Financial Status"]),
            ("issue_date", &["Created at"]),
            ("total", &["Total"]),
            ("currency", &["Currency"]),
        ],
        invoice_rows: InvoiceRows::FirstHasTotal,
        statuses: &[("pending", "sent"), ("authorized", "sent"), ("refunded", "cancelled"), ("voided", "cancelled")],
    },
    Preset {
        name: "square",
        title: "Square",
        contacts: &[
            ("email", &["Email Address"]),
            ("first_name", &["First Name"]),
            ("last_name", &["Last Name", "Surname"]),
            ("phone", &["Phone Number"]),
            ("company_name", &["Company Name"]),
            ("city", &["City"]),
            ("state", &["State"]),
            ("postcode", &["Postal Code"]),
        ],
        invoices: &[
            ("invoice_number", &["Invoice ID", "Invoice Number"]),
            ("status", &["Status", "Invoice Status"]),
            ("issue_date", &["Invoice Date", "Date"]),
            ("due_date", &["Due Date"]),
            ("total", &["Invoice Amount", "Requested Amount", "Amount"]),
        ],
        invoice_rows: InvoiceRows::Whole,
        statuses: &[
            ("Unpaid", "sent"),
            ("Undelivered", "sent"),
            ("Payment Pending", "sent"),
            ("Scheduled", "draft"),
            ("Canceled", "cancelled"),
            ("Refunded", "cancelled"),
        ],
    },
    Preset {
        name: "stripe",
        title: "Stripe",
        contacts: &[
            ("email", &["Email", "Customer Email"]),
            ("last_name", &["Name", "Customer Name"]),
            ("phone", &["Phone"]),
            ("city", &["Address City", "Card Address City"]),
            ("state", &["Address State", "Card Address State"]),
            ("postcode", &["Address Zip", "Card Address Zip"]),
        ],
        invoices: &[
            ("invoice_number", &["Number", "Invoice Number"]),
            ("status", &["Status"]),
            ("issue_date", &["Date (UTC)", "Created (UTC)"]),
            ("due_date", &["Due Date (UTC)"]),
            ("total", &["Total"]),
            ("currency", &["Currency"]),
            ("amount_paid", &["Amount Paid"]),
        ],
        invoice_rows: InvoiceRows::Whole,
        statuses: &[("open", "sent"), ("uncollectible", "overdue"), ("void", "cancelled")],
    },
    Preset {
        name: "xero",
        title: "Xero",
        contacts: &[
            ("email", &["EmailAddress"]),
            ("first_name", &["FirstName"]),
            ("last_name", &["LastName"]),
            ("phone", &["PhoneNumber", "MobileNumber"]),
            ("company_name", &["*ContactName", "ContactName"]),
            ("city", &["POCity", "SACity"]),
            ("state", &["PORegion", "SARegion"]),
            ("postcode", &["POPostalCode", "SAPostalCode"]),
        ],
        invoices: &[
            ("invoice_number", &["InvoiceNumber", "*InvoiceNumber"]),
            ("status", &["Status"]),
            ("issue_date", &["InvoiceDate", "*InvoiceDate"]),
            ("due_date", &["DueDate", "*DueDate"]),
            ("total", &["Total"]),
            ("currency", &["Currency"]),
            ("amount_paid", &["InvoiceAmountPaid"]),
        ],
        invoice_rows: InvoiceRows::Whole,
        statuses: &[
            ("Submitted", "draft"),
            ("Awaiting Approval", "draft"),
            ("Awaiting Payment", "sent"),
            ("Authorised", "sent"),
            ("Voided", "cancelled"),
            ("Deleted", "cancelled"),
        ],
    },
    Preset {
        name: "zoho",
        title: "Zoho Books and Zoho Invoice",
        contacts: &[
            ("email", &["EmailID", "Email"]),
            ("first_name", &["First Name"]),
            ("last_name", &["Last Name"]),
            ("phone", &["Phone", "MobilePhone", "Billing Phone"]),
            ("company_name", &["Company Name", "Contact Name", "Display Name", "Customer Name"]),
            ("city", &["Billing City"]),
            ("state", &["Billing State"]),
            ("postcode", &["Billing Code"]),
        ],
        invoices: &[
            ("invoice_number", &["Invoice Number"]),
            ("status", &["Invoice Status"]),
            ("issue_date", &["Invoice Date"]),
            ("due_date", &["Due Date"]),
            ("total", &["Total"]),
            ("currency", &["Currency Code"]),
        ],
        invoice_rows: InvoiceRows::Whole,
        statuses: &[("Unpaid", "sent"), ("Closed", "paid"), ("Void", "cancelled")],
    },
];

#[cfg(test)]
mod tests {
    use svc_core::imports::Import;
    use svc_core::input::FieldNames as _;
    use svc_core::resources::contacts::Contact;
    use svc_core::resources::invoices::{Invoice, InvoiceStatus};

    use super::*;

    #[test]
    fn presets_name_fields_once_and_statuses_that_there_are() {
        assert!(PRESETS.is_sorted_by_key(|preset| preset.name));
        for preset in PRESETS {
            for (fields, known) in [
                (preset.contacts, <Contact as Import>::Row::FIELD_NAMES),
                (preset.invoices, <Invoice as Import>::Row::FIELD_NAMES),
            ] {
                for (position, (field, columns)) in fields.iter().enumerate() {
                    assert!(known.contains(field) && !columns.is_empty(), "{preset} {field}");
                    assert!(fields[..position].iter().all(|(other, _)| other != field), "{preset} {field}");
                }
            }
            for (_, status) in preset.statuses {
                assert!(InvoiceStatus::from_text(status).is_some(), "{preset} {status}");
            }
        }
    }
}
