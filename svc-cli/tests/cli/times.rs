//! Times in the time zone of the account, as they are typed and shown.

use super::harness::Session;

fn in_sydney() -> (Session, String) {
    let session = Session::new();
    let account = session.id(&["account", "create", "--name", "Harbour Plumbing", "--time-zone", "Australia/Sydney"]);
    (session, account)
}

#[test]
fn times_are_those_of_the_account() {
    let (mut session, account) = in_sydney();
    let contact = session.contact(&account);
    let booking = |start| ["booking", "create", "--contact", &contact, "--service-name", "Service", "--start", start];
    let created = session.id(&booking("2099-03-14 09:00"));
    assert_eq!(session.json(&["booking", "show", &created])["start_time"], "2099-03-13T22:00:00.000000Z");
    for same in ["2099-03-14T09:00:00", "2099-03-14 09:00:00+11:00", "2099-03-13T22:00Z"] {
        assert_eq!(session.json(&booking(same))["start_time"], "2099-03-13T22:00:00.000000Z", "{same}");
    }
    let job = session.id(&["job", "create", "--title", "Boiler", "--scheduled-start", "2099-07-01 08:30"]);
    session
        .run(&["booking", "show", &created])
        .run(&["booking", "show", &created, "--utc"])
        .run(&["booking", "update", &created, "--start", "2099-03-14 10:00", "--end", "2099-03-14 09:00"])
        .run(&["booking", "update", &created, "--start", "2099-03-14 10:00", "--end", "2099-03-14 11:30", "--json"])
        .run(&["booking", "list", "--limit", "1"])
        .run(&["job", "show", &job])
        .run(&["job", "update", &job, "--scheduled-start", "", "--json"])
        .run(&["audit", "list", "--limit", "2"])
        .run(&["audit", "list", "--limit", "2", "--utc"]);
    let utc = session.json(&[&booking("2099-03-14 09:00")[..], &["--utc"]].concat());
    assert_eq!(utc["start_time"], "2099-03-14T09:00:00.000000Z");
    session.assert("times");
}

#[test]
fn a_time_that_clocks_show_twice_or_never_is_refused() {
    let (mut session, account) = in_sydney();
    let contact = session.contact(&account);
    let booking = |start| ["booking", "create", "--contact", &contact, "--service-name", "Service", "--start", start];
    session
        .run(&booking("2099-04-05 02:30"))
        .run(&booking("2099-10-04 02:30"))
        .run(&["contact", "list", "--updated-since", "2099-04-05 02:30"])
        .run(&booking("2099-04-05"));
    // Both times that the error names are taken.
    for (typed, want) in [
        ("2099-04-05T02:30:00+11:00", "2099-04-04T15:30:00.000000Z"),
        ("2099-04-05T02:30+10:00", "2099-04-04T16:30:00.000000Z"),
    ] {
        assert_eq!(session.json(&booking(typed))["start_time"], want);
    }
    let in_utc = session.json(&[&booking("2099-04-05 02:30")[..], &["--utc"]].concat());
    assert_eq!(in_utc["start_time"], "2099-04-05T02:30:00.000000Z");
    session.assert("times_refused");
}

#[test]
fn lists_take_times_and_dates_of_the_account() {
    let (session, _) = in_sydney();
    session.json(&["webhook", "create", "--url", "https://example.com/hook", "--events", "*"]);
    let since = |args: &[&str]| {
        let statistics = session.json(&[&["webhook", "stats", "--since"], args].concat());
        statistics[0]["since"].as_str().unwrap().to_owned()
    };
    assert_eq!(since(&["2026-03-15 09:30"]), "2026-03-14T22:30:00.000000Z");
    assert_eq!(since(&["2026-03-15 09:30", "--utc"]), "2026-03-15T09:30:00.000000Z");
    assert_eq!(since(&["2026-03-15"]), "2026-03-14T13:00:00.000000Z");
    assert_eq!(since(&["2026-03-15", "--utc"]), "2026-03-15T00:00:00.000000Z");
}
