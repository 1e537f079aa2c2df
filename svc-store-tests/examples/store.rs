//! A store of one's own, as a place to start from: it passes the conformance suite.
//!
//! Readers never wait: they read the snapshot that was committed last, while a writer changes a copy of it. Its tables are
//! those of `svc_core::store::memory`, which implement every repository. To keep rows elsewhere, write a type of your own
//! that implements the traits of `svc_core::store::Tx`, one after the other; `docs/stores.md` says what each has to do.
//!
//! `cargo run -p svc-examples --bin store`

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use svc_core::env::Env;
use svc_core::error::{Error, StoreError};
use svc_core::pages::CursorKey;
use svc_core::prelude::*;
use svc_core::store::memory::Tables;
use svc_core::store::{Access, Store, UnitOfWork};
use svc_core::sync::lock;
use svc_core::webhooks::deliveries::DeliveryWakeup;

/// A store that keeps each commit as a snapshot.
pub(crate) struct SnapshotStore {
    env: Env,
    /// Seals the cursors of lists. A store that outlives its process keeps it beside its tables.
    cursor_key: CursorKey,
    delivery_wakeup: DeliveryWakeup,
    /// The last commit. `None` once the store is closed.
    committed: Mutex<Option<Arc<Tables>>>,
    /// Held by the writer. There is one at a time, so no two transactions of a tenant run at once.
    writer: Mutex<()>,
}

impl SnapshotStore {
    pub(crate) fn new(env: Env) -> Self {
        let cursor_key = CursorKey::new(env.bytes());
        let committed = Mutex::new(Some(Arc::default()));
        Self { env, cursor_key, delivery_wakeup: DeliveryWakeup::default(), committed, writer: Mutex::default() }
    }

    fn snapshot(&self) -> Result<Arc<Tables>, StoreError> {
        lock(&self.committed).clone().ok_or(StoreError::Closed)
    }

    fn read(&self, name: &str, work: &UnitOfWork) -> Result<(), Error> {
        let snapshot = self.snapshot()?;
        let mut tx = snapshot.read(&self.env, &self.cursor_key, &self.delivery_wakeup);
        work(&mut tx).now_or_never().unwrap_or_else(|| waits(name))
    }

    /// Runs a unit of work on a copy, which takes the place of the snapshot when it succeeds. A copy that is dropped, also
    /// by a panic, is a transaction that was rolled back.
    fn write(&self, name: &str, work: &UnitOfWork) -> Result<(), Error> {
        let _writer = lock(&self.writer);
        let mut copy = Tables::clone(&*self.snapshot()?);
        // What a failed transaction marks must wake nobody, so each has a wakeup of its own.
        let delivery_wakeup = DeliveryWakeup::default();
        let mut tx = copy.write(&self.env, &self.cursor_key, &delivery_wakeup);
        work(&mut tx).now_or_never().unwrap_or_else(|| waits(name))?;
        drop(tx);
        copy.commit();
        *lock(&self.committed) = Some(Arc::new(copy));
        if delivery_wakeup.take_mark() {
            self.delivery_wakeup.notify();
        }
        Ok(())
    }
}

/// The error of a unit of work that is not ready at once. Nothing in this store waits, so it waits for something else.
fn waits(name: &str) -> Result<(), Error> {
    Err(StoreError::Internal(format!("{name} waits for something other than its store")).into())
}

#[async_trait]
impl Store for SnapshotStore {
    // It never waits, so it runs to its end even if the caller drops the future after it was polled once.
    async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        match access {
            Access::Read => self.read(name, &work),
            Access::Write => self.write(name, &work),
        }
    }

    fn env(&self) -> &Env {
        &self.env
    }

    fn delivery_wakeup(&self) -> &DeliveryWakeup {
        &self.delivery_wakeup
    }

    fn check_writable(&self) -> Result<(), StoreError> {
        self.snapshot().map(drop)
    }

    async fn close(&self) {
        let _writer = lock(&self.writer);
        *lock(&self.committed) = None;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    pollster::block_on(async {
        let svc = Svc::new(SnapshotStore::new(Env::system()));
        let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await?.id;
        let account = svc.account(tenant);
        let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
        println!("contact {}", contact.id);
        for event in account.events().since(Timestamp::from_micros(0), 100).await? {
            println!("{} {} {}", event.created_at, event.kind, event.data);
        }
        svc.close().await;
        Ok(())
    })
}
