//! Searches find what was indexed and what was written a moment ago, within one tenant.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use svc_core::find::{self, MAX_HITS, STEP, SearchResults};
use svc_core::pages::{Limit, ListParams};
use svc_core::resources::BusinessRecord;
use svc_core::resources::Filter as _;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::{Contact, ContactFilter};
use svc_core::resources::crud;
use svc_core::resources::invoices::{self, Invoice, InvoiceCreate, InvoiceFilter, InvoiceStatus};
use svc_core::resources::jobs::Job;
use svc_core::values::{Decimal, RecordKind, TenantId};
use uuid::Uuid;

use crate::Harness;

const NOTHING: [Uuid; 0] = [];

impl Harness {
    /// Adds a contact, whose email address is that of no other.
    async fn person(&self, tenant: TenantId, first_name: &str, last_name: &str) -> Uuid {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let email = format!("{}@x.example", NUMBER.fetch_add(1, Ordering::Relaxed));
        let body = json!({ "email": email, "first_name": first_name, "last_name": last_name });
        self.create::<Contact>(tenant, body).await.unwrap().id.uuid()
    }

    async fn new_invoice(&self, tenant: TenantId, total: u32) -> Invoice {
        let create = self.write((tenant, total), async |tx, &(tenant, total)| {
            invoices::create(tx, tenant, InvoiceCreate::new(Decimal::from(total))).await
        });
        create.await.unwrap()
    }

    async fn found(&self, tenant: TenantId, text: &str) -> SearchResults {
        let input = find::parse(text).unwrap();
        self.read((tenant, input), async |tx, (tenant, input)| find::find(tx, *tenant, input).await).await.unwrap()
    }

    /// Returns the ids of what is found, which is the same before and after it was indexed.
    async fn find(&self, tenant: TenantId, text: &str) -> Vec<Uuid> {
        let before = self.found(tenant, text).await;
        while !self.index(tenant).await {}
        let after = self.found(tenant, text).await;
        assert_eq!((&before.data, before.is_complete, after.is_complete), (&after.data, true, true), "{text}");
        after.data.iter().map(|hit| hit.id).collect()
    }

    /// Returns the records that a search of their list finds.
    async fn searched<R: BusinessRecord>(&self, tenant: TenantId, text: &str, limit: u32, filter: R::Filter) -> Vec<R> {
        let params = ListParams { limit: Limit::new(limit), ..ListParams::default() };
        let input = (tenant, find::parse(text).unwrap().text, params, filter);
        let list = self.read(input, async |tx, (tenant, text, params, filter)| {
            find::list::<R>(tx, *tenant, text, params, filter).await
        });
        let page = list.await.unwrap();
        assert_eq!(page.next_cursor, None);
        page.data
    }

    async fn index(&self, tenant: TenantId) -> bool {
        self.write(tenant, async |tx, &tenant| find::index(tx, tenant).await).await.unwrap()
    }

    async fn to_index(&self) -> Vec<TenantId> {
        self.read((), async |tx, ()| Ok(tx.tenants_to_index(None, 1_000).await?)).await.unwrap()
    }
}

pub(super) async fn a_record_is_found_by_a_part_of_each_field(h: Harness) {
    let tenant = h.tenant().await;
    let contact = json!({
        "first_name": "Mia",
        "last_name": "Lindqvist",
        "email": "Mia.Lindqvist@kiln.example",
        "phone": "+61 (3) 5550-0104",
        "company_name": "Lindqvist Ceramics",
        "city": "Östersund",
    });
    let id = h.create::<Contact>(tenant, contact).await.unwrap().id.uuid();
    h.person(tenant, "Noah", "Harris").await;
    let (whole, beginning) = (id.to_string(), id.to_string()[..35].to_owned());
    let fields =
        ["mia lind", "lindqvist mia", "LINDQ", "qvist@kiln", "(3) 5550", "3555001", "ceramics", "öster", "ÖSTERSUND"];
    for text in fields.into_iter().chain(["mia.lindqvist@KILN.example", &whole, &beginning]) {
        assert_eq!(h.find(tenant, text).await, [id], "{text}");
    }
    for text in ["mi", "000000", "kiln example", "mia.lindqvist@kiln.examples"] {
        assert_eq!(h.find(tenant, text).await, NOTHING, "{text}");
    }

    let invoice = h.new_invoice(tenant, 5).await;
    let job = json!({ "title": "Hot water", "site_suburb": "Geelong West" });
    let job = h.create::<Job>(tenant, job).await.unwrap();
    let booking = json!({ "contact_id": id, "service_name": "Gutter clean", "start_time": "2026-03-14T15:00:00Z" });
    let booking = h.create::<Booking>(tenant, booking).await.unwrap();
    for (text, kind, id) in [
        (&invoice.invoice_number[1..], RecordKind::Invoice, invoice.id.uuid()),
        (&job.job_number.to_lowercase(), RecordKind::Job, job.id.uuid()),
        ("geelong w", RecordKind::Job, job.id.uuid()),
        ("hot water", RecordKind::Job, job.id.uuid()),
        ("GUTTER", RecordKind::Booking, booking.id.uuid()),
    ] {
        let found = h.found(tenant, text).await.data;
        assert!(found.iter().any(|hit| (hit.kind, hit.id) == (kind, id)), "{text}: {found:?}");
    }
}

pub(super) async fn a_record_is_found_by_its_whole_title_among_many(h: Harness) {
    let tenant = h.tenant().await;
    let (ada, bo) = (h.person(tenant, "Ada", "Byron").await, h.person(tenant, "Bo", "").await);
    for number in 0..50 {
        h.person(tenant, "Ada", &format!("Byron {number}")).await;
        h.person(tenant, "Bob", &number.to_string()).await;
    }
    let found = h.find(tenant, "ADA byron").await;
    assert_eq!((found.len(), found[0]), (MAX_HITS, ada));
    assert_eq!(h.find(tenant, "bo").await, [bo], "shorter than a part of a name");
    let titled = h.searched::<Contact>(tenant, "ada byron", 1, ContactFilter::none()).await;
    assert_eq!(titled.iter().map(|contact| contact.id.uuid()).collect::<Vec<_>>(), [ada]);
}

pub(super) async fn every_character_of_a_search_stands_for_itself(h: Harness) {
    let tenant = h.tenant().await;
    let plain = h.person(tenant, "100", "percent").await;
    let names = [
        "a%b_c",
        "quo\"te",
        "it's",
        "back\\slash",
        "mia OR noah",
        "NEAR(x)",
        "text:y*",
        "-minus",
        "(bracket)",
        "日本語",
    ];
    for name in names {
        let id = h.person(tenant, name, "Other").await;
        assert_eq!(h.find(tenant, name).await, [id], "{name}");
    }
    for text in ["1%0", "1_0", "mia noah", "100*", "\"\"\"", "%%%", "___", "***", "'''", "\\\\\\"] {
        assert_eq!(h.find(tenant, text).await, NOTHING, "{text}");
    }
    assert_eq!(h.find(tenant, "100 percent").await, [plain]);
}

pub(super) async fn a_search_is_within_one_tenant(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let own = h.person(tenant, "Shared", "Name").await;
    let theirs = h.person(other, "Shared", "Name").await;
    assert_eq!(h.find(tenant, "shared").await, [own]);
    assert_eq!(h.find(other, "shared").await, [theirs]);
    assert_eq!(h.find(tenant, &theirs.to_string()).await, NOTHING);
}

pub(super) async fn a_record_that_changed_is_found_by_its_new_text(h: Harness) {
    let tenant = h.tenant().await;
    let id = h.person(tenant, "Before", "Marriage").await;
    assert_eq!(h.find(tenant, "before").await, [id]);
    h.update::<Contact>(tenant, id.into(), json!({ "first_name": "After" })).await.unwrap();
    assert_eq!(h.find(tenant, "before").await, NOTHING);
    assert_eq!(h.find(tenant, "after marr").await, [id]);
    let delete = h.write((tenant, id), async |tx, &(tenant, id)| crud::delete::<Contact>(tx, tenant, id.into()).await);
    delete.await.unwrap();
    assert_eq!(h.find(tenant, "after marr").await, NOTHING);
}

pub(super) async fn exact_matches_come_first(h: Harness) {
    let tenant = h.tenant().await;
    let mut numbers = Vec::new();
    for total in 1..=25 {
        numbers.push(h.new_invoice(tenant, total).await.invoice_number);
    }
    while !h.index(tenant).await {}
    assert_eq!(h.found(tenant, &numbers[1]).await.data[0].title, numbers[1]);
    for name in ["Whole", "Whole and more", "The whole"] {
        h.person(tenant, name, "Foods").await;
    }
    while !h.index(tenant).await {}
    assert_eq!(h.found(tenant, "whole foods").await.data[0].title, "Whole Foods");
    // Those that entered the index last come first, and there are at most 20.
    let found = h.found(tenant, &numbers[0][..4]).await;
    let titles: Vec<&str> = found.data.iter().map(|hit| hit.title.as_str()).collect();
    let newest: Vec<&str> = numbers.iter().rev().take(20).map(String::as_str).collect();
    assert_eq!(titles, newest);
}

pub(super) async fn a_list_of_one_kind_is_searched(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    h.new_invoice(other, 1).await;
    let mut invoices = Vec::new();
    for total in 1..=25 {
        invoices.push(h.new_invoice(tenant, total).await);
    }
    let first = invoices[0].invoice_number.clone();
    let part = first[..4].to_owned();
    // A list has none of the other kinds that have the text, and does not miss its own behind them.
    for _ in 0..50 {
        h.person(tenant, &part, "Other").await;
    }
    for is_indexed in [false, true] {
        let found = h.searched::<Invoice>(tenant, &part, 200, InvoiceFilter::none()).await;
        let newest: Vec<Invoice> = invoices.iter().rev().cloned().collect();
        assert_eq!(found, newest, "indexed: {is_indexed}");
        assert_eq!(h.searched::<Invoice>(tenant, &part, 2, InvoiceFilter::none()).await, newest[..2]);
        assert_eq!(h.searched::<Invoice>(tenant, &first, 2, InvoiceFilter::none()).await[0], invoices[0]);
        let id = invoices[3].id.to_string();
        assert_eq!(h.searched::<Invoice>(tenant, &id, 2, InvoiceFilter::none()).await, invoices[3..4]);
        while !h.index(tenant).await {}
    }
    let send = h.write((tenant, invoices[2].id), async |tx, &(tenant, id)| invoices::send(tx, tenant, id).await);
    let sent = send.await.unwrap();
    let filter = InvoiceFilter { status: Some(InvoiceStatus::Sent), ..InvoiceFilter::none() };
    assert_eq!(h.searched::<Invoice>(tenant, &part, 50, filter).await, [sent]);
    assert_eq!(h.searched::<Invoice>(tenant, "nothing", 50, InvoiceFilter::none()).await, []);
}

pub(super) async fn an_index_is_brought_up_to_date_in_steps(h: Harness) {
    let (tenant, idle) = (h.tenant().await, h.tenant().await);
    assert!(h.index(idle).await);
    for n in 0..=STEP {
        h.person(tenant, "Numbered", &format!("Contact {n:04}")).await;
    }
    let newest = format!("contact {STEP:04}");
    assert!(h.to_index().await.contains(&tenant));
    // Only the oldest changes are read beside the index.
    let oldest = h.found(tenant, "contact 0000").await;
    assert_eq!((oldest.data.len(), oldest.is_complete), (1, false));
    assert_eq!(h.found(tenant, &newest).await.data.len(), 0);
    assert!(!h.index(tenant).await);
    assert_eq!(h.find(tenant, &newest).await.len(), 1);
    let to_index = h.to_index().await;
    assert!(!to_index.contains(&tenant) && !to_index.contains(&idle));
    assert_eq!(h.found(tenant, "numbered").await.data.len(), 20);
}

pub(super) async fn what_is_typed_finds_what_was_meant(h: Harness) {
    let tenant = h.tenant().await;
    for (written, typed) in [
        ("Zoe\u{308}", "zoë"),
        ("Chloé", "chloe\u{301}"),
        ("Renée", "RENEE"),
        ("\u{202a}Kerstin\u{202c}\u{200b}", "kerstin"),
        ("Marta", "\u{feff}mar\u{ad}ta\u{200e}"),
        ("O\u{2019}Neil", "o'neil"),
        ("Jean\u{2011}Luc", "jean-luc"),
        ("Ｓａｋｕｒａ", "sakura"),
        ("Großmann", "GROSSMANN"),
        ("\u{1111}\u{1161}\u{11a8}\u{1112}\u{1162}\u{11ab}", "팍핸"),
        ("İlknur", "ilknur"),
        ("Two  \u{a0}Spaces", "two spaces"),
        ("Łukasz", "lukasz"),
        ("Søren", "soren"),
        ("Đặng", "dang"),
        ("Æsa", "aesa"),
        ("Harbour Plumbing and Gas_Fitting, 100% North", "harbour plumbing and gas_fitting, 100% n"),
    ] {
        let id = h.person(tenant, written, "Other").await;
        assert_eq!(h.find(tenant, typed).await, [id], "{written} {typed}");
        let found = h.searched::<Contact>(tenant, typed, 5, ContactFilter::none()).await;
        assert_eq!(found.iter().map(|contact| contact.id.uuid()).collect::<Vec<_>>(), [id], "{written} {typed}");
    }
}

pub(super) async fn a_phone_number_is_found_by_its_digits(h: Harness) {
    let tenant = h.tenant().await;
    let mut numbers = Vec::new();
    for (number, phone) in [
        "\u{202a}+61 412 345 678\u{202c}",
        "0413\u{a0}345\u{2009}679",
        "(03)\u{2011}5550·0104",
        "+1 (415) 555-0199 ext. 7",
        "+44 (0)20 7946 0958",
        "0415 345 670 / 0416 000 111",
    ]
    .iter()
    .enumerate()
    {
        let body = json!({ "email": format!("{number}@phone.example"), "phone": phone });
        numbers.push(h.create::<Contact>(tenant, body).await.unwrap().id.uuid());
    }
    for (typed, number) in [
        ("+61412345678", 0),
        ("0412345678", 0),
        ("0412 345\u{a0}678", 0),
        ("345678", 0),
        ("0061 412 345 678", 0),
        ("0413 345 679", 1),
        ("0413345679", 1),
        ("0413.345.679", 1),
        ("+61413345679", 1),
        ("+61 (0)413 345 679", 1),
        ("0355500104", 2),
        ("+61 3 5550 0104", 2),
        ("4155550199", 3),
        ("+1\u{2013}415\u{2013}555\u{2013}0199", 3),
        ("020 7946 0958", 4),
        ("+442079460958", 4),
        ("61412345678", 0),
        ("61413345679", 1),
        ("+61415345670", 5),
        ("+61416000111", 5),
        ("0416 000 111", 5),
    ] {
        assert_eq!(h.find(tenant, typed).await, [numbers[number]], "{typed}");
    }
    for typed in ["+61 499 345 678", "04123456789", "0412345679"] {
        assert_eq!(h.find(tenant, typed).await, NOTHING, "{typed}");
    }
}

pub(super) async fn a_name_of_one_or_two_characters_is_found(h: Harness) {
    let tenant = h.tenant().await;
    let ng = h.person(tenant, "Jo", "Ng").await;
    let wang = h.person(tenant, "伟", "王").await;
    let written_together = h.person(tenant, "李娜", "").await;
    h.person(tenant, "Nguyen", "Hpatia").await;
    let company = async |company: &str| {
        let body = json!({
            "email": format!("{}@firm.example", company.len()), "first_name": "Pat", "company_name": company, "phone": "+61 3 5550 0104",
        });
        h.create::<Contact>(tenant, body).await.unwrap().id.uuid()
    };
    let (hp, water, filters) = (company("HP").await, company("北京水管公司").await, company("3M-Filters & Co").await);
    for (typed, id) in [
        ("Ng", ng),
        ("jo ng", ng),
        ("ng jo", ng),
        ("HP", hp),
        ("ＨＰ", hp),
        ("北京", water),
        ("水管", water),
        ("管", water),
        ("北京水", water),
        ("王伟", wang),
        ("王 伟", wang),
        ("伟 王", wang),
        ("伟王", wang),
        ("王", wang),
        ("李 娜", written_together),
        ("娜", written_together),
        ("3m", filters),
        ("co", filters),
    ] {
        assert_eq!(h.find(tenant, typed).await, [id], "{typed}");
        let found = h.searched::<Contact>(tenant, typed, 5, ContactFilter::none()).await;
        assert_eq!(found.iter().map(|contact| contact.id.uuid()).collect::<Vec<_>>(), [id], "{typed}");
    }
    for typed in ["g", "gu", "61", "@", "伟北"] {
        assert_eq!(h.find(tenant, typed).await, NOTHING, "{typed}");
    }
}

pub(super) async fn a_text_that_is_nowhere_is_not_found_by_its_parts(h: Harness) {
    let tenant = h.tenant().await;
    let repeated = h.person(tenant, &"ab".repeat(40), &"ba".repeat(40)).await;
    assert_eq!(h.find(tenant, &"ab".repeat(40)).await, [repeated]);
    // Each three characters in a row of these are in the name.
    for text in [&"ab".repeat(60), "bab ab", "abbab"] {
        assert_eq!(h.find(tenant, text).await, NOTHING, "{text}");
    }
    let long: String = ('a'..='z').chain('0'..='9').cycle().take(100).collect();
    let whole = h.person(tenant, &long, "Long").await;
    assert_eq!(h.find(tenant, &long).await, [whole]);
    assert_eq!(h.find(tenant, &format!("{}x{}", &long[..50], &long[51..])).await, NOTHING);
}

pub(super) async fn an_index_that_is_ahead_of_the_clock_begins_anew(h: Harness) {
    let tenant = h.tenant().await;
    let ada = h.person(tenant, "Ada", "Byron").await;
    let ahead = h.advance_clock(tenant).await.checked_add(Duration::from_secs(3_600)).unwrap();
    h.write((tenant, ahead), async |tx, &(tenant, ahead)| Ok(tx.store_texts(tenant, &[], ahead).await?)).await.unwrap();
    assert!(h.to_index().await.contains(&tenant));
    while !h.index(tenant).await {}
    assert_eq!(h.find(tenant, "byron").await, [ada]);
    assert!(!h.to_index().await.contains(&tenant));
}
