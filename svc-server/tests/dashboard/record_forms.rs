//! The forms of records: what they change, what they say to bad and hostile input, and that they change once.

use http::StatusCode;
use http::header::LOCATION;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;

use super::browser::{Browser, Response, Server, encode};

/// A text that must be shown as it is.
const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}";

/// Returns the value of a field of a page as a browser reads it.
fn field(page: &str, name: &str) -> String {
    let tag = page.split(&format!(" name=\"{name}\"")).nth(1).unwrap_or_else(|| panic!("no {name} in {page}"));
    let tag = tag.split('>').next().unwrap();
    let value = tag.split("value=\"").nth(1).map_or("", |rest| rest.split('"').next().unwrap());
    value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Sends the form of a page with its hidden fields.
async fn send(browser: &Browser<'_>, path: &str, fields: &[(&str, &str)]) -> Response {
    let page = browser.get(path).await;
    assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text);
    let hidden = hidden(&page.text);
    let hidden = hidden.iter().map(|(name, value)| (*name, value.as_str()));
    browser.post(path, &encode(&hidden.chain(fields.iter().copied()).collect::<Vec<_>>())).await
}

fn hidden(page: &str) -> Vec<(&'static str, String)> {
    let names = ["key", "version"].into_iter().filter(|name| page.contains(&format!(" name=\"{name}\"")));
    names.map(|name| (name, field(page, name))).collect()
}

fn location(response: &Response) -> &str {
    assert_eq!(response.status, StatusCode::SEE_OTHER, "{}", response.text);
    response.headers[LOCATION].to_str().unwrap()
}

/// Returns the id in the path that a form leads to.
fn new_id<I: std::str::FromStr<Err: std::fmt::Debug>>(response: &Response) -> I {
    location(response).split(['/', '?']).nth(3).unwrap().parse().unwrap()
}

/// Returns the kinds of the events of an account, the oldest first, and the actors of its audit log for records.
async fn events(server: &Server, tenant: TenantId) -> Vec<String> {
    let log = server.svc.account(tenant).audit_log().since(Timestamp::from_micros(0), 100).await.unwrap();
    let about = ["contact", "invoice", "quote", "booking", "job"];
    let log = log.iter().filter(|entry| about.contains(&entry.object_kind.as_str()));
    log.map(|entry| format!("{} {} by {}", entry.action, entry.object_kind, entry.actor)).collect()
}

#[tokio::test]
async fn a_contact_is_created_and_edited_by_a_developer() {
    let server = Server::start().await;
    let link = DashboardLinkCreate::to(server.tenant, Role::Developer).identity("ada@example.com");
    let developer = server.signed_in_by(link).await;
    assert!(developer.get("/contacts").await.text.contains("href=\"/dashboard/contacts/new\""));
    let fields =
        [("email", "jane@example.com"), ("first_name", HOSTILE), ("company_name", "  Bay Cafe "), ("city", "")];
    let created = send(&developer, "/contacts/new", &fields).await;
    let account = server.svc.account(server.tenant);
    let jane = account.contacts().get(new_id(&created)).await.unwrap();
    assert_eq!(location(&created), format!("/dashboard/contacts/{}?notice=created", jane.id));
    assert_eq!(jane.first_name.as_ref().map(Text::as_str), Some(HOSTILE));
    assert_eq!((jane.company_name.as_ref().map(Text::as_str), jane.city), (Some("Bay Cafe"), None));
    let page = developer.get(&format!("/contacts/{}?notice=created", jane.id)).await.text;
    assert!(page.contains("Created.") && page.contains("&lt;script&gt;alert(1)"), "{page}");
    assert!(!page.contains("<script>alert"), "{page}");

    let edit = format!("/contacts/{}/edit", jane.id);
    let form = developer.get(&edit).await.text;
    assert_eq!(
        (field(&form, "email"), field(&form, "first_name")),
        ("jane@example.com".to_owned(), HOSTILE.to_owned())
    );
    let fields =
        [("email", "jane@example.com"), ("first_name", "Jane"), ("last_name", "Citizen"), ("company_name", "")];
    let saved = send(&developer, &edit, &fields).await;
    assert_eq!(location(&saved), format!("/dashboard/contacts/{}?notice=saved", jane.id));
    let jane = account.contacts().get(jane.id).await.unwrap();
    assert_eq!(jane.last_name.as_ref().map(Text::as_str), Some("Citizen"));
    assert_eq!(jane.company_name, None, "an empty field clears");
    let by = "dashboard:ada@example.com";
    let log = events(&server, server.tenant).await;
    assert_eq!(log.len(), 2, "{log:?}");
    assert!(log.iter().all(|entry| entry.ends_with(&format!("contact by {by}"))), "{log:?}");
}

#[tokio::test]
async fn each_kind_of_record_is_created_and_edited() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.account(server.tenant);
    account.change_settings(|tenant| tenant.time_zone = "Australia/Sydney".parse().unwrap()).await.unwrap();
    let jane = server.contact("jane@example.com").await;
    let id = jane.id.to_string();

    let form = owner.get(&format!("/bookings/new?contact={id}")).await.text;
    assert_eq!(field(&form, "contact_id"), "jane@example.com");
    assert!(form.contains("In the time zone Australia/Sydney."), "{form}");
    let notes = " First line\r\n  second <b>";
    let fields = [
        ("contact_id", "JANE@example.com"),
        ("service_name", "Blocked drain"),
        ("start_time", "2026-03-20T09:00"),
        ("notes", notes),
    ];
    let booking: BookingId = new_id(&send(&owner, "/bookings/new", &fields).await);
    let booking = account.bookings().get(booking).await.unwrap();
    assert_eq!(booking.start_time.to_string(), "2026-03-19T22:00:00.000000Z");
    assert_eq!(booking.end_time.to_string(), "2026-03-19T23:00:00.000000Z");
    assert_eq!(booking.notes.as_ref().map(Note::as_str), Some(" First line\n  second <b>"));
    let edit = format!("/bookings/{}/edit", booking.id);
    let form = owner.get(&edit).await.text;
    assert_eq!(field(&form, "start_time"), "2026-03-20T09:00");
    assert!(form.contains(">\n First line\n  second &lt;b&gt;</textarea>"), "{form}");
    let fields =
        [("status", "no_show"), ("start_time", "2026-03-20T09:00"), ("end_time", "2026-03-20T12:00"), ("notes", notes)];
    location(&send(&owner, &edit, &fields).await);
    let booking = account.bookings().get(booking.id).await.unwrap();
    assert_eq!(
        (booking.status, booking.end_time.to_string().as_str()),
        (BookingStatus::NoShow, "2026-03-20T01:00:00.000000Z")
    );
    assert_eq!(booking.notes.as_ref().map(Note::as_str), Some(" First line\n  second <b>"));

    let fields =
        [("contact_id", id.as_str()), ("total", "00149.50"), ("currency", "NZD"), ("valid_until", "2026-05-01")];
    let quote: QuoteId = new_id(&send(&owner, "/quotes/new", &fields).await);
    let quote = account.quotes().get(quote).await.unwrap();
    assert_eq!((quote.total.to_string(), quote.currency.to_string()), ("149.5".to_owned(), "NZD".to_owned()));
    assert_eq!(quote.valid_until, Some("2026-05-01".parse().unwrap()));
    let fields = [("status", "sent"), ("total", "99"), ("valid_until", "2026-05-02")];
    location(&send(&owner, &format!("/quotes/{}/edit", quote.id), &fields).await);
    let quote = account.quotes().get(quote.id).await.unwrap();
    assert_eq!((quote.status, quote.total.to_string()), (QuoteStatus::Sent, "99".to_owned()));

    let fields =
        [("title", "New pump"), ("status", "scheduled"), ("scheduled_start", "2026-03-21T08:30"), ("priority", "high")];
    let job: JobId = new_id(&send(&owner, "/jobs/new", &fields).await);
    let job = account.jobs().get(job).await.unwrap();
    assert_eq!(
        (job.status, job.scheduled_start.unwrap().to_string().as_str()),
        (JobStatus::Scheduled, "2026-03-20T21:30:00.000000Z")
    );
    let fields = [("title", "New pump"), ("status", "completed"), ("scheduled_start", ""), ("actual_total", "420.5")];
    location(&send(&owner, &format!("/jobs/{}/edit", job.id), &fields).await);
    let job = account.jobs().get(job.id).await.unwrap();
    assert_eq!((job.status, job.scheduled_start, job.priority), (JobStatus::Completed, None, None));
    assert_eq!(job.actual_total.unwrap().to_string(), "420.5");

    let form = owner.get("/invoices/new").await.text;
    assert!(form.contains("name=\"issue_date\" type=\"date\" value=\"2026-03-15\""), "{form}");
    assert!(form.contains("name=\"due_date\" type=\"date\" value=\"\""), "it follows from the day of issue: {form}");
    let fields =
        [("contact_id", "jane@example.com"), ("total", "9860.50"), ("currency", "AUD"), ("due_date", "2026-04-01")];
    let invoice: InvoiceId = new_id(&send(&owner, "/invoices/new", &fields).await);
    let invoice = account.invoices().get(invoice).await.unwrap();
    assert_eq!((invoice.contact_id, invoice.total.to_string()), (Some(jane.id), "9860.5".to_owned()));
    assert_eq!(invoice.issue_date, Some("2026-03-15".parse().unwrap()), "today in Sydney");
    let fields =
        [("contact_id", ""), ("total", "100"), ("currency", "AUD"), ("issue_date", "2026-03-15"), ("due_date", "")];
    location(&send(&owner, &format!("/invoices/{}/edit", invoice.id), &fields).await);
    let invoice = account.invoices().get(invoice.id).await.unwrap();
    assert_eq!((invoice.contact_id, invoice.due_date, invoice.total.to_string()), (None, None, "100".to_owned()));
}

#[tokio::test]
async fn the_currency_of_an_edited_quote_says_what_a_comma_can_be() {
    let server = Server::start().await;
    let developer = server.signed_in(Role::Developer).await;
    let ada = server.contact("ada@example.com").await.id;
    let quotes = server.svc.account(server.tenant).quotes();
    for (currency, is_refused) in [("KWD", true), ("AUD", false)] {
        let create = QuoteCreate::new(ada, "1".parse().unwrap());
        let quote = QuoteCreate { currency: Some(Currency::parse(currency).unwrap()), ..create };
        let quote = quotes.create(quote).await.unwrap();
        // The other fields are missing, so that both are shown again.
        let page = send(&developer, &format!("/quotes/{}/edit", quote.id), &[("total", "1,450")]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(page.text.contains("with a point for the decimals"), is_refused, "{currency}: {}", page.text);
    }
}

#[tokio::test]
async fn bad_input_is_shown_at_its_field_and_stays() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.account(server.tenant);
    account.change_settings(|tenant| tenant.time_zone = "Australia/Sydney".parse().unwrap()).await.unwrap();
    server.contact("taken@example.com").await;
    let foreign = server.of(server.other).contact("other@example.com").await.id.to_string();
    let long = "x".repeat(301);
    for (path, fields, error) in [
        ("/contacts/new", &[("first_name", HOSTILE)][..], "It must not be empty."),
        ("/contacts/new", &[("email", HOSTILE)], "It must be an email address"),
        ("/contacts/new", &[("email", "a@example.com"), ("first_name", &long)], "It must have at most 300 characters."),
        ("/contacts/new", &[("email", "a@example.com"), ("city", "a\nb")], "one line"),
        ("/contacts/new", &[("email", "a@example.com"), ("phone", "1\u{0}2")], "NUL"),
        ("/contacts/new", &[("email", "TAKEN@example.com")], "Another contact has this address."),
        ("/invoices/new", &[("total", "1,50")], "The amount must be a number such as 99.95, with a point"),
        ("/invoices/new", &[("total", "1,450"), ("currency", "KWD")], "with a point for the decimals"),
        ("/invoices/new", &[("total", "1e3")], "The amount must be a number such as 1500.95."),
        ("/invoices/new", &[("total", "-1")], "must be a number from 0 to"),
        ("/invoices/new", &[("total", "1.999"), ("currency", "AUD")], "It must have at most 2 decimals."),
        ("/invoices/new", &[("total", "1"), ("currency", "euros")], "It must be three upper-case letters such as AUD."),
        ("/invoices/new", &[("total", "1"), ("due_date", "31.12.2026")], "date"),
        ("/invoices/new", &[("total", "1"), ("contact_id", &foreign)], "No contact has this text."),
        ("/invoices/new", &[("total", "1"), ("contact_id", "other@example.com")], "No contact has this text."),
        ("/quotes/new", &[("total", "1"), ("contact_id", HOSTILE)], "No contact has this text."),
        ("/quotes/new", &[("total", "1")], "It must not be empty."),
        ("/bookings/new", &[("start_time", "tomorrow")], "The time must be a date and a time such as"),
        ("/bookings/new", &[("start_time", "2026-10-04T02:30")], "does not exist in Australia/Sydney"),
        ("/jobs/new", &[("title", "x"), ("status", "eaten")], "It must be one of"),
        (
            "/jobs/new",
            &[("title", "x"), ("scheduled_start", "2026-03-21T08:30"), ("scheduled_end", "2026-03-21T08:00")],
            "It must not be before “Planned start”.",
        ),
    ] {
        let again = send(&owner, path, fields).await;
        assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {fields:?}: {}", again.text);
        assert!(again.text.contains(error), "{path} {fields:?} lacks {error}: {}", again.text);
        assert!(
            again.text.contains("Nothing was saved") && again.text.contains("aria-invalid=\"true\""),
            "{}",
            again.text
        );
        assert!(!again.text.contains("<script>alert"), "{}", again.text);
        for (name, typed) in fields.iter().filter(|(name, typed)| *name != "status" && !typed.contains(['\n', '\u{0}']))
        {
            assert_eq!(field(&again.text, name), *typed, "what was typed stays");
        }
        assert_eq!(field(&again.text, "key").len(), 32, "{}", again.text);
    }
    assert_eq!(events(&server, server.tenant).await.len(), 1, "the contact with the taken address");
}

#[tokio::test]
async fn a_contact_is_named_by_what_is_unambiguous() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.account(server.tenant);
    let named = |email: &str, first: &str| ContactCreate {
        details: ContactDetails { first_name: Patch::Set(Some(first.parse().unwrap())), ..ContactDetails::default() },
        ..ContactCreate::new(email.parse().unwrap())
    };
    let ada = account.contacts().create(named("ada@example.com", "Ada")).await.unwrap();
    let create = async |contact: &str| send(&owner, "/invoices/new", &[("total", "1"), ("contact_id", contact)]).await;
    for contact in ["ADA", "Ada@Example.com", &ada.id.to_string()] {
        let invoice: InvoiceId = new_id(&create(contact).await);
        assert_eq!(account.invoices().get(invoice).await.unwrap().contact_id, Some(ada.id), "{contact}");
    }
    account.contacts().delete(ada.id).await.unwrap();
    assert_eq!(create(&ada.id.to_string()).await.status, StatusCode::UNPROCESSABLE_ENTITY, "deleted");
    // Of more contacts than are suggested, the one that is called so is meant.
    let grace = account.contacts().create(named("grace@example.com", "Grace")).await.unwrap();
    for number in 0..25 {
        account.contacts().create(named(&format!("c{number}@example.com"), "Grace Ann")).await.unwrap();
    }
    let invoice: InvoiceId = new_id(&create("grace").await);
    assert_eq!(account.invoices().get(invoice).await.unwrap().contact_id, Some(grace.id));
}

/// Returns the choices that a form offers: their values and their texts.
fn choices(page: &str) -> Vec<(String, String)> {
    let list = page.split("name=\"contact_choice\"").nth(1).unwrap().split("</select>").next().unwrap();
    let option = |option: &str| {
        let (tag, text) = option.split_once('>').unwrap();
        (field(&format!("< name=\"o\" {tag}>"), "o"), text.split('<').next().unwrap().to_owned())
    };
    list.split("<option").skip(1).map(option).collect()
}

#[tokio::test]
async fn a_text_that_several_contacts_have_asks_which_is_meant() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.account(server.tenant);
    let first = server.named_contact("bob@example.com", "Bob").await;
    let second = server.named_contact("bob2@example.com", "bob").await;
    let lovelace = server.named_contact("ada@example.com", "Ada Lovelace").await;
    let foreign = server.of(server.other).named_contact("bob@example.com", "Bob").await;
    let create = async |text: &str, choice: &str| {
        let fields = [("total", "1"), ("contact_id", text), ("contact_choice", choice)];
        send(&owner, "/invoices/new", &fields).await
    };

    let asked = create("Bob", "").await;
    assert_eq!(asked.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(asked.text.contains("Choose the contact that you mean below."), "{}", asked.text);
    let mut offered = choices(&asked.text);
    offered.sort();
    let mut wanted = vec![
        (String::new(), "Choose one".to_owned()),
        (format!("{} Bob", first.id), "Bob · bob@example.com".to_owned()),
        (format!("{} Bob", second.id), "bob · bob2@example.com".to_owned()),
    ];
    wanted.sort();
    assert_eq!(offered, wanted);
    let invoice: InvoiceId = new_id(&create("Bob", &format!("{} Bob", second.id)).await);
    assert_eq!(account.invoices().get(invoice).await.unwrap().contact_id, Some(second.id));

    // A part of a name suggests.
    let asked = create("ada love", "").await;
    let choice = format!("{} ada love", lovelace.id);
    assert_eq!(choices(&asked.text), [(choice.clone(), "Ada Lovelace · ada@example.com".to_owned())]);
    let invoice: InvoiceId = new_id(&create("ada love", &choice).await);
    assert_eq!(account.invoices().get(invoice).await.unwrap().contact_id, Some(lovelace.id));

    // A choice counts beside its own text alone.
    for (text, choice, error) in [
        ("Bob", choice.as_str(), "Choose the contact that you mean below."),
        ("Bob", "Bob", "Choose the contact that you mean below."),
        ("Bob", &lovelace.id.to_string(), "Choose the contact that you mean below."),
        ("nobody", &choice, "No contact has this text."),
        ("Bob", &format!("{} Bob", foreign.id), "No contact has this text."),
        ("Bob", &format!("{} Bob", InvoiceId::from(uuid::Uuid::nil())), "No contact has this text."),
        (&foreign.id.to_string(), "", "No contact has this text."),
        (HOSTILE, HOSTILE, "No contact has this text."),
    ] {
        let again = create(text, choice).await;
        assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY, "{text} {choice}");
        assert!(again.text.contains(error) && !again.text.contains("<script>alert"), "{text} {choice}: {}", again.text);
    }

    // A form that knows its contact shows the name, and the choice makes it the one.
    let page = owner.get(&format!("/invoices/new?contact={}", second.id)).await.text;
    assert_eq!(field(&page, "contact_id"), "bob");
    let invoice: InvoiceId = new_id(&create("bob", &field(&page, "contact_choice")).await);
    assert_eq!(account.invoices().get(invoice).await.unwrap().contact_id, Some(second.id));
    // Another contact of the same name is a change.
    let edit = format!("/invoices/{invoice}/edit");
    let page = owner.get(&edit).await.text;
    assert_eq!(field(&page, "contact_choice"), format!("{} bob", second.id));
    let choice = format!("{} bob", first.id);
    let shown = ["currency", "total", "due_date"].map(|name| (name, field(&page, name)));
    let shown = shown.iter().map(|(name, value)| (*name, value.as_str()));
    let fields: Vec<_> = shown.chain([("contact_id", "bob"), ("contact_choice", choice.as_str())]).collect();
    location(&send(&owner, &edit, &fields).await);
    assert_eq!(account.invoices().get(invoice).await.unwrap().contact_id, Some(first.id));
}

#[tokio::test]
async fn a_field_suggests_contacts_while_a_person_types() {
    let server = Server::start().await;
    let ada = server.named_contact("ada@example.com", "Ada").await;
    server.named_contact("hostile@example.com", "<img src=x> Ada").await;
    server.of(server.other).named_contact("ada@example.com", "Ada").await;
    let suggested = async |role, text: &str| {
        let browser = server.signed_in(role).await;
        browser.get(&format!("/find/contacts?{}", encode(&[("q", text)]))).await.text
    };
    let path = format!("/dashboard/contacts/{}", ada.id);
    let first = format!(
        "<li><a href=\"{path}\" data-choice=\"{} Ada\">Ada</a> <span class=\"soft\">ada@example.com</span></li>",
        ada.id
    );
    let new = "<li><a href=\"/dashboard/contacts/new\" data-new>New contact</a></li>";
    let found = suggested(Role::Developer, "ada").await;
    assert!(found.starts_with(&format!("<ul>{first}<li>")) && found.ends_with(&format!("</li>{new}</ul>")), "{found}");
    assert!(found.contains("&lt;img src=x&gt; Ada") && found.matches("<li>").count() == 3, "{found}");
    assert!(!suggested(Role::Viewer, "ada").await.contains(new));
    for nothing in ["", "zz", &"x".repeat(300), "\" OR 1=1 --"] {
        assert_eq!(suggested(Role::Developer, nothing).await, format!("<ul>{new}</ul>"), "{nothing}");
    }
}

#[tokio::test]
async fn a_form_that_is_sent_twice_changes_once() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.account(server.tenant);
    let key = field(&owner.get("/jobs/new").await.text, "key");
    assert_ne!(key, field(&owner.get("/jobs/new").await.text, "key"), "each form has a key of its own");
    let form = |title: &str| encode(&[("key", &key), ("title", title)]);
    // Refused first: nothing is remembered then.
    assert_eq!(owner.post("/jobs/new", &form("")).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let csrf = owner.csrf().await;
    let twice = form("New pump");
    let (first, second) =
        tokio::join!(owner.send_form("/jobs/new", &twice, &csrf), owner.send_form("/jobs/new", &twice, &csrf));
    assert_eq!(location(&first), location(&second));
    assert_eq!(location(&owner.post("/jobs/new", &twice).await), location(&first));
    let other = owner.post("/jobs/new", &form("New tap")).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert!(other.text.contains("This form was saved before, with other values."), "{}", other.text);
    assert!(
        other.text.contains("/dashboard/jobs/new\">Load the form again") && other.text.contains("New tap"),
        "{}",
        other.text
    );
    let jobs = account.jobs().list(JobFilter::default(), ListParams::default()).await.unwrap().data;
    assert_eq!(jobs.len(), 1);
    assert_eq!(events(&server, server.tenant).await.len(), 1);

    let elsewhere = server.signed_in_by(DashboardLinkCreate::to(server.other, Role::Owner)).await;
    let theirs = elsewhere.post("/jobs/new", &twice).await;
    assert_ne!(location(&theirs), location(&first), "keys are those of an account");
    server.clock.advance(std::time::Duration::from_secs(25 * 60 * 60));
    let tomorrow = server.signed_in(Role::Owner).await;
    assert_ne!(location(&tomorrow.post("/jobs/new", &twice).await), location(&first), "a key is remembered for a day");
}

#[tokio::test]
async fn a_change_over_that_of_another_person_is_refused() {
    let server = Server::start().await;
    let (owner, developer) = (server.signed_in(Role::Owner).await, server.signed_in(Role::Developer).await);
    let account = server.svc.account(server.tenant);
    let jane = server.contact("jane@example.com").await;
    let edit = format!("/contacts/{}/edit", jane.id);
    let old = hidden(&owner.get(&edit).await.text);
    let fields = [("email", "jane@example.com"), ("phone", "0400 000 001")];
    location(&send(&developer, &edit, &fields).await);
    let old = old.iter().map(|(name, value)| (*name, value.as_str()));
    let form = encode(&old.chain([("email", "jane@example.com"), ("city", "Perth")]).collect::<Vec<_>>());
    for _ in 0..2 {
        let refused = owner.post(&edit, &form).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert!(refused.text.contains("Somebody changed this contact after the form was loaded"), "{}", refused.text);
        assert_eq!(field(&refused.text, "city"), "Perth");
        assert!(refused.text.contains(&format!("href=\"/dashboard{edit}\">Load the form again")), "{}", refused.text);
    }
    let stored = account.contacts().get(jane.id).await.unwrap();
    assert_eq!((stored.phone.as_ref().map(Text::as_str), stored.city), (Some("0400 000 001"), None));
    // Without a change, nothing is written and nothing fires.
    let before = events(&server, server.tenant).await;
    location(&send(&owner, &edit, &fields).await);
    assert_eq!(events(&server, server.tenant).await, before);
}

#[tokio::test]
async fn an_edit_changes_only_what_was_typed() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.account(server.tenant);
    let jane = server.contact("jane@example.com").await;
    let start: Timestamp = "2026-03-20T09:00:30.5Z".parse().unwrap();
    let notes: Note<4096> = "\nTwo lines \n".parse().unwrap();
    let input = BookingCreate {
        notes: Some(notes.clone()),
        ..BookingCreate::new(jane.id, Text::parse("Visit").unwrap(), start)
    };
    let booking = account.bookings().create(input).await.unwrap();
    let fields = [
        ("status", "completed"),
        ("start_time", "2026-03-20T09:00"),
        ("end_time", "2026-03-20T10:00"),
        ("notes", "\r\nTwo lines \r\n"),
    ];
    location(&send(&owner, &format!("/bookings/{}/edit", booking.id), &fields).await);
    let edited = account.bookings().get(booking.id).await.unwrap();
    assert_eq!(edited.status, BookingStatus::Completed);
    assert_eq!((edited.start_time, edited.end_time, edited.notes), (start, booking.end_time, Some(notes)));
}

#[tokio::test]
async fn a_time_that_clocks_show_twice_is_asked_for() {
    let server = Server::start().await;
    let owner = server.signed_in(Role::Owner).await;
    let account = server.svc.account(server.tenant);
    account.change_settings(|tenant| tenant.time_zone = "Australia/Sydney".parse().unwrap()).await.unwrap();
    server.contact("jane@example.com").await;
    let booked = [("contact_id", "jane@example.com"), ("service_name", "Visit")];
    let typed = |start, end, more: &[(&'static str, &'static str)]| {
        [&booked[..], &[("start_time", start), ("end_time", end)], more].concat()
    };

    // Clocks show 02:00 to 02:59 twice that night.
    let again = send(&owner, "/bookings/new", &typed("2026-04-05T02:30", "2026-04-05T03:30", &[])).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(again.text.contains("is shown twice by clocks in Australia/Sydney"), "{}", again.text);
    for option in ["Choose one", "The first, at UTC+11:00", "The second, at UTC+10:00"] {
        assert!(again.text.contains(option), "{}", again.text);
    }
    assert!(!again.text.contains("name=\"end_time_offset\""), "03:30 is shown once: {}", again.text);

    let second = typed("2026-04-05T02:30", "2026-04-05T03:30", &[("start_time_offset", "+10:00")]);
    let id: BookingId = new_id(&send(&owner, "/bookings/new", &second).await);
    let booking = account.bookings().get(id).await.unwrap();
    assert_eq!(booking.start_time.to_string(), "2026-04-04T16:30:00.000000Z");
    assert_eq!(booking.end_time.to_string(), "2026-04-04T17:30:00.000000Z");
    let shown = owner.get(&format!("/bookings/{id}")).await.text;
    assert!(shown.contains("5 Apr 2026, 02:30 +10:00"), "{shown}");

    // The form of the booking shows which it is, and saving it as it is changes nothing.
    let edit = format!("/bookings/{id}/edit");
    let form = owner.get(&edit).await.text;
    assert!(form.contains("<option value=\"+10:00\" selected>"), "{form}");
    let same = [("status", "confirmed"), ("start_time", "2026-04-05T02:30"), ("start_time_offset", "+10:00")];
    let same = [&same[..], &[("end_time", "2026-04-05T03:30"), ("notes", "")]].concat();
    location(&send(&owner, &edit, &same).await);
    assert_eq!(account.bookings().get(id).await.unwrap().updated_at, booking.updated_at);

    // From the first 02:45 to the second 02:15 are 30 minutes.
    let offsets = [("start_time_offset", "+11:00"), ("end_time_offset", "+10:00")];
    let across = typed("2026-04-05T02:45", "2026-04-05T02:15", &offsets);
    let id: BookingId = new_id(&send(&owner, "/bookings/new", &across).await);
    let booking = account.bookings().get(id).await.unwrap();
    assert_eq!(booking.end_time.since(booking.start_time).as_secs(), 30 * 60);
}

#[tokio::test]
async fn viewers_see_no_button_that_changes_records() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    let jane = server.contact("jane@example.com").await;
    let invoice = InvoiceCreate { contact_id: Some(jane.id), ..InvoiceCreate::new("149.50".parse().unwrap()) };
    let invoice = server.svc.account(server.tenant).invoices().create(invoice).await.unwrap();
    for path in ["/contacts", &format!("/contacts/{}", jane.id), "/invoices", &format!("/invoices/{}", invoice.id)] {
        let page = viewer.get(path).await.text;
        for button in ["/new\"", "/new?", "/edit\"", "/delete\"", "/send\"", "/pay\"", "/void\""] {
            assert!(!page.contains(button), "{path} has {button}: {page}");
        }
    }
}
