use super::harness::{Session, UNKNOWN_ID};

#[test]
fn output_for_people() {
    let mut session = Session::new();
    session.run(&["account", "list"]);
    let sydney = session.account();
    let osaka = session.id(&["account", "create", "--name", "港湾配管", "--currency", "JPY", "--pending"]);
    session
        .run(&["account", "create", "--name", "  Zoë & Sons ", "--time-zone", "Australia/Sydney"])
        .run(&["account", "list"])
        .run(&["account", "list", "--limit", "1"])
        .run(&["account", "list", "--limit", "2", "--after", &sydney])
        .run(&["account", "show", &osaka])
        .run(&["account", "approve", &osaka])
        .run(&["account", "suspend", &sydney])
        .run(&["account", "set", &sydney, "--name", "Harbour Pipes", "--time-zone", "Pacific/Auckland"])
        .run(&["account", "set", &sydney, "--currency", "NZD", "--unique-contact-email", "false"])
        .run(&["account", "set", &sydney, "--rate-limit", "600", "--write-rate-limit", "quotes=5,contacts=300"])
        .run(&["account", "set", &sydney, "--rate-limit", "default", "--write-rate-limit", "quotes=default"])
        .run(&["account", "set", &sydney, "--address", "1 Quay Street\nSydney", "--tax-number", "ABN 51 824 753 556"])
        .run(&[
            "account",
            "set",
            &sydney,
            "--days-until-due",
            "14",
            "--payment-details",
            "BSB 062-000\nAccount 1234 5678",
        ])
        .run(&["account", "set", &sydney, "--address", "", "--tax-number", " "])
        .run(&["account", "set", &sydney, "--days-until-due", "none", "--payment-details", ""])
        .run(&["account", "set", &sydney, "--max-webhooks", "500"])
        .run(&["account", "set", &sydney, "--max-webhooks", "default"])
        .run(&["account", "list"])
        .assert("account");
}

#[test]
fn output_for_programs() {
    let mut session = Session::new();
    session.run(&["account", "list", "--json"]);
    let id = session.account();
    session
        .run(&["account", "create", "--json", "--name", "Zoë & Sons", "--time-zone", "Australia/Sydney", "--pending"])
        .run(&["account", "show", &id, "--json"])
        .run(&["account", "approve", &id, "--json"])
        .run(&["account", "suspend", &id, "--json"])
        .run(&["account", "set", &id, "--unique-contact-email", "false", "--json"])
        .run(&["account", "set", &id, "--rate-limit", "600", "--write-rate-limit", "quotes=5", "--json"])
        .run(&["account", "show", &id, "--json"])
        .run(&["account", "list", "--json"])
        .assert("account_json");
}

#[test]
fn invalid_commands_are_refused() {
    let mut session = Session::new();
    let long = "x".repeat(301);
    session
        .run(&["account", "create"])
        .run(&["account", "create", "--name", " "])
        .run(&["account", "create", "--name", "a\u{7}b"])
        .run(&["account", "create", "--name", "Ada", "--currency", "aud"])
        .run(&["account", "create", "--name", "Ada", "--currency", "DEM"])
        .run(&["account", "create", "--name", "Ada", "--time-zone", "Sydney"])
        .run(&["account", "show", "1"])
        .run(&["account", "show", UNKNOWN_ID])
        .run(&["account", "approve", UNKNOWN_ID, "--json"])
        .run(&["account", "suspend", UNKNOWN_ID])
        .run(&["account", "set", UNKNOWN_ID])
        .run(&["account", "set", UNKNOWN_ID, "--name", "Ada"])
        .run(&["account", "set", UNKNOWN_ID, "--unique-contact-email", "maybe"])
        .run(&["account", "set", UNKNOWN_ID, "--rate-limit", "0"])
        .run(&["account", "set", UNKNOWN_ID, "--rate-limit", "-1"])
        .run(&["account", "set", UNKNOWN_ID, "--tax-number", "a\nb"])
        .run(&["account", "set", UNKNOWN_ID, "--days-until-due", "366"])
        .run(&["account", "set", UNKNOWN_ID, "--max-webhooks", "0"])
        .run(&["account", "set", UNKNOWN_ID, "--max-webhooks", "1001"])
        .run(&["account", "set", UNKNOWN_ID, "--write-rate-limit", "invoices=5"])
        .run(&["account", "set", UNKNOWN_ID, "--write-rate-limit", "quotes=0"])
        .run(&["account", "set", UNKNOWN_ID, "--write-rate-limit", "quotes"]);
    assert_eq!(session.output(&["account", "create", "--name", &long]).status.code(), Some(2));
    session.assert("account_refused");
}

#[test]
fn an_account_has_a_sandbox() {
    let mut session = Session::new();
    let account = session.account();
    let sandbox = ["account", "sandbox", &account];
    session
        .run(&["account", "sandbox", &account, "--reset"])
        .run(&["account", "sandbox", &account, "--delete"])
        .run(&["account", "sandbox", &account, "--reset", "--delete"])
        .run(&["account", "sandbox", UNKNOWN_ID])
        .run(&sandbox)
        .run(&sandbox);
    let id = session.json(&["account", "show", &account])["sandbox_id"].as_str().unwrap().to_owned();
    assert_eq!(session.json(&["account", "show", &id])["sandbox_of"], *account);
    session
        .run(&["account", "list"])
        .run(&["account", "list", "--sandboxes"])
        .run(&["account", "show", &account])
        .run(&["account", "show", "harbour plumbing (sandbox)"])
        .run(&["account", "sandbox", &id])
        .run(&["account", "suspend", &id])
        .run(&["member", "add", "--account", &id, "--email", "ada@example.com", "--role", "owner"])
        .run(&["contact", "list", "--account", &id])
        .run(&["invoice", "list", "--account", &id])
        .run(&["contact", "list"])
        .run(&["key", "create", "--account", &id, "--scopes", "read"])
        .run(&["webhook", "create", "--account", &id, "--url", "https://example.com/hook", "--events", "*"])
        .run(&["contact", "create", "--account", &id, "--email", "eve@example.com"])
        .run(&["account", "sandbox", &account, "--reset"]);
    let of = |list: &str| session.json(&[list, "list", "--account", &id]).as_array().unwrap().len();
    assert_eq!((of("contact"), of("invoice"), of("quote"), of("booking"), of("job")), (3, 4, 3, 3, 3));
    assert_eq!((of("webhook"), of("key")), (1, 2), "keys and webhooks stay");
    session
        .run(&["account", "sandbox", &account, "--delete"])
        .run(&["account", "show", &id])
        .run(&["account", "list", "--sandboxes"])
        .assert("account_sandbox");
}

#[test]
fn the_sandbox_of_an_account_for_programs() {
    let mut session = Session::new();
    let account = session.account();
    session
        .run(&["account", "sandbox", &account, "--json"])
        .run(&["account", "sandbox", &account, "--json"])
        .run(&["account", "sandbox", &account, "--reset", "--json"])
        .run(&["account", "sandbox", &account, "--delete", "--json"])
        .assert("account_sandbox_json");
}

#[test]
fn tenant_is_an_alias_of_the_command_and_of_the_option() {
    let mut session = Session::new();
    let id = session.id(&["tenant", "create", "--name", "Harbour Plumbing"]);
    session.account();
    assert_eq!(session.json(&["tenant", "show", &id]), session.json(&["account", "show", &id]));
    session
        .run(&["tenant", "list"])
        .run(&["tenant", "set", &id, "--currency", "NZD"])
        .run(&["key", "list", "--tenant", &id])
        .run(&["invoice", "overdue", "--tenant", &id])
        .run(&["db", "repair-clock", "--tenant", &id])
        .run(&["tenant", "lst"])
        .assert("tenant_alias");
}
