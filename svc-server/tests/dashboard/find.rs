//! The search field finds records of the account that is shown.

use http::StatusCode;
use http::header::LOCATION;
use svc_core::accounts::sessions::Role;

use super::browser::{Server, encode};

#[tokio::test]
async fn what_is_found_alone_is_shown_and_others_are_listed_by_kind() {
    let server = Server::start().await;
    let ada = server.named_contact("ada@find.example", "Ada").await;
    let browser = server.signed_in(Role::Viewer).await;
    let find = async |text: &str| browser.get(&format!("/find?{}", encode(&[("q", text)]))).await;

    let only = find("ADA@find").await;
    assert_eq!(only.status, StatusCode::SEE_OTHER);
    assert_eq!(only.headers[LOCATION], format!("/dashboard/contacts/{}", ada.id));

    let hostile = server.named_contact("b@find.example", "<img src=x>").await;
    server.of(server.other).named_contact("c@find.example", "Elsewhere").await;
    let both = find("find.example").await.text;
    for hit in [&ada, &hostile] {
        assert!(both.contains(&format!("href=\"/dashboard/contacts/{}\"", hit.id)), "{both}");
    }
    assert!(both.contains("&lt;img src=x&gt;") && !both.contains("<img src=x>"), "{both}");
    assert!(both.contains("value=\"find.example\"") && both.contains("<h2>Contacts</h2>"), "{both}");
    assert!(!both.contains("Elsewhere") && !both.contains("<h2>Jobs</h2>"), "{both}");

    for text in ["", "zz", "nobody has this", "\" OR 1=1 --"] {
        let nothing = find(text).await;
        assert_eq!(nothing.status, StatusCode::OK, "{text}");
        assert!(nothing.text.contains("Nothing found"), "{}", nothing.text);
    }
    let long = find(&"x".repeat(300)).await;
    assert!(long.text.contains("Nothing found"), "{}", long.text);
}
