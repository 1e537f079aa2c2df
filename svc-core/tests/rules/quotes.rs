//! Quotes: exact amounts, and dates in the tenant's time zone.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use svc_core::error::Error;
use svc_core::resources::quotes::{self, Quote, QuoteId, QuoteStatus};
use svc_core::store::Tx;
use svc_core::values::{Id, TenantId};

use super::{Rules, json_of, refusal};

#[test]
fn the_issue_date_is_today_in_the_tenants_time_zone() {
    for (zone, now, issued, valid) in [
        ("UTC", "2026-03-14T15:09:26Z", "2026-03-14", "2026-04-13"),
        ("Australia/Sydney", "2026-03-14T15:09:26Z", "2026-03-15", "2026-04-14"),
        ("Pacific/Kiritimati", "2025-12-31T10:00:00Z", "2026-01-01", "2026-01-31"),
        ("America/Los_Angeles", "2026-03-01T07:59:59Z", "2026-02-28", "2026-03-30"),
        ("America/Los_Angeles", "2026-03-01T08:00:00Z", "2026-03-01", "2026-03-31"),
        ("Europe/London", "2028-01-30T12:00:00Z", "2028-01-30", "2028-02-29"),
    ] {
        let fixture = Rules::in_zone_at(zone, "AUD", now);
        let contact = fixture.contact();
        let quote: Quote = fixture.create(json!({ "contact_id": contact, "total": 1 })).unwrap();
        let days = [quote.issue_date, quote.valid_until].map(|day| day.unwrap().to_string());
        assert_eq!(days, [issued, valid], "{zone} at {now}");
    }
}

#[test]
fn a_new_quote_has_every_field() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let items = json!([{ "text": "Pump", "price": 5 }, {}]);
    let quote: Quote = fixture.create(json!({ "contact_id": contact, "total": 99.5, "line_items": items })).unwrap();
    let now = "2026-03-14T15:09:26.535899Z";
    assert_eq!(
        json_of(&quote),
        json!({
            "id": quote.id, "quote_number": "QUO-0001", "contact_id": contact, "status": "draft",
            "issue_date": "2026-03-14", "valid_until": "2026-04-13", "total": 99.5, "currency": "AUD",
            "created_at": now, "updated_at": now,
        })
    );
    assert_eq!(fixture.new_kinds(), "quote.created");
}

#[test]
fn valid_until_keeps_the_date_that_was_sent() {
    let fixture = Rules::in_zone("Australia/Sydney", "AUD");
    let contact = fixture.contact();
    for (sent, want) in [
        ("2026-04-01", "2026-04-01"),
        ("2026-04-01T23:30:00-10:00", "2026-04-01"),
        ("2026-04-01T00:30:00+14:00", "2026-04-01"),
        ("2026-04-01T00:00:00Z", "2026-04-01"),
        ("2020-02-29", "2020-02-29"),
    ] {
        let body = json!({ "contact_id": contact, "total": 1, "valid_until": sent });
        let quote: Quote = fixture.create(body).unwrap();
        assert_eq!(quote.valid_until.unwrap().to_string(), want, "{sent}");
        let moved: Quote = fixture.update(quote.id, json!({ "valid_until": "2030-01-01" })).unwrap();
        assert_eq!(moved.valid_until.unwrap().to_string(), "2030-01-01");
        let back: Quote = fixture.update(quote.id, json!({ "valid_until": sent })).unwrap();
        assert_eq!(back.valid_until, quote.valid_until);
    }
}

#[test]
fn the_currency_limits_the_decimals() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let raw = |total: &str, currency: &str| -> Value {
        let body = format!(r#"{{"contact_id": "{contact}", "total": {total}, "currency": "{currency}"}}"#);
        serde_json::from_str(&body).unwrap()
    };
    for (total, currency, want) in [
        ("0", "AUD", "0"),
        ("99.95", "AUD", "99.95"),
        ("100.00", "AUD", "100"),
        ("0.30000000000000004", "AUD", "0.3"),
        ("59.96999999999999", "AUD", "59.97"),
        ("7", "JPY", "7"),
        ("1.234", "KWD", "1.234"),
        ("0.0001", "UYW", "0.0001"),
        ("1000000000000", "CLF", "1000000000000"),
    ] {
        let quote: Quote = fixture.create(raw(total, currency)).unwrap();
        assert_eq!((quote.total.to_string(), quote.currency.code()), (want.to_owned(), currency), "{total}");
    }
    for (total, currency) in [("0.305", "AUD"), ("0.001", "AUD"), ("7.5", "JPY"), ("0.0001", "KWD")] {
        assert_eq!(refusal(fixture.create::<Quote>(raw(total, currency))), "total out_of_range", "{total} {currency}");
    }
}

#[test]
fn the_tenants_currency_is_the_default() {
    for (own, sent, want) in [("AUD", None, "AUD"), ("JPY", None, "JPY"), ("JPY", Some("KWD"), "KWD")] {
        let fixture = Rules::in_zone("UTC", own);
        let contact = fixture.contact();
        let quote: Quote = fixture.create(json!({ "contact_id": contact, "total": 5, "currency": sent })).unwrap();
        assert_eq!((quote.currency.code(), quote.total.scale()), (want, quote.currency.scale()));
    }
    let fixture = Rules::in_zone("UTC", "JPY");
    let contact = fixture.contact();
    let cents = fixture.create::<Quote>(json!({ "contact_id": contact, "total": 0.5 }));
    assert_eq!(refusal(cents), "total out_of_range", "no cents in the tenant's currency");
}

#[test]
fn a_change_keeps_the_currency() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let body = json!({ "contact_id": contact, "total": 5, "currency": "KWD" });
    let quote: Quote = fixture.create(body).unwrap();
    let finer: Quote = fixture.update(quote.id, json!({ "total": 1.234 })).unwrap();
    assert_eq!(finer.total.to_string(), "1.234");
    assert_eq!(refusal(fixture.update::<Quote>(quote.id, json!({ "total": 1.2345 }))), "total out_of_range");
    fixture.new_events();
    assert_eq!(fixture.update(quote.id, json!({ "total": 1.234, "status": "draft" })), Ok(finer));
    assert_eq!(fixture.new_kinds(), "", "the same total in other digits is no change");
}

#[test]
fn every_change_of_status_is_allowed() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    for from in QuoteStatus::ALL.iter().copied() {
        for to in QuoteStatus::ALL.iter().copied() {
            let quote: Quote = fixture.create(json!({ "contact_id": contact, "total": 1 })).unwrap();
            fixture.update::<Quote>(quote.id, json!({ "status": from })).unwrap();
            fixture.new_events();
            let changed: Quote = fixture.update(quote.id, json!({ "status": to, "total": 1 })).unwrap();
            assert_eq!(changed.status, to);
            let want = match to {
                _ if to == from => "",
                QuoteStatus::Accepted => "quote.accepted quote.updated",
                QuoteStatus::Declined => "quote.declined quote.updated",
                _ => "quote.updated",
            };
            assert_eq!(fixture.new_kinds(), want, "{from} to {to}");
        }
    }
}

#[test]
fn accepting_an_accepted_quote_fires_no_event() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    for status in ["accepted", "declined"] {
        let quote: Quote = fixture.create(json!({ "contact_id": contact, "total": 1 })).unwrap();
        fixture.update::<Quote>(quote.id, json!({ "status": status })).unwrap();
        fixture.new_events();
        fixture.update::<Quote>(quote.id, json!({ "status": status, "total": 2 })).unwrap();
        assert_eq!(fixture.new_kinds(), "quote.updated");
    }
}

#[test]
fn a_refused_quote_takes_no_number() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let number = |total: f64| {
        fixture.create::<Quote>(json!({ "contact_id": contact, "total": total })).map(|quote| quote.quote_number)
    };
    assert_eq!(number(1.0), Ok("QUO-0001".to_owned()));
    assert_eq!(refusal(number(0.001)), "total out_of_range");
    assert_eq!(
        refusal(fixture.create::<Quote>(json!({ "contact_id": fixture.tenant, "total": 1 }))),
        "reference_not_found"
    );
    assert_eq!(number(2.0), Ok("QUO-0002".to_owned()));
    assert_eq!(fixture.new_kinds(), "quote.created quote.created");
}

#[test]
fn only_a_sent_quote_can_be_accepted_or_declined() {
    type Decision = for<'t> fn(&'t mut dyn Tx, TenantId, QuoteId) -> BoxFuture<'t, Result<Quote, Error>>;
    let decisions: [(Decision, &str, QuoteStatus); 2] = [
        (
            |tx, tenant, id| Box::pin(quotes::accept(tx, tenant, id)),
            "quote.accepted quote.updated",
            QuoteStatus::Accepted,
        ),
        (
            |tx, tenant, id| Box::pin(quotes::decline(tx, tenant, id)),
            "quote.declined quote.updated",
            QuoteStatus::Declined,
        ),
    ];
    for (decide, kinds, to) in decisions {
        for from in QuoteStatus::ALL.iter().copied() {
            let fixture = Rules::new();
            let (contact, tenant) = (fixture.contact(), fixture.tenant);
            let quote: Quote = fixture.create(json!({ "contact_id": contact, "total": 1 })).unwrap();
            let before = fixture.update::<Quote>(quote.id, json!({ "status": from })).unwrap();
            fixture.new_events();
            let result = fixture
                .write((decide, tenant, before.id), async |tx, &(decide, tenant, id)| decide(tx, tenant, id).await);
            if matches!(from, QuoteStatus::Sent | QuoteStatus::Viewed) {
                assert_eq!(result.unwrap().status, to);
                assert_eq!(fixture.new_kinds(), kinds);
            } else {
                let text = format!("QUO-0001 is {from}; it cannot be {to}.");
                assert_eq!(result, Err(Error::NotAllowed(text)));
                assert_eq!((fixture.get(quote.id), fixture.new_kinds()), (Ok(before), String::new()));
            }
            let unknown =
                fixture.write((decide, tenant), async |tx, &(decide, tenant)| decide(tx, tenant, Id::nil()).await);
            assert_eq!(unknown, Err(Error::NotFound));
        }
    }
}

#[test]
fn a_quote_can_be_accepted_until_the_end_of_its_last_day() {
    // In Sydney it is 2026-03-15.
    let fixture = Rules::in_zone("Australia/Sydney", "AUD");
    let (contact, tenant) = (fixture.contact(), fixture.tenant);
    let sent = |until: &str| {
        let body = json!({ "contact_id": contact, "total": 1, "valid_until": until });
        let quote: Quote = fixture.create(body).unwrap();
        fixture.update::<Quote>(quote.id, json!({ "status": "sent" })).unwrap().id
    };
    let (late, last_day) = (sent("2026-03-14"), sent("2026-03-15"));
    let refused = fixture.write((tenant, late), async |tx, &(tenant, late)| quotes::accept(tx, tenant, late).await);
    assert_eq!(refused, Err(Error::NotAllowed("QUO-0001 held until 2026-03-14; it cannot be accepted.".to_owned())));
    assert!(fixture.write((tenant, late), async |tx, &(tenant, late)| quotes::decline(tx, tenant, late).await).is_ok());
    assert!(
        fixture
            .write((tenant, last_day), async |tx, &(tenant, last_day)| quotes::accept(tx, tenant, last_day).await)
            .is_ok()
    );
}
