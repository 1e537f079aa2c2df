//! A contact is erased: nothing of it is left in the API, in the log of deliveries, or in the raw files of the database.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::harness::guarded;
use crate::live::{Deployment, deployments, id, read_delivery, request, text};

/// What is known of a person. No other record has any of it.
const PERSON: [&str; 13] = [
    "Quetzalina \u{10348}",
    "Zyxwvutson",
    "quetzal@zyxwvut.example",
    "+61 455 501 928",
    "Zyxwvut & Daughters",
    "Wollongbarra",
    "Zyx Territory",
    "ZX-90417",
    "17 Quetzal Crescent",
    "North Wollongbarra",
    "the key is under the quetzal",
    "quetzal@new.example",
    // A letter that nothing else has. The index of searches has letters in threes, so it would have this one and no whole name.
    "\u{10348}",
];

/// Starts an endpoint that sends each delivery back in its response, and returns its URL.
async fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(send_back(stream));
        }
    });
    url
}

async fn send_back(mut stream: TcpStream) {
    while let Some((_, body)) = read_delivery(&mut stream).await {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
    }
}

/// Waits until nothing is pending, and returns the deliveries.
async fn delivered(deployment: &Deployment, account: &str, count: usize) -> Value {
    guarded(async {
        loop {
            let list = deployment.svc(&["delivery", "list", "--tenant", account, "--limit", "200"]).await;
            let items = list.as_array().unwrap();
            if items.len() == count && items.iter().all(|delivery| delivery["status"] == "succeeded") {
                return list;
            }
        }
    })
    .await
}

#[tokio::test]
async fn nothing_of_an_erased_contact_is_left() {
    for deployment in deployments() {
        let server = deployment.serve(&[]).await;
        let (account, key) = deployment.account().await;
        let (account, key) = (account.as_str(), key.as_str());
        let post = async |path: &str, body: Value| {
            let response = request(&server, key, "POST", path, &body.to_string()).await;
            assert_eq!(response.status, 201, "{}", response.text);
            response.id()
        };
        post("/webhooks", json!({ "url": echo().await, "events": ["*"] })).await;
        let [first, last, email, phone, company, city, state, postcode, address, suburb, notes, new_email, _] = PERSON;
        let contact = post(
            "/contacts",
            json!({ "first_name": first, "last_name": last, "email": email, "phone": phone, "company_name": company,
                "city": city, "state": state, "postcode": postcode }),
        )
        .await;
        let other = post("/contacts", json!({ "email": "ada@example.com", "first_name": "Ada" })).await;
        let job = post(
            "/jobs",
            json!({ "title": "Mend a tap", "contact_id": contact, "site_address": address, "site_suburb": suburb }),
        )
        .await;
        let booking = post(
            "/bookings",
            json!({ "service_name": "Visit", "contact_id": contact, "start_time": "2026-03-20T09:00:00Z", "notes": notes }),
        )
        .await;
        let change = json!({ "email": new_email, "phone": null }).to_string();
        assert_eq!(request(&server, key, "PATCH", &format!("/contacts/{contact}"), &change).await.status, 200);
        deployment.svc(&["invoice", "create", "--tenant", account, "--contact", &contact, "--total", "149.50"]).await;
        let found = format!("/contacts?email={}", new_email.replace('@', "%40"));
        assert_eq!(request(&server, key, "GET", &found, "").await.json()["data"][0]["id"], contact);
        delivered(&deployment, account, 6).await;
        let hits = deployment.svc(&["find", "Zyxwvut", "--tenant", account]).await;
        assert!(hits.to_string().contains(&contact), "{hits}");

        let all = deployment.svc(&["contact", "export-all", &contact, "--tenant", account]).await;
        assert!(PERSON.iter().all(|known| all.to_string().contains(known)), "{all}");
        assert_eq!((all["is_complete"].clone(), all["invoices"].as_array().unwrap().len()), (json!(true), 1));
        assert!(!all.to_string().contains("ada@example.com"), "{all}");

        let folder = vacuum(&deployment).await;
        let known: BTreeSet<&str> = left_in_files(&folder).into_iter().map(|(_, known)| known).collect();
        assert_eq!(known, BTreeSet::from(PERSON), "the files have all of it before");

        let erase = ["contact", "erase", &contact, "--tenant", account, "--reason", "asked by letter"];
        let erased = deployment.svc(&erase).await;
        assert_eq!(erased, json!({ "contacts": 1, "jobs": 1, "bookings": 1, "events": 4, "is_complete": true }));
        let again = deployment.svc(&erase).await;
        assert_eq!(again, json!({ "contacts": 0, "jobs": 0, "bookings": 0, "events": 0, "is_complete": true }));

        // The skeletons stay, and the other contact.
        assert_eq!(request(&server, key, "GET", &format!("/contacts/{contact}"), "").await.status, 404);
        let list = request(&server, key, "GET", "/contacts?include_deleted=true", "").await.json();
        let kept = list["data"].as_array().unwrap();
        assert_eq!(
            (kept.len(), kept[0]["id"].clone(), kept[0]["email"].clone()),
            (2, json!(other), json!("ada@example.com"))
        );
        assert!(kept[1]["deleted_at"].is_string() && kept[1]["email"].is_null(), "{list}");
        let job = request(&server, key, "GET", &format!("/jobs/{job}"), "").await.data();
        assert_eq!((text(&job, "title"), text(&job, "contact_id")), ("Mend a tap", contact.as_str()));
        assert!(text(&job, "updated_at") > text(&job, "created_at"), "a copy that follows the changes learns of it");
        let booking = request(&server, key, "GET", &format!("/bookings/{booking}"), "").await.data();
        assert_eq!((text(&booking, "service_name"), booking["notes"].clone()), ("Visit", Value::Null));

        // Receivers get the id alone.
        let deliveries = delivered(&deployment, account, 7).await;
        let last = deployment.svc(&["delivery", "show", id(&deliveries[0])]).await;
        assert_eq!(text(&last, "event"), "contact.deleted");
        assert_eq!(last["body"]["data"], json!({ "id": contact }), "{last}");
        let audit = deployment.svc(&["audit", "list", "--tenant", account]).await;
        assert!(audit.to_string().contains("asked by letter"), "{audit}");
        let hits = deployment.svc(&["find", "Zyxwvut", "--tenant", account]).await;
        assert_eq!(hits, json!([]));
        let mut everything = vec![deliveries, audit, list, job, booking];
        everything.push(deployment.svc(&["event", "list", "--tenant", account]).await);
        everything.push(deployment.svc(&["contact", "export-all", &contact, "--tenant", account]).await);
        for delivery in everything[0].as_array().unwrap().clone() {
            everything.push(deployment.svc(&["delivery", "show", id(&delivery)]).await);
        }
        let everything = Value::Array(everything).to_string();
        assert_eq!(left_in(everything.as_bytes()), [""; 0], "{everything}");

        assert_eq!(server.stop("TERM").await.0.code(), Some(0));
        let folder = vacuum(&deployment).await;
        assert_eq!(left_in_files(&folder), []);
    }
}

/// Returns what of the person is in these bytes, in any case of letters.
fn left_in(bytes: &[u8]) -> Vec<&'static str> {
    let bytes = bytes.to_ascii_lowercase();
    let is_left = |known: &&str| {
        let known = known.to_ascii_lowercase().into_bytes();
        bytes.windows(known.len()).any(|window| window == known)
    };
    PERSON.into_iter().filter(is_left).collect()
}

/// Rewrites the tables without what was deleted, by the means of the database, and returns the folder of its files. The
/// write-ahead log of PostgreSQL is not in it: its files are used anew in time.
async fn vacuum(deployment: &Deployment) -> PathBuf {
    if let Some(folder) = &deployment.folder {
        let database = rusqlite::Connection::open(folder.path().join("svc.db")).unwrap();
        database.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
        return folder.path().to_owned();
    }
    let (client, connection) = tokio_postgres::connect(&deployment.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("VACUUM (FULL, ANALYZE)").await.unwrap();
    // The statistics that the analysis replaced are dead rows themselves, unless it came before their table.
    client.batch_execute("VACUUM (FULL) pg_statistic").await.unwrap();
    client.batch_execute("CHECKPOINT").await.unwrap();
    let row = client.query_one("SELECT pg_relation_filepath('contacts')", &[]).await.unwrap();
    let table = svc_test_support::postgres::quick_server().unwrap().folder().join("data").join(row.get::<_, String>(0));
    table.parent().unwrap().to_owned()
}

/// Returns what of the person is in the files of a folder.
fn left_in_files(folder: &Path) -> Vec<(PathBuf, &'static str)> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let left = |file: PathBuf| {
        let bytes = std::fs::read(&file).unwrap();
        left_in(&bytes).into_iter().map(move |known| (file.clone(), known)).collect::<Vec<_>>()
    };
    files.filter(|file| file.is_file()).flat_map(left).collect()
}
