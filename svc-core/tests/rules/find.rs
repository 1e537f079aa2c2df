//! Finding records while clocks are wrong, accounts are put back, and the index of another account fails.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use serde_json::json;
use svc_core::accounts::clocks;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_core::error::{Error, StoreError};
use svc_core::find;
use svc_core::lookup::{self, IdPart, KindInAccount};
use svc_core::resources::contacts::Contact;
use svc_core::resources::kinds::AccountRecord;
use svc_core::store::memory::MemoryStore;
use svc_core::store::{Access, AccountServers, Store, StoreResult, StoreWrapper, UnitOfWork};
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::DeliveryWakeup;

use super::imports::{PLAIN, restored};
use super::{Rules, START, time};

impl Rules {
    fn index(&self) {
        let tenant = self.tenant;
        while !self.write(tenant, async |tx, &tenant| find::index(tx, tenant).await).unwrap() {}
    }

    fn find(&self, text: &str) -> Vec<String> {
        let input = (self.tenant, find::parse(text).unwrap());
        let found = self.write(input, async |tx, (tenant, text)| find::find(tx, *tenant, text).await).unwrap();
        assert!(found.is_complete);
        found.data.into_iter().map(|hit| hit.title).collect()
    }
}

#[test]
fn a_record_that_is_put_back_with_an_old_time_is_found() {
    let fixture = Rules::new();
    fixture.index();
    let at = "2020-01-01T00:00:00Z";
    let row = |city: &str| restored("contacts", at, json!({ "email": "ada@example.com", "city": city }));
    fixture.put::<AccountRecord>(row("Zutphen"), 0, PLAIN).unwrap();
    assert_eq!(fixture.find("zutph"), ["ada@example.com"], "at once");
    fixture.index();
    assert_eq!(fixture.find("zutph"), ["ada@example.com"], "and after the index has caught up");
    let mut later = row("Pergola");
    later["updated_at"] = json!("2020-01-02T00:00:00Z");
    fixture.put::<AccountRecord>(later, 0, PLAIN).unwrap();
    assert_eq!((fixture.find("pergol").len(), fixture.find("zutph").len()), (1, 0));
}

#[test]
fn what_is_written_after_a_clock_was_repaired_is_found() {
    let fixture = Rules::new();
    let contact: Contact = fixture.create(json!({ "email": "ada@example.com" })).unwrap();
    fixture.clock.set(time("2026-03-15T15:00:00Z"));
    // An update that changes nothing takes the clock along, and the index follows the clock.
    fixture.update::<Contact>(contact.id, json!({ "email": "ada@example.com" })).unwrap();
    fixture.index();
    fixture.clock.set(time(START));
    let tenant = fixture.tenant;
    fixture.write(tenant, async |tx, &tenant| clocks::repair(tx, tenant).await).unwrap().unwrap();
    let _: Contact = fixture.create(json!({ "email": "zanzi@example.com", "city": "Zanzibar" })).unwrap();
    assert_eq!(fixture.find("zanzib"), ["zanzi@example.com"]);
    fixture.index();
    assert_eq!(fixture.find("zanzib"), ["zanzi@example.com"]);
}

#[test]
fn the_beginning_of_an_id_is_found_however_many_are_newer_while_the_clock_is_ahead() {
    let fixture = Rules::new();
    fixture.clock.set(time("2026-03-15T15:00:00Z"));
    let contact: Contact = fixture.create(json!({ "email": "ada@example.com" })).unwrap();
    fixture.clock.set(time(START));
    for number in 0..205 {
        let _: Contact = fixture.create(json!({ "email": format!("{number}@example.com") })).unwrap();
    }
    let part = IdPart::parse(&contact.id.to_string()[..23]).unwrap();
    let matches = fixture.write((fixture.tenant, part), async |tx, (tenant, part)| {
        lookup::ids_with(tx, KindInAccount::Contact, *tenant, part).await
    });
    assert_eq!(matches.unwrap().data, [contact.id.uuid()]);
}

/// A store in which the steps of an index fail, as those of an account with a row that cannot be read, while it is the turn of
/// the account that comes first. It notes the steps.
struct FirstAccountFails {
    store: MemoryStore,
    is_first: Mutex<bool>,
    steps: Mutex<Vec<&'static str>>,
}

#[async_trait]
impl StoreWrapper for FirstAccountFails {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        if name == "search.index" && std::mem::take(&mut *self.is_first.lock().unwrap()) {
            self.steps.lock().unwrap().push("failed");
            return Err(StoreError::Internal("a row cannot be read".to_owned()).into());
        }
        if name == "search.index" {
            self.steps.lock().unwrap().push("done");
        }
        self.store.run(access, name, work).await
    }
}

#[test]
fn an_index_that_fails_does_not_stand_in_the_way_of_others() {
    let env = Env::new(ManualClock::at(time(START)), SeededEntropy::new(1));
    let failing =
        FirstAccountFails { store: MemoryStore::new(env), is_first: Mutex::new(true), steps: Mutex::default() };
    let failing = Arc::new(failing);
    let store: &dyn Store = &failing;
    let accounts: Vec<TenantId> = (0..3)
        .map(|_| {
            let create = store.write("test", (), async |tx, ()| tenants::create(tx, TenantCreate::named("Test")).await);
            create.now_or_never().unwrap().unwrap().id
        })
        .collect();
    let indexed = find::index_all(store, async |_: Duration| {}).now_or_never().unwrap();
    assert_eq!(indexed, Err(Error::Store(StoreError::Internal("a row cannot be read".to_owned()))));
    assert_eq!(*failing.steps.lock().unwrap(), ["failed", "done", "done"]);
    let left = store.read("test", (), async |tx, ()| Ok(tx.tenants_to_index(None, 10).await?));
    assert_eq!(left.now_or_never().unwrap().unwrap(), accounts[..1]);
    let after = store.read("test", accounts[0], async |tx, &first| Ok(tx.tenants_to_index(Some(first), 10).await?));
    assert_eq!(after.now_or_never().unwrap().unwrap(), [] as [TenantId; 0]);
}

/// A store whose first two accounts are on a server that hangs, and the third on another one.
struct TwoServers {
    store: MemoryStore,
    accounts: Mutex<Vec<TenantId>>,
    steps: Mutex<Vec<&'static str>>,
}

#[async_trait]
impl AccountServers for TwoServers {
    async fn accounts(&self) -> StoreResult<Vec<(i64, Vec<TenantId>)>> {
        let accounts = self.accounts.lock().unwrap();
        Ok(vec![(1, accounts[..2].to_vec()), (2, accounts[2..].to_vec())])
    }
}

#[async_trait]
impl Store for TwoServers {
    async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        if name == "search.index" {
            let mut steps = self.steps.lock().unwrap();
            let hangs = steps.is_empty();
            steps.push(if hangs { "hung" } else { "done" });
            if hangs {
                let reason = "the server 1 of the account does not respond".to_owned();
                return Err(StoreError::Unavailable(reason).into());
            }
        }
        self.store.run(access, name, work).await
    }

    fn env(&self) -> &Env {
        self.store.env()
    }

    fn delivery_wakeup(&self) -> &DeliveryWakeup {
        self.store.delivery_wakeup()
    }

    fn servers(&self) -> Option<&dyn AccountServers> {
        Some(self)
    }

    fn check_writable(&self) -> StoreResult<()> {
        self.store.check_writable()
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

#[test]
fn the_accounts_of_a_server_that_hangs_are_not_tried_one_after_the_other() {
    let env = Env::new(ManualClock::at(time(START)), SeededEntropy::new(1));
    let servers = TwoServers { store: MemoryStore::new(env), accounts: Mutex::default(), steps: Mutex::default() };
    let store: &dyn Store = &servers;
    for _ in 0..3 {
        let create = store.write("test", (), async |tx, ()| tenants::create(tx, TenantCreate::named("Test")).await);
        servers.accounts.lock().unwrap().push(create.now_or_never().unwrap().unwrap().id);
    }
    let indexed = find::index_all(store, async |_: Duration| {}).now_or_never().unwrap();
    assert!(matches!(indexed, Err(Error::Store(StoreError::Unavailable(_)))));
    assert_eq!(*servers.steps.lock().unwrap(), ["hung", "done"], "the second account is left until the next time");
}
