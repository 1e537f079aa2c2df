//! Jobs: timestamps of the start and end of work, the copy of the customer, and schedules.

use serde_json::json;
use svc_core::resources::contacts::Contact;
use svc_core::resources::jobs::{Job, JobStatus};

use super::{Rules, json_of, refusal, time};

#[test]
fn a_new_job_has_every_field() {
    let fixture = Rules::new();
    let job: Job = fixture.create(json!({ "title": " Pump ", "estimated_total": 12.5, "priority": "" })).unwrap();
    let now = "2026-03-14T15:09:26.535898Z";
    assert_eq!(
        json_of(&job),
        json!({
            "id": job.id, "job_number": "JOB-0001", "title": "Pump", "status": "quoted", "job_type": null,
            "priority": null, "contact_id": null, "customer_name": null, "customer_email": null,
            "customer_phone": null, "site_address": null, "site_suburb": null, "site_state": null,
            "site_postcode": null, "scheduled_start": null, "scheduled_end": null, "actual_start": null,
            "actual_end": null, "estimated_total": 12.5, "actual_total": null, "quote_id": null,
            "invoice_id": null, "created_at": now, "updated_at": now,
        })
    );
    assert_eq!(fixture.new_kinds(), "job.created");
}

#[test]
fn the_customer_is_copied_when_the_job_is_created() {
    let fixture = Rules::new();
    for (number, (first, last, company, want)) in [
        (Some("Ada"), Some("Lovelace"), Some("Engines"), Some("Ada Lovelace")),
        (Some("Ada"), None, Some("Engines"), Some("Ada")),
        (None, Some("Lovelace"), None, Some("Lovelace")),
        (None, None, Some("Engines"), Some("Engines")),
        (None, None, None, None),
    ]
    .into_iter()
    .enumerate()
    {
        let email = format!("Ada{number}@example.com");
        let body =
            json!({ "email": email, "first_name": first, "last_name": last, "company_name": company, "phone": "1" });
        let contact: Contact = fixture.create(body).unwrap();
        let job: Job = fixture.create(json!({ "title": "x", "contact_id": contact.id })).unwrap();
        assert_eq!(job.customer_name.as_deref(), want);
        assert_eq!(job.customer_email.as_ref().unwrap().as_str(), email);
        assert_eq!(job.customer_phone.as_ref().unwrap().as_str(), "1");
        let body = json!({ "email": null, "first_name": "Eve", "phone": "2" });
        fixture.update::<Contact>(contact.id, body).unwrap();
        fixture.delete::<Contact>(contact.id).unwrap();
        let changed: Job = fixture.update(job.id, json!({ "priority": "high" })).unwrap();
        assert_eq!((changed.contact_id, changed.customer_name), (job.contact_id, job.customer_name));
        assert_eq!((changed.customer_email, changed.customer_phone), (job.customer_email, job.customer_phone));
    }
}

#[test]
fn start_and_end_are_recorded_the_first_time() {
    let fixture = Rules::new();
    let job: Job = fixture.create(json!({ "title": "x" })).unwrap();
    let mut stamps = (None, None);
    for (status, at) in [
        ("scheduled", "2026-03-15T00:00:01Z"),
        ("in_progress", "2026-03-15T00:00:02Z"),
        ("on_hold", "2026-03-15T00:00:03Z"),
        ("in_progress", "2026-03-15T00:00:04Z"),
        ("completed", "2026-03-15T00:00:05Z"),
        ("in_progress", "2026-03-15T00:00:06Z"),
        ("completed", "2026-03-15T00:00:07Z"),
        ("invoiced", "2026-03-15T00:00:08Z"),
        ("quoted", "2026-03-15T00:00:09Z"),
        ("cancelled", "2026-03-15T00:00:10Z"),
    ] {
        fixture.clock.set(time(at));
        let changed: Job = fixture.update(job.id, json!({ "status": status })).unwrap();
        match status {
            "in_progress" => stamps.0 = stamps.0.or(Some(time("2026-03-15T00:00:02Z"))),
            "completed" => stamps.1 = stamps.1.or(Some(time("2026-03-15T00:00:05Z"))),
            _ => {}
        }
        assert_eq!((changed.actual_start, changed.actual_end), stamps, "{status}");
        assert_eq!((changed.status.as_str(), changed.updated_at), (status, time(at)));
    }
    assert!(stamps.0.is_some() && stamps.1.is_some());
}

#[test]
fn a_job_can_be_created_in_any_status() {
    for (status, events, started, ended) in [
        ("quoted", "job.created", false, false),
        ("scheduled", "job.created job.scheduled", false, false),
        ("in_progress", "job.created", true, false),
        ("on_hold", "job.created", false, false),
        ("completed", "job.created job.completed", false, true),
        ("invoiced", "job.created", false, false),
        ("cancelled", "job.created", false, false),
    ] {
        let fixture = Rules::new();
        let job: Job = fixture.create(json!({ "title": "x", "status": status })).unwrap();
        assert_eq!(job.status.as_str(), status);
        assert_eq!(job.actual_start, started.then_some(job.created_at), "{status}");
        assert_eq!(job.actual_end, ended.then_some(job.created_at), "{status}");
        let fired = fixture.new_events();
        let kinds: Vec<&str> = fired.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds.join(" "), events);
        assert!(fired.iter().all(|event| event.data.get() == serde_json::to_string(&job).unwrap()));
        assert_eq!(fired[0].created_at, job.created_at);
        assert!(fired.is_sorted_by(|a, b| a.created_at < b.created_at));
    }
}

#[test]
fn every_change_of_status_is_allowed() {
    let fixture = Rules::new();
    for from in JobStatus::ALL.iter().copied() {
        for to in JobStatus::ALL.iter().copied() {
            let job: Job = fixture.create(json!({ "title": "x", "status": from })).unwrap();
            fixture.new_events();
            let changed: Job = fixture.update(job.id, json!({ "status": to })).unwrap();
            assert_eq!(changed.status, to);
            let want = match to {
                _ if to == from => "",
                JobStatus::Scheduled => "job.scheduled job.updated",
                JobStatus::Completed => "job.completed job.updated",
                _ => "job.updated",
            };
            assert_eq!(fixture.new_kinds(), want, "{from} to {to}");
        }
    }
}

#[test]
fn completing_a_completed_job_fires_no_event() {
    let fixture = Rules::new();
    for status in ["scheduled", "completed"] {
        let job: Job = fixture.create(json!({ "title": "x", "status": status })).unwrap();
        fixture.new_events();
        fixture.update::<Job>(job.id, json!({ "status": status, "priority": "high" })).unwrap();
        assert_eq!(fixture.new_kinds(), "job.updated");
    }
}

#[test]
fn a_schedule_must_not_end_before_its_start() {
    let fixture = Rules::new();
    let (early, late) = ("2026-04-01T08:00:00Z", "2026-04-01T09:00:00Z");
    let schedule = |start: Option<&str>, end: Option<&str>| {
        fixture.create::<Job>(json!({ "title": "x", "scheduled_start": start, "scheduled_end": end }))
    };
    for (start, end) in [(None, None), (Some(early), None), (None, Some(early)), (Some(early), Some(early))] {
        assert!(schedule(start, end).is_ok(), "{start:?} {end:?}");
    }
    assert_eq!(refusal(schedule(Some(late), Some(early))), "scheduled_end out_of_range");
    assert_eq!(schedule(Some(early), Some(late)).unwrap().job_number, "JOB-0005", "a refused job takes no number");

    let job = schedule(Some(early), Some(late)).unwrap();
    let change = |body| fixture.update::<Job>(job.id, body);
    assert_eq!(refusal(change(json!({ "scheduled_end": "2026-04-01T07:00:00Z" }))), "scheduled_end out_of_range");
    assert_eq!(refusal(change(json!({ "scheduled_start": "2026-04-01T10:00:00Z" }))), "scheduled_end out_of_range");
    let open = change(json!({ "scheduled_start": "2026-04-01T10:00:00Z", "scheduled_end": null })).unwrap();
    assert_eq!((open.scheduled_start, open.scheduled_end), (Some(time("2026-04-01T10:00:00Z")), None));
}

#[test]
fn totals_have_at_most_two_decimals() {
    let fixture = Rules::new();
    let job: Job = fixture.create(json!({ "title": "x", "estimated_total": 0 })).unwrap();
    assert_eq!(job.estimated_total.unwrap().to_string(), "0");
    for (body, want) in [
        (json!({ "estimated_total": 0.001 }), "estimated_total out_of_range"),
        (json!({ "actual_total": 0.305 }), "actual_total out_of_range"),
    ] {
        assert_eq!(refusal(fixture.update::<Job>(job.id, body)), want);
    }
    assert_eq!(
        refusal(fixture.create::<Job>(json!({ "title": "x", "estimated_total": 0.001 }))),
        "estimated_total out_of_range"
    );
    let priced: Job = fixture.update(job.id, json!({ "actual_total": 0.1 + 0.2, "estimated_total": null })).unwrap();
    assert_eq!((priced.actual_total.unwrap().to_string(), priced.estimated_total), ("0.3".to_owned(), None));
}
