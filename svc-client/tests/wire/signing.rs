//! Signatures of requests (docs/contract.md, "Request signing").

use svc_client::prelude::*;
use svc_client::svc_core::accounts::signing::SignedRequest;
use svc_client::svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_client::svc_core::values::{Secret, Timestamp};
use wiremock::ResponseTemplate;

use crate::fixture::{ID, builder, header, ok, problem, requests, serve};

const SECRET: &str = "svcsig_c3ZjIGV4YW1wbGUgc2VjcmV0LCBub3QgYSByZWFsIG9uZQ==";

#[tokio::test]
async fn what_changes_something_is_signed_and_each_attempt_anew() {
    let server = serve(vec![problem(503, "unavailable"), ok(201)]).await;
    let clock = ManualClock::at(Timestamp::parse("2026-03-14T15:09:26.535897Z").unwrap());
    let ticks = clock.clone();
    let client = Client::builder(&format!("{}/crm", server.uri()), "svc_live_x")
        .signing_secret(SECRET)
        .env(Env::new(clock, SeededEntropy::new(1)))
        .sleep(move |_| {
            ticks.advance(std::time::Duration::from_millis(1500));
            Box::pin(std::future::ready(()))
        })
        .build()
        .unwrap();
    let contacts = client.contacts();
    contacts.create(&ContactCreate::new("ada@example.com".parse().unwrap())).await.unwrap();
    let id = ID.parse().unwrap();
    contacts.update(id, &ContactUpdate { email: Patch::Set(None), ..Default::default() }).await.unwrap();
    contacts.delete(id).await.unwrap();

    let requests = requests(&server).await;
    let stamps: Vec<_> = requests.iter().map(|request| header(request, "x-svc-timestamp").unwrap()).collect();
    assert_eq!(stamps, ["1773500966.535897", "1773500968.035897", "1773500968.035898", "1773500968.035899"]);
    for request in &requests {
        let signed = SignedRequest {
            timestamp: header(request, "x-svc-timestamp").unwrap(),
            method: request.method.as_str(),
            path_and_query: request.url.path(),
            body: &request.body,
        };
        assert!(signed.path_and_query.starts_with("/crm/api/v1/contacts"));
        assert_eq!(header(request, "x-svc-signature"), Some(signed.sign(&Secret::new(SECRET)).as_str()));
    }
}

/// Both were signed by the wrong clock before a response could say so.
#[tokio::test]
async fn calls_in_flight_with_one_wrong_clock_are_all_signed_anew() {
    let refused = || problem(401, "signature_invalid").insert_header("date", "Sat, 14 Mar 2026 16:09:27 GMT");
    let slow = std::time::Duration::from_millis(300);
    let server = serve(vec![refused().set_delay(slow), refused().set_delay(slow), ok(201)]).await;
    let (builder, waits) = builder(&server.uri());
    let client = builder.signing_secret(SECRET).build().unwrap();
    let contacts = client.contacts();
    let input = ContactCreate::new("ada@example.com".parse().unwrap());
    let (first, second) = tokio::join!(contacts.create(&input), contacts.create(&input));
    first.and(second).unwrap();
    assert_eq!(waits.all(), []);
    let requests = requests(&server).await;
    let stamps = requests.iter().map(|request| header(request, "x-svc-timestamp").unwrap());
    let mut stamps: Vec<_> = stamps.collect();
    stamps.sort_unstable();
    assert_eq!(stamps, ["1773500966.535897", "1773500966.535898", "1773504567.000000", "1773504567.000001"]);
}

#[tokio::test]
async fn the_example_of_the_contract_has_its_signature() {
    let server = serve(vec![ok(201)]).await;
    let clock = ManualClock::at(Timestamp::parse("2026-03-14T15:09:26Z").unwrap());
    let client = Client::builder(&server.uri(), "svc_live_x")
        .signing_secret(SECRET)
        .env(Env::new(clock, SeededEntropy::new(1)))
        .build()
        .unwrap();
    client.contacts().create(&ContactCreate::new("ada@example.com".parse().unwrap())).await.unwrap();
    let request = &requests(&server).await[0];
    // The contract signs whole seconds; the client sends the decimals as well.
    let signed = SignedRequest {
        timestamp: "1773500966",
        method: "POST",
        path_and_query: "/api/v1/contacts",
        body: &request.body,
    };
    let contract = "sha256=1197feb597fb898c5a72508b6305915828c29be9259e067f95e2d0522e1503b1";
    assert_eq!(signed.sign(&Secret::new(SECRET)), contract);
    assert_eq!(header(request, "x-svc-timestamp"), Some("1773500966.000000"));
}

#[tokio::test]
async fn a_read_and_a_key_that_does_not_sign_have_no_signature() {
    let server = serve(vec![ok(200)]).await;
    let (builder, _) = builder(&server.uri());
    let signing = builder.signing_secret(SECRET).build().unwrap();
    signing.contacts().get(ID.parse().unwrap()).await.unwrap();
    let (plain, _) = crate::fixture::client(&server);
    let deleted = serve(vec![ResponseTemplate::new(204)]).await;
    plain
        .contacts()
        .update(ID.parse().unwrap(), &ContactUpdate { email: Patch::Set(None), ..Default::default() })
        .await
        .unwrap();
    crate::fixture::client(&deleted).0.contacts().delete(ID.parse().unwrap()).await.unwrap();
    for request in requests(&server).await.iter().chain(&requests(&deleted).await) {
        assert_eq!((header(request, "x-svc-timestamp"), header(request, "x-svc-signature")), (None, None));
    }
}
