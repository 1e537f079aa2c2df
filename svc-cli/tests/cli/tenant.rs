use super::harness::{Session, UNKNOWN_ID};

#[test]
fn output_for_people() {
    let mut session = Session::new();
    session.run(&["tenant", "list"]);
    let sydney = session.tenant();
    let osaka = session.id(&["tenant", "create", "--name", "港湾配管", "--currency", "JPY", "--pending"]);
    session
        .run(&["tenant", "create", "--name", "  Zoë & Sons ", "--time-zone", "Australia/Sydney"])
        .run(&["tenant", "list"])
        .run(&["tenant", "list", "--limit", "1"])
        .run(&["tenant", "list", "--limit", "2", "--after", &sydney])
        .run(&["tenant", "show", &osaka])
        .run(&["tenant", "approve", &osaka])
        .run(&["tenant", "suspend", &sydney])
        .run(&["tenant", "set", &sydney, "--name", "Harbour Pipes", "--time-zone", "Pacific/Auckland"])
        .run(&["tenant", "set", &sydney, "--currency", "NZD", "--unique-contact-email", "false"])
        .run(&["tenant", "set", &sydney, "--rate-limit", "600", "--write-rate-limit", "quotes=5,contacts=300"])
        .run(&["tenant", "set", &sydney, "--rate-limit", "default", "--write-rate-limit", "quotes=default"])
        .run(&["tenant", "set", &sydney, "--max-webhooks", "500"])
        .run(&["tenant", "set", &sydney, "--max-webhooks", "default"])
        .run(&["tenant", "list"])
        .assert("tenant");
}

#[test]
fn output_for_programs() {
    let mut session = Session::new();
    session.run(&["tenant", "list", "--json"]);
    let id = session.tenant();
    session
        .run(&["tenant", "create", "--json", "--name", "Zoë & Sons", "--time-zone", "Australia/Sydney", "--pending"])
        .run(&["tenant", "show", &id, "--json"])
        .run(&["tenant", "approve", &id, "--json"])
        .run(&["tenant", "suspend", &id, "--json"])
        .run(&["tenant", "set", &id, "--unique-contact-email", "false", "--json"])
        .run(&["tenant", "set", &id, "--rate-limit", "600", "--write-rate-limit", "quotes=5", "--json"])
        .run(&["tenant", "show", &id, "--json"])
        .run(&["tenant", "list", "--json"])
        .assert("tenant_json");
}

#[test]
fn invalid_commands_are_refused() {
    let mut session = Session::new();
    let long = "x".repeat(301);
    session
        .run(&["tenant", "create"])
        .run(&["tenant", "create", "--name", " "])
        .run(&["tenant", "create", "--name", "a\u{7}b"])
        .run(&["tenant", "create", "--name", "Ada", "--currency", "aud"])
        .run(&["tenant", "create", "--name", "Ada", "--currency", "DEM"])
        .run(&["tenant", "create", "--name", "Ada", "--time-zone", "Sydney"])
        .run(&["tenant", "show", "1"])
        .run(&["tenant", "show", UNKNOWN_ID])
        .run(&["tenant", "approve", UNKNOWN_ID, "--json"])
        .run(&["tenant", "suspend", UNKNOWN_ID])
        .run(&["tenant", "set", UNKNOWN_ID])
        .run(&["tenant", "set", UNKNOWN_ID, "--name", "Ada"])
        .run(&["tenant", "set", UNKNOWN_ID, "--unique-contact-email", "maybe"])
        .run(&["tenant", "set", UNKNOWN_ID, "--rate-limit", "0"])
        .run(&["tenant", "set", UNKNOWN_ID, "--rate-limit", "-1"])
        .run(&["tenant", "set", UNKNOWN_ID, "--max-webhooks", "0"])
        .run(&["tenant", "set", UNKNOWN_ID, "--max-webhooks", "1001"])
        .run(&["tenant", "set", UNKNOWN_ID, "--write-rate-limit", "invoices=5"])
        .run(&["tenant", "set", UNKNOWN_ID, "--write-rate-limit", "quotes=0"])
        .run(&["tenant", "set", UNKNOWN_ID, "--write-rate-limit", "quotes"]);
    assert_eq!(session.output(&["tenant", "create", "--name", &long]).status.code(), Some(2));
    session.assert("tenant_refused");
}
