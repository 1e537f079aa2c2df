use super::*;
use crate::input::json;

fn parse<T: FromJson>(text: &str) -> Result<T, String> {
    T::from_json(json::parse(text.as_bytes()).unwrap()).map_err(|issue| match issue.path {
        Some(path) => format!("{path} {}", issue.message),
        None => issue.message.into_owned(),
    })
}

#[test]
fn headers_that_are_refused_say_why() {
    let many: Vec<String> = (0..21).map(|number| format!("\"x-{number}\":\"a\"")).collect();
    let texts = [
        "[]",
        "\"X-Team: ledger\"",
        r#"{"X-Team":1}"#,
        r#"{"X-Team":null}"#,
        r#"{"":"a"}"#,
        r#"{"X Team":"a"}"#,
        r#"{"X-Täm":"a"}"#,
        r#"{"X-Team":""}"#,
        r#"{"X-Team":" a"}"#,
        r#"{"X-Team":"a\r\nX-Other: b"}"#,
        r#"{"X-Team":"Zürich"}"#,
        r#"{"X-SVC-Signature":"a"}"#,
        r#"{"Webhook-Id":"a"}"#,
        r#"{"Content-Length":"3"}"#,
        r#"{"Host":"a"}"#,
        r#"{"Transfer-Encoding":"chunked"}"#,
        r#"{"X-Team":"a","x-team":"b"}"#,
        &format!("{{{}}}", many.join(",")),
        &format!(r#"{{"X-Team":"{}"}}"#, "a".repeat(4097)),
    ];
    let refused: Vec<String> = texts
        .iter()
        .map(|text| {
            let shown: String = text.chars().take(60).collect();
            format!("{shown}\n  {}", parse::<CustomHeaders>(text).expect_err(text))
        })
        .collect();
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn authentication_that_is_refused_says_why() {
    let texts = [
        "\"bearer\"",
        "{}",
        r#"{"type":"digest"}"#,
        r#"{"type":"bearer"}"#,
        r#"{"type":"bearer","token":""}"#,
        r#"{"type":"bearer","token":"a\nb"}"#,
        r#"{"type":"bearer","token":"a","username":"b"}"#,
        r#"{"type":"basic","username":"a"}"#,
        r#"{"type":"basic","username":"a:b","password":"c"}"#,
        r#"{"type":"basic","username":7,"password":"c"}"#,
        r#"{"type":"oauth2","token_url":"https://example.com/token","client_id":"a"}"#,
        r#"{"type":"oauth2","token_url":"example.com","client_id":"a","client_secret":"b"}"#,
        r#"{"type":"oauth2","token_url":"https://example.com/token","client_id":"a","client_secret":"b","scope":""}"#,
        r#"{"type":"oauth2","token_url":"https://example.com/token","client_id":"a","client_secret":"b","audience":"c"}"#,
    ];
    let refused: Vec<String> =
        texts.iter().map(|text| format!("{text}\n  {}", parse::<Authentication>(text).expect_err(text))).collect();
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn secrets_are_stored_and_sent_and_not_shown() {
    let headers: CustomHeaders = parse(r#"{"X-Team":"ledger","Authorization":"Key 1"}"#).unwrap();
    let basic: Authentication = parse(r#"{"type":"basic","username":"svc","password":"pass word"}"#).unwrap();
    let bearer: Authentication = parse(r#"{"type":"bearer","token":"t0ken"}"#).unwrap();
    let oauth: Authentication = parse(
        r#"{"type":"oauth2","token_url":"https://example.com/token","client_id":"svc","client_secret":"s3cret"}"#,
    )
    .unwrap();
    let shown = serde_json::to_string(&(&headers, &basic, &bearer, &oauth)).unwrap();
    assert_eq!(
        shown,
        concat!(
            r#"[["x-team","authorization"],{"type":"basic","username":"svc"},{"type":"bearer"},"#,
            r#"{"type":"oauth2","token_url":"https://example.com/token","client_id":"svc","scope":null}]"#
        )
    );
    assert_eq!(from_stored(oauth.to_sent().reveal()), Some(oauth.clone()));
    assert_eq!(oauth.authorization(), None);
    let debug = format!(
        "{headers:?} {basic:?} {bearer:?} {oauth:?} {:?} {:?}",
        Sent(basic.clone()),
        oauth.client_credentials()
    );
    for secret in ["ledger", "Key 1", "pass word", "t0ken", "s3cret"] {
        assert!(!shown.contains(secret) && !debug.contains(secret), "{secret}: {shown} {debug}");
    }
    assert_eq!(from_stored(headers.to_sent().reveal()), Some(headers.clone()));
    assert_eq!(from_stored(basic.to_sent().reveal()), Some(basic.clone()));
    assert_eq!(serde_json::to_string(&Sent(headers)).unwrap(), r#"{"x-team":"ledger","authorization":"Key 1"}"#);
    assert_eq!(basic.authorization().unwrap().reveal(), "Basic c3ZjOnBhc3Mgd29yZA==");
    assert_eq!(bearer.authorization().unwrap().reveal(), "Bearer t0ken");
    let read: Authentication = serde_json::from_str(r#"{"type":"basic","username":"svc"}"#).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), r#"{"type":"basic","username":"svc"}"#);
}

#[test]
fn numbers_have_bounds() {
    assert_eq!(parse::<TimeoutSeconds>("30").unwrap().duration(), Duration::from_secs(30));
    assert_eq!(parse::<TimeoutSeconds>("0"), Err("must be from 1 to 30".to_owned()));
    assert_eq!(parse::<PerSecond>("1001"), Err("must be from 1 to 1000".to_owned()));
    assert_eq!(parse::<AttemptsInFlight>("99999999999"), Err("must be from 1 to 64".to_owned()));
    assert_eq!(parse::<PerSecond>("0.5"), Err("must be a whole number that is not negative".to_owned()));
    assert_eq!(parse::<PerSecond>("-1"), Err("must be a whole number that is not negative".to_owned()));
    assert_eq!(parse::<PerSecond>("\"5\""), Err("must be a number".to_owned()));
    assert_eq!(parse::<RetryDelays>("[]").unwrap().schedule().delay(1, 0, None), None);
    assert_eq!(parse::<RetryDelays>("[60,59]"), Err("1 must be from 60 to 14400 seconds".to_owned()));
    assert_eq!(parse::<RetryDelays>("[60,60,60,60,60,60]"), Err("must have at most 5 delays".to_owned()));
    assert_eq!(parse::<RetryDelays>("\"1m\""), Err("must be an array".to_owned()));
}
