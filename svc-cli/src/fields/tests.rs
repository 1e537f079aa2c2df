use clap::CommandFactory as _;
use svc_core::resources::invoices::InvoiceUpdate;
use svc_core::resources::jobs::JobCreate;
use svc_core::resources::quotes::QuoteCreate;
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookUpdate};

use super::*;
use crate::cli::Cli;
use crate::help;

fn types_of<I: Input>() -> Vec<(String, Kind, bool, bool)> {
    fields::<I>().into_iter().map(|field| (field.name, field.kind, field.is_required, field.is_nullable)).collect()
}

#[test]
fn the_options_of_a_webhook_become_what_the_api_takes() {
    let command = || Body::<WebhookCreate>::augment_args(Command::new("create"));
    let parse = |options: &[&str]| -> Result<Vec<(String, FieldValue)>, String> {
        let required = ["create", "--url", "https://example.com", "--events", "*"];
        let matches =
            command().try_get_matches_from(required.iter().chain(options)).map_err(|error| error.to_string())?;
        let BodySource::Options(fields) = Body::<WebhookCreate>::from_arg_matches(&matches).unwrap().source else {
            unreachable!()
        };
        Ok(fields.into_iter().skip(2).collect())
    };
    let check = |options: &[&str], want: &str| match parse(options).unwrap().remove(0).1 {
        FieldValue::Json(found) => assert_eq!(found, json::parse(want.as_bytes()).unwrap(), "{options:?}"),
        other => panic!("{options:?}: {other:?}"),
    };
    check(&["--header", "X-Team: ledger", "--header", "X-Key:a:b"], r#"{"X-Team":"ledger","X-Key":"a:b"}"#);
    check(&["--header", ""], "null");
    check(&["--auth", "Bearer t0ken"], r#"{"type":"bearer","token":"t0ken"}"#);
    check(&["--auth", "basic svc:a:b"], r#"{"type":"basic","username":"svc","password":"a:b"}"#);
    let url = r#""token_url":"https://example.com/token""#;
    check(
        &["--auth", "oauth2 https://example.com/token svc:a read write"],
        &format!(r#"{{"type":"oauth2",{url},"client_id":"svc","client_secret":"a","scope":"read write"}}"#),
    );
    check(&["--timeout", "1500ms"], "2");
    check(&["--retry-schedule", "1m,10m"], "[60,600]");
    check(&["--retry-schedule", ""], "null");
    check(&["--max-per-second", "5"], "5");
    check(&["--filter", "data.total >= 100"], r#""data.total >= 100""#);
    check(&["--payload", "thin"], r#""thin""#);
    for (options, reason) in [
        (["--header", "X-Team"], "a header has its value after a colon"),
        (["--auth", "t0ken"], "must be 'bearer TOKEN', 'basic USER:PASSWORD' or"),
        (["--auth", "basic svc"], "must be 'bearer TOKEN', 'basic USER:PASSWORD' or"),
        (["--auth", "oauth2 https://example.com/token svc"], "must be 'bearer TOKEN', 'basic USER:PASSWORD' or"),
        (["--timeout", "soon"], "must be a duration"),
        (["--ordering", "tenant"], "none, record"),
    ] {
        let error = parse(&options).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn each_field_has_the_type_of_its_schema() {
    let of = |name: &str, kind, required, nullable| (name.to_owned(), kind, required, nullable);
    let quote = types_of::<QuoteCreate>();
    for field in [
        of("contact_id", Kind::Id, true, false),
        of("total", Kind::Number, true, false),
        of("currency", Kind::Text, false, true),
        of("valid_until", Kind::Text, false, true),
    ] {
        assert!(quote.contains(&field), "{field:?} {quote:?}");
    }
    assert_eq!(quote.len(), 4, "line_items are objects: {quote:?}");
    assert!(types_of::<JobCreate>().contains(&of("estimated_total", Kind::Number, false, true)));
    assert!(types_of::<WebhookCreate>().contains(&of("events", Kind::Texts, true, false)));
    assert!(types_of::<WebhookUpdate>().contains(&of("enabled", Kind::Bool, false, false)));
    assert!(types_of::<InvoiceUpdate>().contains(&of("due_date", Kind::Text, false, true)));
    let status = fields::<JobCreate>().into_iter().find(|field| field.name == "status").unwrap();
    assert!(status.possible.contains(&"in_progress".to_owned()), "{:?}", status.possible);
    let events = fields::<WebhookCreate>().into_iter().find(|field| field.name == "events").unwrap();
    assert!(["*", "invoice.paid"].iter().all(|kind| events.possible.contains(&(*kind).to_owned())));
}

/// Checks that each field of an input has an option of a command, by which errors name it. `others` have none.
fn check_options<I: Input>(line: &str, others: &[&str]) {
    let mut root = Cli::command();
    root.build();
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let command = help::command_of(&root, &words);
    assert_eq!(command.get_bin_name(), Some(line));
    let schema = schema::<I>();
    for field in schema["properties"].as_object().unwrap().keys() {
        let option = option_name(field);
        let is_there = command.get_arguments().any(|arg| arg.get_long() == Some(&option) || arg.get_id() == field);
        assert_ne!(is_there, others.contains(&field.as_str()), "{line} --{option} for {field}");
    }
}

#[test]
fn every_field_of_an_input_is_named_as_an_option_of_its_command() {
    use svc_core::platform::*;
    use svc_core::resources::invoices::PaymentCreate;
    check_options::<AccountCreate>("svc account create", &["developer_access"]);
    check_options::<AccountUpdate>("svc account set", &["developer_access"]);
    check_options::<ApiKeyCreate>("svc key create", &[]);
    check_options::<ApiKeyRotation>("svc key rotate", &[]);
    check_options::<AppCreate>("svc app create", &[]);
    check_options::<AppUpdate>("svc app update", &["disabled"]);
    check_options::<SecretRotation>("svc app rotate-secret", &[]);
    check_options::<SecretRotation>("svc webhook rotate-secret", &[]);
    check_options::<MemberCreate>("svc member add", &[]);
    check_options::<DashboardLinkCreate>("svc dashboard link", &["identity", "lifetime"]);
    check_options::<PaymentCreate>("svc invoice pay", &[]);
    check_options::<PaymentCreate>("svc invoice refund", &[]);
    check_options::<EventCreate>("svc event emit", &[]);
    check_options::<SampleEventCreate>("svc trigger", &[]);
    check_options::<ReplaySelection>("svc delivery replay", &[]);
    check_options::<RequestListFilter>("svc request list", &[]);
    check_options::<LogFilter>("svc audit list", &[]);
    check_options::<svc_core::personal::ErasureCreate>("svc contact erase", &[]);
    check_options::<svc_core::find::FindText>("svc find", &[]);
    check_options::<svc_core::resources::contacts::ContactCreate>("svc contact create", &[]);
    check_options::<svc_core::resources::contacts::ContactUpdate>("svc contact update", &[]);
    check_options::<svc_core::resources::bookings::BookingCreate>("svc booking create", &[]);
    check_options::<svc_core::resources::bookings::BookingUpdate>("svc booking update", &[]);
    check_options::<JobCreate>("svc job create", &[]);
    check_options::<svc_core::resources::jobs::JobUpdate>("svc job update", &[]);
    check_options::<QuoteCreate>("svc quote create", &["line_items"]);
    check_options::<svc_core::resources::quotes::QuoteUpdate>("svc quote update", &[]);
    check_options::<svc_core::resources::invoices::InvoiceCreate>("svc invoice create", &[]);
    check_options::<InvoiceUpdate>("svc invoice update", &[]);
    check_options::<WebhookCreate>("svc webhook create", &[]);
    check_options::<WebhookUpdate>("svc webhook update", &[]);
}
