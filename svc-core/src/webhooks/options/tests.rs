use serde_json::json;

use super::*;
use crate::input::json;
use crate::values::Stored;

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
        r#"{"X_SVC_Signature":"a"}"#,
        r#"{"Webhook_Id":"a"}"#,
        r#"{"X.SVC-Event":"a"}"#,
        r#"{"User_Agent":"a"}"#,
        r#"{"Accept":"a"}"#,
        r#"{"X-Team":"a","X_Team":"b"}"#,
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
    assert_eq!(Stored::from_stored(&oauth.to_sent()), Some(oauth.clone()));
    assert_eq!(oauth.authorization(), None);
    let debug = format!(
        "{headers:?} {basic:?} {bearer:?} {oauth:?} {:?} {:?}",
        Unredacted(basic.clone()),
        oauth.client_credentials()
    );
    for secret in ["ledger", "Key 1", "pass word", "t0ken", "s3cret"] {
        assert!(!shown.contains(secret) && !debug.contains(secret), "{secret}: {shown} {debug}");
    }
    assert_eq!(Stored::from_stored(&headers.to_sent()), Some(headers.clone()));
    assert_eq!(Stored::from_stored(&basic.to_sent()), Some(basic.clone()));
    assert_eq!(serde_json::to_string(&Unredacted(headers)).unwrap(), r#"{"x-team":"ledger","authorization":"Key 1"}"#);
    assert_eq!(basic.authorization().unwrap().reveal(), "Basic c3ZjOnBhc3Mgd29yZA==");
    assert_eq!(bearer.authorization().unwrap().reveal(), "Bearer t0ken");
    let read: Authentication = serde_json::from_str(r#"{"type":"basic","username":"svc"}"#).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), r#"{"type":"basic","username":"svc"}"#);
}

/// A value that an earlier version took is read for as long as it is stored, or the subscription could not be read.
#[test]
fn headers_that_are_stored_are_read_by_the_rules_of_their_time() {
    let stored = Secret::new(r#"{"x_svc_signature":"a","x-team":"b","x_team":"c"}"#);
    assert!(parse::<CustomHeaders>(stored.reveal()).is_err());
    let read = CustomHeaders::from_stored(&stored).unwrap();
    assert_eq!(read.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["x_svc_signature", "x-team", "x_team"]);
    assert_eq!(read.to_stored().reveal(), r#"{"x_svc_signature":"a","x-team":"b","x_team":"c"}"#);
    assert_eq!(CustomHeaders::from_stored(&Secret::new("[]")), None);
}

#[test]
fn numbers_have_bounds() {
    assert_eq!(parse::<TimeoutSeconds>("30").unwrap().duration(), Duration::from_secs(30));
    assert_eq!(parse::<TimeoutSeconds>("0"), Err("must be from 1 to 30".to_owned()));
    assert_eq!(parse::<PerSecond>("1001"), Err("must be from 1 to 1000".to_owned()));
    assert_eq!(parse::<AttemptsInFlight>("99999999999"), Err("must be from 1 to 64".to_owned()));
    assert_eq!(parse::<PerSecond>("0.5"), Err("must be a whole number that is not negative".to_owned()));
    assert_eq!(parse::<PerSecond>("-1"), Err("must be a whole number that is not negative".to_owned()));
    assert_eq!(parse::<PerSecond>("\"5\""), Err("must be a number, without quotes".to_owned()));
    assert_eq!(parse::<RetryDelays>("[]").unwrap().schedule().delay(1, 0, None), None);
    assert_eq!(parse::<RetryDelays>("[60,59]"), Err("1 must be from 60 to 14400 seconds".to_owned()));
    assert_eq!(parse::<RetryDelays>("[60,60,60,60,60,60]"), Err("must have at most 5 delays".to_owned()));
    assert_eq!(parse::<RetryDelays>("\"1m\""), Err("must be an array".to_owned()));
}

/// A section of PEM. The server checks its content.
fn section(label: &str, base64: &str) -> String {
    format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n")
}

fn sent(certificate: &str, private_key: &str) -> String {
    json!({ "certificate": certificate, "private_key": private_key }).to_string()
}

#[test]
fn certificates_are_kept_without_what_is_around_them() {
    let chain = format!("subject=svc\r\n{}\n\n{}", section("CERTIFICATE", "MAA="), section("CERTIFICATE", "MAAA"));
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"] {
        let key = format!("{}{}", section("EC PARAMETERS", "MAA="), section(label, "MAAw"));
        let certificate: ClientCertificate = parse(&sent(&chain, &key)).unwrap();
        let both = section("CERTIFICATE", "MAA=") + &section("CERTIFICATE", "MAAA");
        assert_eq!(certificate.certificate(), both);
        assert_eq!(certificate.private_key().reveal(), section(label, "MAAw"));
        // SHA-256 of 30 00.
        assert_eq!(certificate.sha256(), "e4f60d0aa6d7f3d3b6a6494b1c861b99f649c6f9ec51abaf201b20f297327c95");
        let stored = certificate.to_sent();
        assert_eq!(Stored::from_stored(&stored), Some(certificate.clone()), "it is stored as it was sent");
        let shown = serde_json::to_string(&certificate).unwrap();
        assert_eq!(shown, format!(r#"{{"sha256":"{}"}}"#, certificate.sha256()));
        let read: ClientCertificate = serde_json::from_str(&shown).unwrap();
        assert_eq!((read.sha256(), read.certificate()), (certificate.sha256(), ""));
        assert!(!format!("{certificate:?}").contains("MAAw"), "{certificate:?}");
        let authority = CertificateAuthority::new(&chain).unwrap();
        assert_eq!((authority.certificates(), authority.sha256().len()), (both.as_str(), 2));
        assert_eq!(Stored::from_stored(&authority.to_sent()), Some(authority.clone()));
        assert_eq!(serde_json::to_value(&authority).unwrap(), json!({ "sha256": authority.sha256() }));
    }
}

#[test]
fn certificates_that_are_refused_say_why() {
    let (certificate, key) = (section("CERTIFICATE", "MAA="), section("PRIVATE KEY", "MAAw"));
    let encrypted = section("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nMAAw");
    let cases: Vec<(&str, String)> = vec![
        ("no object", "\"pem\"".to_owned()),
        ("no key", json!({ "certificate": certificate }).to_string()),
        ("no certificate", json!({ "private_key": key }).to_string()),
        ("another member", json!({ "certificate": certificate, "private_key": key, "passphrase": "a" }).to_string()),
        ("a number", json!({ "certificate": 1, "private_key": key }).to_string()),
        ("an empty text", sent("", &key)),
        ("no PEM", sent("MAA=", &key)),
        ("no PEM of the key", sent(&certificate, "MAAw")),
        ("no end", sent("-----BEGIN CERTIFICATE-----\nMAA=\n", &key)),
        ("one line", sent(&certificate, &key.replace('\n', " "))),
        ("one line without dashes", sent(&certificate, "-----BEGIN PRIVATE KEY-----MAAw")),
        ("no base64", sent(&section("CERTIFICATE", "M?A="), &key)),
        ("an empty certificate", sent(&section("CERTIFICATE", ""), &key)),
        ("an empty key", sent(&certificate, &section("PRIVATE KEY", ""))),
        ("both in the certificate", sent(&format!("{certificate}{key}"), &key)),
        ("both in the key", sent(&certificate, &format!("{certificate}{key}"))),
        ("two keys", sent(&certificate, &key.repeat(2))),
        ("a public key", sent(&certificate, &section("PUBLIC KEY", "MAAw"))),
        ("an encrypted key", sent(&certificate, &section("ENCRYPTED PRIVATE KEY", "MAAw"))),
        ("a key that OpenSSL encrypted", sent(&certificate, &encrypted)),
        ("too long a chain", sent(&certificate.repeat(1200), &key)),
        ("too long a key", sent(&certificate, &section("PRIVATE KEY", &"AAAA\n".repeat(4000)))),
    ];
    let refused: Vec<String> = cases
        .iter()
        .map(|(case, text)| {
            let reason = parse::<ClientCertificate>(text).expect_err(case);
            assert!(!reason.contains("MAAw"), "{reason}");
            format!("{case}\n  {reason}")
        })
        .collect();
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn authorities_are_certificates_alone() {
    let certificate = section("CERTIFICATE", "MAA=");
    for (text, reason) in [
        ("", "must be PEM with its line breaks: it has no line -----BEGIN CERTIFICATE-----"),
        (&section("PRIVATE KEY", "MAAw"), "must have certificates alone, and has something else"),
        (
            &format!("{certificate}{}", section("ENCRYPTED PRIVATE KEY", "MAAw")),
            "must have certificates alone, and has something else",
        ),
        (&section("X509 CRL", "MAAw"), "must have certificates alone, and has something else"),
        (&certificate.repeat(1200), "must have at most 65536 bytes"),
    ] {
        let refused = CertificateAuthority::new(text).map_err(|issue| issue.message.into_owned());
        assert_eq!(refused, Err(reason.to_owned()));
    }
}

proptest::proptest! {
    /// Hostile PEM is refused or read, and what was read is read again.
    #[test]
    fn any_text_is_refused_or_read(
        parts in proptest::collection::vec(
            proptest::prop_oneof![
                proptest::strategy::Just("-----BEGIN CERTIFICATE-----".to_owned()),
                proptest::strategy::Just("-----END CERTIFICATE-----".to_owned()),
                proptest::strategy::Just("-----BEGIN EC PRIVATE KEY-----".to_owned()),
                proptest::strategy::Just("-----END EC PRIVATE KEY-----".to_owned()),
                proptest::strategy::Just("\n".to_owned()),
                proptest::strategy::Just("MAAw".to_owned()),
                ".*",
            ],
            0..16,
        ),
        key in ".*",
    ) {
        let text = parts.concat();
        if let Ok(authority) = CertificateAuthority::new(&text) {
            proptest::prop_assert_eq!(CertificateAuthority::new(authority.certificates()), Ok(authority));
        }
        for key in [&key, &text] {
            if let Ok(certificate) = ClientCertificate::new(&section("CERTIFICATE", "MAA="), key) {
                let again = ClientCertificate::new(certificate.certificate(), certificate.private_key().reveal());
                proptest::prop_assert_eq!(again, Ok(certificate));
            }
        }
    }
}

/// The fixtures are self-signed certificates that OpenSSL made: `openssl req -x509 -newkey … -nodes -subj /CN=x -days 36500`.
#[test]
fn an_authority_whose_key_can_verify_nothing_is_refused() {
    let of = |name: &str| std::fs::read_to_string(format!("../fixtures/authorities/{name}.pem")).unwrap();
    for name in ["p256", "p384", "ed25519", "rsa2048", "rsa4096"] {
        CertificateAuthority::new(&of(name)).unwrap_or_else(|issue| panic!("{name}: {issue:?}"));
    }
    let reason = "must have authorities whose keys can verify a certificate: ECDSA on P-256 or P-384, RSA of 2048 to 8192 bits, and \
                  Ed25519";
    for name in ["p521", "secp256k1", "ed448", "rsa1024", "rsa2047", "rsa-pss"] {
        for text in [of(name), of("p256") + &of(name)] {
            let refused = CertificateAuthority::new(&text).map_err(|issue| issue.message.into_owned());
            assert_eq!(refused, Err(reason.to_owned()), "{name}");
            // What was stored before is read as it is: it fails its attempts, as it did.
            let stored = Secret::new(json!(text).to_string());
            assert!(CertificateAuthority::from_stored(&stored).is_some(), "{name}");
        }
    }
}
