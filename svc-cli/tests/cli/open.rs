use super::harness::{Session, UNKNOWN_ID, until};

#[test]
fn the_page_of_an_id_is_printed() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let invoice = session.id(&["invoice", "create", "--contact", &contact, "--total", "10"]);
    let webhook = session.id(&["webhook", "create", "--url", "https://example.com/hooks", "--events", "*"]);
    let key = session.id(&["key", "create", "--scopes", "read"]);
    let event = session.id(&["trigger", "invoice.paid"]);
    let delivery = session.json(&["delivery", "list", "--event", "invoice.paid"])[0]["id"].as_str().unwrap().to_owned();
    session.run(&["open"]).run(&["open", "--url", "https://api.example.com/", "--json"]);
    for id in [&contact, &invoice, &webhook, &key, &event, &delivery] {
        session.run(&["open", id]);
    }
    session.run(&["open", UNKNOWN_ID]).assert("open");
    let by_end = session.json(&["open", &invoice[24..]]);
    assert_eq!(by_end["url"], format!("http://127.0.0.1:8080/dashboard/invoices/{invoice}"));
}

#[test]
fn the_browser_gets_the_address() {
    let session = Session::new();
    session.account();
    session.file("browser", "#!/bin/sh\necho \"$1\" > opened.new && mv opened.new opened\n");
    let browser = session.folder().join("browser");
    std::fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = session.program(&["open", "--browser"]).env("BROWSER", &browser).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let opened =
        until("the browser", || session.files().contains(&"opened".to_owned()).then(|| session.read_file("opened")));
    assert!(opened.starts_with("http://127.0.0.1:8080/dashboard/sign-in?token="), "{opened}");
    let plain = session.json(&["open", "--no-sign-in"]);
    assert_eq!(plain["url"], "http://127.0.0.1:8080/dashboard");
    assert!(plain["sign_in_url"].is_null(), "{plain}");
    let output = session.program(&["open", "--browser"]).env("BROWSER", "./no-browser").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
