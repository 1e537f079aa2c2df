//! The due work of a store whose accounts are on several servers.
//!
//! It is read with one statement that asks all of them. While one is away that fails, or does not end; then each server is asked on
//! its own for the work of its accounts, so that those of the others get their deliveries.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use svc_core::error::{Error, StoreError};
use svc_core::store::{MAX_EXCEPTED_TENANTS, Store};
use svc_core::values::TenantId;
use svc_core::webhooks::engine::{self, DueWork};
use tokio::time::{Instant, timeout};

/// How long servers may take for the due work, before each is asked on its own.
const POLL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a server may take that was away the last time.
const RETRY_TIMEOUT: Duration = Duration::from_millis(500);
/// The pause after a server refused to be asked, or its connections.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// The pause after a server did not answer. The query may take a connection for longer than this.
const SILENT_PAUSE: Duration = Duration::from_secs(10);
/// How long it is remembered which accounts a server has.
const ACCOUNTS_FOR: Duration = Duration::from_secs(10);

/// The accounts of each server.
type AccountsByServer = Vec<(i64, Vec<TenantId>)>;

/// The state of the servers.
#[derive(Default)]
pub(super) struct Parts {
    /// The accounts of each server while one of them is away, and since when they are known.
    accounts: Option<(AccountsByServer, Instant)>,
    /// The servers that are away, and when each is asked again.
    away: HashMap<i64, Instant>,
}

impl Parts {
    /// Reads the due work of all accounts, or while a server is away, that of the others.
    ///
    /// # Errors
    ///
    /// The error of the store, if it has one server or none can be asked.
    pub(super) async fn poll(&mut self, store: &dyn Store) -> Result<DueWork, Error> {
        let whole = store.read_in_place("deliver.due_work", (), async |tx, ()| engine::poll(tx).await);
        let Some(servers) = store.servers() else { return whole.await };
        if self.accounts.is_none() {
            let error = match timeout(POLL_TIMEOUT, whole).await {
                Ok(Ok(due_work)) => return Ok(due_work),
                Ok(Err(error)) => error,
                Err(_) => silent(POLL_TIMEOUT).into(),
            };
            tracing::error!(%error, "cannot read the due deliveries of all servers; asking each for those of its accounts");
        }
        if self.accounts.as_ref().is_none_or(|(_, at)| at.elapsed() >= ACCOUNTS_FOR) {
            let known = servers.accounts().await?;
            // A server that was removed is not away.
            self.away.retain(|server, _| known.iter().any(|(known, _)| known == server));
            self.accounts = Some((known, Instant::now()));
        }
        let (accounts, now) = (self.accounts.as_ref().map_or(&[][..], |(accounts, _)| accounts), Instant::now());
        let asked = accounts.iter().filter(|(server, _)| self.away.get(server).is_none_or(|until| *until <= now));
        let polls = asked.map(|(server, accounts)| {
            let within = if self.away.contains_key(server) { RETRY_TIMEOUT } else { POLL_TIMEOUT };
            async move { (*server, poll_server(store, accounts, within).await) }
        });
        let mut all = DueWork::nothing(store.env().now());
        let results = join_all(polls).await;
        let mut last_error = None;
        for (server, result) in results {
            match result {
                Ok(due_work) => {
                    all.add(due_work);
                    if self.away.remove(&server).is_some() {
                        tracing::info!(server, "the due deliveries of this server can be read again");
                    }
                }
                Err((error, pause)) => {
                    if self.away.insert(server, Instant::now() + pause).is_none() {
                        tracing::error!(%error, server, "cannot read the due deliveries of this server; its accounts wait");
                    }
                    last_error = Some(error);
                }
            }
        }
        let is_nobody_there = accounts.iter().all(|(server, _)| self.away.contains_key(server));
        if self.away.is_empty() {
            // The next poll asks all of them at once.
            self.accounts = None;
        }
        match last_error {
            Some(error) if is_nobody_there => Err(error),
            _ => Ok(all),
        }
    }
}

/// Reads the due work of the accounts of one server, or returns when to ask it again.
async fn poll_server(store: &dyn Store, accounts: &[TenantId], within: Duration) -> Result<DueWork, (Error, Duration)> {
    let mut all = DueWork::nothing(store.env().now());
    for group in accounts.chunks(MAX_EXCEPTED_TENANTS) {
        let poll =
            store.read("deliver.due_work_of", group.to_vec(), async |tx, group| engine::poll_of(tx, group).await);
        match timeout(within, poll).await {
            Ok(Ok(due_work)) => all.add(due_work),
            Ok(Err(error)) => return Err((error, REFUSED_PAUSE)),
            Err(_) => return Err((silent(within).into(), SILENT_PAUSE)),
        }
    }
    Ok(all)
}

fn silent(within: Duration) -> StoreError {
    StoreError::Unavailable(format!("no response within {within:?}"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use async_trait::async_trait;
    use svc_core::accounts::tenants::{self, TenantCreate};
    use svc_core::env::Env;
    use svc_core::input::Input as _;
    use svc_core::resources::crud;
    use svc_core::resources::jobs::{Job, JobCreate};
    use svc_core::store::memory::MemoryStore;
    use svc_core::store::{Access, AccountServers, StoreResult, UnitOfWork};
    use svc_core::sync::lock;
    use svc_core::webhooks::deliveries::DeliveryWakeup;
    use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};

    use super::*;

    /// A store whose accounts are on a server each, of which the second may be away.
    struct TwoServers {
        inner: MemoryStore,
        accounts: std::sync::Mutex<Vec<TenantId>>,
        is_away: AtomicBool,
        is_silent: AtomicBool,
        polls: AtomicUsize,
    }

    impl TwoServers {
        /// Returns a store with a delivery that is due on each server.
        async fn with_due_work() -> Self {
            let store = TwoServers {
                inner: MemoryStore::new(Env::system()),
                accounts: std::sync::Mutex::default(),
                is_away: AtomicBool::new(false),
                is_silent: AtomicBool::new(false),
                polls: AtomicUsize::new(0),
            };
            for _ in 0..2 {
                let inner: &dyn Store = &store.inner;
                let made = inner.write("test", (), async |tx, ()| {
                    let account = tenants::create(tx, TenantCreate::named("Test")).await?.id;
                    let input = WebhookCreate::from_body(br#"{"url": "https://example.com", "events": ["*"]}"#)?;
                    crud::create::<WebhookSubscription>(tx, account, input).await?;
                    crud::create::<Job>(tx, account, JobCreate::from_body(br#"{"title": "x"}"#)?).await?;
                    Ok(account)
                });
                let account = made.await.unwrap();
                lock(&store.accounts).push(account);
            }
            store
        }
    }

    #[async_trait]
    impl AccountServers for TwoServers {
        async fn accounts(&self) -> StoreResult<Vec<(i64, Vec<TenantId>)>> {
            Ok((1..).zip(lock(&self.accounts).iter().map(|account| vec![*account])).collect())
        }
    }

    #[async_trait]
    impl Store for TwoServers {
        async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
            // The servers are asked in their order.
            let is_second = name == "deliver.due_work_of" && self.polls.fetch_add(1, Ordering::SeqCst) % 2 == 1;
            if self.is_away.load(Ordering::SeqCst) && (is_second || name == "deliver.due_work") {
                if self.is_silent.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                return Err(StoreError::Unavailable("connection refused".to_owned()).into());
            }
            self.inner.run(access, name, work).await
        }

        fn servers(&self) -> Option<&dyn AccountServers> {
            Some(self)
        }

        fn env(&self) -> &Env {
            self.inner.env()
        }

        fn delivery_wakeup(&self) -> &DeliveryWakeup {
            self.inner.delivery_wakeup()
        }

        fn check_writable(&self) -> StoreResult<()> {
            self.inner.check_writable()
        }

        async fn close(&self) {
            self.inner.close().await;
        }
    }

    /// Returns the accounts with due work that a poll finds, as numbers of their servers.
    async fn due(parts: &mut Parts, store: &TwoServers) -> Vec<usize> {
        let found = parts.poll(store).await.unwrap();
        let accounts = lock(&store.accounts).clone();
        let number = |of: TenantId| accounts.iter().position(|account| *account == of).unwrap() + 1;
        let mut found: Vec<usize> = found.endpoints.iter().map(|endpoint| number(endpoint.tenant_id)).collect();
        found.sort_unstable();
        found
    }

    #[tokio::test(start_paused = true)]
    async fn the_accounts_of_other_servers_are_found_while_one_is_away() {
        let store = TwoServers::with_due_work().await;
        let mut parts = Parts::default();
        for is_silent in [false, true] {
            assert_eq!(due(&mut parts, &store).await, [1, 2]);
            store.is_silent.store(is_silent, Ordering::SeqCst);
            store.is_away.store(true, Ordering::SeqCst);
            store.polls.store(0, Ordering::SeqCst);
            assert_eq!(due(&mut parts, &store).await, [1], "silent: {is_silent}");
            store.polls.store(0, Ordering::SeqCst);
            let before = Instant::now();
            assert_eq!(due(&mut parts, &store).await, [1], "the other one is not asked yet");
            assert_eq!(before.elapsed(), Duration::ZERO, "nor waited for");
            store.is_away.store(false, Ordering::SeqCst);
            store.polls.store(0, Ordering::SeqCst);
            tokio::time::advance(SILENT_PAUSE).await;
            assert_eq!(due(&mut parts, &store).await, [1, 2]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_was_removed_is_not_away() {
        let store = TwoServers::with_due_work().await;
        let mut parts = Parts::default();
        store.is_away.store(true, Ordering::SeqCst);
        assert_eq!(due(&mut parts, &store).await, [1]);
        lock(&store.accounts).truncate(1);
        store.is_away.store(false, Ordering::SeqCst);
        tokio::time::advance(ACCOUNTS_FOR).await;
        let found = parts.poll(&store).await.unwrap();
        assert_eq!(found.endpoints.len(), 1);
        assert!(parts.away.is_empty() && parts.accounts.is_none(), "the next poll asks all servers at once");
    }
}
