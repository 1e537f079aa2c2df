//! The tokens of an app, which the client refreshes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use svc_client::{TokenSource, Tokens, prelude::*};
use svc_core::accounts::apps::{AppCreate, NewApp};
use svc_core::values::RedirectUri;
use svc_server::{DashboardSettings, OauthSettings, Surfaces};

use crate::contact;
use crate::live::{Database, LiveServer, databases};

const HOUR: Duration = Duration::from_secs(60 * 60);

async fn start(database: &Database, public: bool) -> (LiveServer, NewApp) {
    let oauth = Some(OauthSettings::new("http://127.0.0.1:8080".parse().unwrap()));
    let dashboard = Some(DashboardSettings { oauth, ..DashboardSettings::default() });
    let surfaces = Surfaces { dashboard, ..Surfaces::default() };
    let server = LiveServer::serving(database, surfaces).await;
    let uris = vec![RedirectUri::from_stored("http://127.0.0.1/callback")];
    let app = AppCreate { public, write: true, ..AppCreate::new("Route Planner".parse().unwrap(), uris) };
    let new = server.svc.apps().create(app).await.unwrap();
    (server, new)
}

/// Returns a client with these tokens, and what it stores.
fn client(server: &LiveServer, new: &NewApp, tokens: Tokens) -> (Client, Arc<Mutex<Vec<Tokens>>>) {
    let stored = Arc::new(Mutex::new(Vec::new()));
    let disk = Arc::clone(&stored);
    let mut source = TokenSource::new(&new.app.client_id, tokens, move |tokens| {
        disk.lock().unwrap().push(tokens);
        std::future::ready(Ok::<_, std::io::Error>(()))
    });
    if let Some(secret) = &new.secret {
        source = source.client_secret(secret.reveal());
    }
    let builder = Client::builder_with_tokens(&format!("http://{}", server.address), source);
    (server.in_time(builder).build().unwrap(), stored)
}

#[tokio::test]
async fn an_app_works_on_an_account_for_as_long_as_it_is_connected() {
    for database in databases() {
        for public in [true, false] {
            let (server, new) = start(&database, public).await;
            let (client, stored) = client(&server, &new, server.connect(&new).await);
            let contacts = client.contacts();
            let created = contacts.create(&contact(1)).await.unwrap();
            assert!(stored.lock().unwrap().is_empty());
            for hour in 1..=3 {
                server.clock.advance(HOUR);
                // All of them find that the token has expired.
                let calls = (0..20).map(|_| contacts.get(created.id));
                for read in futures_util::future::join_all(calls).await {
                    assert_eq!(read.unwrap(), created);
                }
                assert_eq!(stored.lock().unwrap().len(), hour);
            }
            let grants = server.account().grants();
            let (grant, _) = grants.list().await.unwrap().pop().unwrap();
            grants.revoke(grant.id).await.unwrap();
            let ended = contacts.get(created.id).await.unwrap_err();
            assert_eq!((ended.status(), ended.code()), (Some(400), Some("invalid_grant")));
        }
    }
}

#[tokio::test]
async fn an_app_that_was_killed_before_it_stored_its_tokens_goes_on_with_the_old_ones() {
    for database in databases() {
        let (server, new) = start(&database, true).await;
        let first = server.connect(&new).await;
        server.clock.advance(HOUR);
        let (killed, lost) = client(&server, &new, first.clone());
        killed.ping().await.unwrap();
        // The access token was used, the refresh token that came with it was not.
        let (restarted, stored) = client(&server, &new, first);
        restarted.ping().await.unwrap();
        assert_eq!(*lost.lock().unwrap(), *stored.lock().unwrap());
        server.clock.advance(HOUR);
        restarted.ping().await.unwrap();
        assert_eq!(server.account().grants().list().await.unwrap().len(), 1);
    }
}
