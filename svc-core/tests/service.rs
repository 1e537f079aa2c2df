//! The facade, over a store in memory.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use svc_core::accounts::keys::MAX_KEYS;
use svc_core::error::StoreError;
use svc_core::prelude::*;
use svc_core::store::memory::MemoryStore;
use svc_core::store::{Access, Store, StoreWrapper, UnitOfWork};
use svc_test_support::Fixture;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

fn run(test: impl AsyncFnOnce(Svc, TenantId)) {
    let run = async {
        let Fixture { svc, tenant, .. } = Fixture::new();
        test(svc, tenant).await;
    };
    run.now_or_never().unwrap();
}

fn contact(number: u32) -> ContactCreate {
    ContactCreate::new(format!("c{number}@example.com").parse().unwrap())
}

async fn contacts(svc: &Svc, tenant: TenantId) -> Vec<Contact> {
    svc.account(tenant).contacts().stream(ContactFilter::default()).try_collect().await.unwrap()
}

/// An error of an application.
#[derive(Debug, PartialEq)]
enum AppError {
    Full(ContactId),
    Svc(Error),
}

impl From<Error> for AppError {
    fn from(error: Error) -> Self {
        Self::Svc(error)
    }
}

#[test]
fn operations_in_a_transaction_are_committed_together() {
    run(async |svc, tenant| {
        let (one, two) = svc
            .transaction("two", (tenant, contact(1), contact(2)), async |tx, (tenant, one, two)| {
                let contacts = tx.account(*tenant).contacts();
                let one = contacts.create(one.clone()).await?;
                assert_eq!(contacts.get(one.id).await?, one, "a transaction reads what it wrote");
                Ok((one, contacts.create(two.clone()).await?))
            })
            .await
            .unwrap();
        assert_eq!(contacts(&svc, tenant).await, [two, one]);
        let kinds: Vec<EventKind> = svc
            .account(tenant)
            .events()
            .since(Timestamp::from_micros(0), 10)
            .await
            .unwrap()
            .iter()
            .map(|e| e.kind)
            .collect();
        assert_eq!(kinds, [EventKind::ContactCreated; 2]);
    });
}

#[test]
fn a_transaction_that_fails_leaves_nothing() {
    run(async |svc, tenant| {
        let input = (tenant, contact(1));
        let refused = svc
            .transaction("refused", input.clone(), async |tx, (tenant, contact)| {
                let contacts = tx.account(*tenant).contacts();
                contacts.create(contact.clone()).await?;
                contacts.create(contact.clone()).await
            })
            .await;
        assert!(matches!(refused, Err(Error::EmailTaken { .. })), "{refused:?}");

        let own: Result<(), AppError> = svc
            .try_transaction("own error", input.clone(), async |tx, (tenant, contact)| {
                let made = tx.account(*tenant).contacts().create(contact.clone()).await?;
                Err(AppError::Full(made.id))
            })
            .await;
        assert!(matches!(own, Err(AppError::Full(_))), "{own:?}");

        let of_svc: Result<Contact, AppError> = svc
            .try_transaction("error of svc", input, async |tx, (tenant, contact)| {
                tx.account(*tenant).contacts().create(contact.clone()).await?;
                Ok(tx.account(*tenant).contacts().get(ContactId::nil()).await?)
            })
            .await;
        assert_eq!(of_svc, Err(AppError::Svc(Error::NotFound)));

        assert_eq!(contacts(&svc, tenant).await, []);
        assert!(svc.account(tenant).events().since(Timestamp::from_micros(0), 10).await.unwrap().is_empty());
    });
}

#[test]
fn a_tenant_and_its_first_records_can_be_created_together() {
    run(async |svc, _| {
        let made = svc.transaction("sign up", (), async |tx, ()| {
            let tenant = tx.accounts().create(TenantCreate::named("Hill Electric")).await?;
            let key = tx.account(tenant.id).keys().create(KeyCreate::default()).await?;
            Ok((tenant, key.key))
        });
        let (tenant, key) = made.await.unwrap();
        assert_eq!(svc.account(tenant.id).keys().list().await.unwrap(), [key]);
    });
}

/// Runs every write twice, as after a conflict: the first run is rolled back.
struct RunsAgain(MemoryStore);

#[async_trait]
impl StoreWrapper for RunsAgain {
    fn inner(&self) -> &dyn Store {
        &self.0
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        let work = Arc::new(work);
        if access == Access::Write {
            let first = Arc::clone(&work);
            let conflict = || Error::from(StoreError::Unavailable("a conflict".to_owned()));
            let run = self.0.run(
                access,
                name,
                Box::new(move |tx| {
                    let first = Arc::clone(&first);
                    Box::pin(async move {
                        let _ = first(tx).await;
                        Err(conflict())
                    })
                }),
            );
            assert_eq!(run.await, Err(conflict()));
        }
        self.0.run(access, name, Box::new(move |tx| work(tx))).await
    }
}

#[test]
fn a_closure_that_runs_again_gets_its_input_again() {
    let test = async {
        let svc = Svc::new(RunsAgain(MemoryStore::new(svc_core::env::Env::system())));
        let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let made =
            svc.transaction("twice", (tenant, contact(1), Arc::clone(&seen)), async |tx, (tenant, contact, seen)| {
                let made = tx.account(*tenant).contacts().create(contact.clone()).await?;
                seen.lock().unwrap().push(made.id);
                Ok(made)
            });
        let made = made.await.unwrap();
        assert_eq!(seen.lock().unwrap().len(), 2);
        assert_eq!(contacts(&svc, tenant).await, std::slice::from_ref(&made), "the first run left nothing");
        assert_eq!(seen.lock().unwrap().last(), Some(&made.id), "the result is that of the last run");

        let failed: Result<(), AppError> =
            svc.try_transaction("fails twice", tenant, async |_, _| Err(AppError::Full(ContactId::max()))).await;
        assert_eq!(failed, Err(AppError::Full(ContactId::max())));
    };
    test.now_or_never().unwrap();
}

#[test]
fn a_stream_reads_page_after_page() {
    run(async |svc, tenant| {
        const RECORDS: u32 = 2_500;
        let account = svc.account(tenant);
        for number in 0..RECORDS {
            account.contacts().create(contact(number)).await.unwrap();
        }
        let emails = |found: Vec<Contact>| -> Vec<String> {
            found.into_iter().map(|contact| contact.email.unwrap().as_str().to_owned()).collect()
        };
        let want: Vec<String> = (0..RECORDS).map(|number| format!("c{number}@example.com")).collect();
        let mut newest_first = emails(contacts(&svc, tenant).await);
        newest_first.reverse();
        assert!(newest_first == want);
        let oldest = Timestamp::from_micros(0);
        let changes = account.contacts().changed_since(ContactFilter::default(), oldest).try_collect().await.unwrap();
        assert!(emails(changes) == want);

        // A stream that is dropped early has read one page only, and creates nothing that outlives it.
        let mut few = account.contacts().stream(ContactFilter::default()).take(3);
        assert!(few.next().await.unwrap().is_ok());
        // What was created after the stream began is not part of it.
        let mut all = account.contacts().stream(ContactFilter::default());
        let first = all.try_next().await.unwrap().unwrap();
        account.contacts().create(contact(RECORDS)).await.unwrap();
        assert_eq!(all.count().await, RECORDS as usize - 1);
        assert_eq!(emails(vec![first]), [format!("c{}@example.com", RECORDS - 1)]);
    });
}

#[test]
fn ids_of_another_tenant_are_not_found() {
    run(async |svc, tenant| {
        let mine = svc.account(tenant);
        let other = svc.accounts().create(TenantCreate::named("Hill Electric")).await.unwrap().id;
        let theirs = svc.account(other);
        let endpoint = || "https://hooks.example.com/svc".parse().unwrap();

        let contact = mine.contacts().create(contact(1)).await.unwrap().id;
        assert_eq!(theirs.contacts().get(contact).await, Err(Error::NotFound));
        assert_eq!(theirs.contacts().update(contact, ContactUpdate::default()).await, Err(Error::NotFound));
        assert_eq!(theirs.contacts().delete(contact).await, Err(Error::NotFound));
        let invoice = mine.invoices().create(InvoiceCreate::new("5".parse().unwrap())).await.unwrap().id;
        assert_eq!(theirs.invoices().get(invoice).await, Err(Error::NotFound));
        assert_eq!(theirs.invoices().send(invoice).await, Err(Error::NotFound));
        assert_eq!(theirs.invoices().void(invoice).await, Err(Error::NotFound));
        let quote = QuoteCreate::new(contact, "5".parse().unwrap());
        assert_eq!(theirs.quotes().create(quote.clone()).await, Err(Error::ReferenceNotFound("contact_id")));
        let quote = mine.quotes().create(quote).await.unwrap().id;
        assert_eq!(theirs.quotes().accept(quote).await, Err(Error::NotFound));
        let key = mine.keys().create(KeyCreate::default()).await.unwrap().key.id;
        assert_eq!(theirs.keys().get(key).await, Err(Error::NotFound));
        assert_eq!(theirs.keys().revoke(key).await, Err(Error::NotFound));
        assert!(matches!(theirs.keys().rotate(key, std::time::Duration::ZERO).await, Err(Error::NotFound)));
        assert_eq!(mine.keys().get(key).await.unwrap().revoked_at, None);
        let webhook = mine.webhooks().create(WebhookCreate::new(endpoint(), EventSet::All)).await.unwrap().id;
        assert_eq!(theirs.webhooks().get(webhook).await, Err(Error::NotFound));
        assert_eq!(theirs.webhooks().send_test(webhook, None).await, Err(Error::NotFound));
        let since = Timestamp::from_micros(0);
        assert_eq!(theirs.replays().create(ReplayCreate::new(webhook, since)).await, Err(Error::NotFound));
        let delivery = mine.webhooks().send_test(webhook, None).await.unwrap();
        assert_eq!(theirs.deliveries().get(delivery.id).await, Err(Error::NotFound));
        assert_eq!(theirs.deliveries().replay(delivery.id).await, Err(Error::NotFound));
        assert_eq!(theirs.deliveries().list(DeliveryFilter::default()).await, Ok(Vec::new()));
        assert!(theirs.events().get(delivery.event_id).await.is_err());
        assert!(theirs.events().since(since, 10).await.unwrap().is_empty());
    });
}

#[test]
fn a_tenant_that_does_not_exist_is_not_found() {
    run(async |svc, _| {
        let nobody = svc.account(TenantId::from(ContactId::max().uuid()));
        let unknown = Error::UnknownTenant(nobody.id());
        assert_eq!(unknown.code(), Error::NotFound.code());
        assert!(unknown.to_string().contains("created in the database of this store"), "{unknown}");
        assert_eq!(nobody.settings().await, Err(unknown.clone()));
        assert_eq!(svc.accounts().get(nobody.id()).await, Err(unknown.clone()));
        assert_eq!(nobody.contacts().create(contact(1)).await, Err(unknown.clone()));
        assert_eq!(nobody.keys().create(KeyCreate::default()).await.map(drop), Err(unknown.clone()));
        assert_eq!(nobody.contacts().get(ContactId::nil()).await, Err(unknown));
    });
}

#[test]
fn futures_of_operations_can_be_spawned() {
    fn is_sent<T: Send + 'static>(_: T) {}
    let svc = Svc::in_memory();
    is_sent(async move {
        let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await?.id;
        let mut all = svc.account(tenant).contacts().stream(ContactFilter::default());
        while all.try_next().await?.is_some() {}
        svc.transaction("move", (tenant, contact(1)), async |tx, (tenant, contact)| {
            tx.account(*tenant).contacts().create(contact.clone()).await
        })
        .await
    });
}

/// Collects a line for each span: the names of those around it, its own, and its fields.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl<S: tracing::Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &tracing::span::Attributes<'_>, id: &tracing::Id, context: Context<'_, S>) {
        let mut fields = Fields(String::new());
        attributes.record(&mut fields);
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &tracing::Id, values: &tracing::span::Record<'_>, context: Context<'_, S>) {
        values.record(context.span(id).unwrap().extensions_mut().get_mut::<Fields>().unwrap());
    }

    fn on_close(&self, id: tracing::Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        let names: Vec<_> = span.scope().from_root().map(|span| span.name()).collect();
        self.0.lock().unwrap().push(format!("{}{}", names.join(" > "), span.extensions().get::<Fields>().unwrap().0));
    }
}

#[test]
fn each_operation_has_a_span() {
    let spans = Spans::default();
    let subscriber = Registry::default().with(spans.clone());
    // With a single subscriber, a span that another thread creates first is never collected (tokio-rs/tracing#3611).
    let _second = tracing::Dispatch::new(Registry::default());
    let _collecting = tracing::subscriber::set_default(subscriber);
    let test = async {
        let svc = Svc::in_memory();
        let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
        let contacts = svc.account(tenant).contacts();
        let made = contacts.create(contact(1)).await.unwrap().id;
        contacts.delete(made).await.unwrap();
        contacts.get(made).await.unwrap_err();
        let draft = svc.transaction("two", (tenant, contact(2)), async |tx, (tenant, contact)| {
            tx.account(*tenant).contacts().create(contact.clone()).await?;
            tx.account(*tenant).invoices().create(InvoiceCreate::new("25".parse().unwrap())).await
        });
        svc.account(tenant).invoices().send(draft.await.unwrap().id).await.unwrap();
        (tenant, made)
    };
    let (tenant, made) = test.now_or_never().unwrap();
    let spans = spans.0.lock().unwrap();
    let of = |operation: &str| format!("svc.operation operation=\"{operation}\"");
    let expected = [
        of("svc.accounts.create"),
        format!("{} tenant={tenant}", of("createContact")),
        format!("{} tenant={tenant} id={made}", of("deleteContact")),
        format!("{} tenant={tenant} id={made} error=\"not_found\"", of("getContact")),
        format!("svc.transaction > {} tenant={tenant}", of("createContact")),
        format!("svc.transaction > {} tenant={tenant}", of("createInvoice")),
        "svc.transaction name=\"two\"".to_owned(),
    ];
    assert_eq!(spans[..7], expected);
    assert!(spans[7].starts_with(&format!("{} tenant={tenant} id=", of("sendInvoice"))), "{spans:?}");
}

#[test]
fn an_account_has_a_bounded_number_of_keys_that_work() {
    run(async |svc, tenant| {
        let keys = svc.account(tenant).keys();
        let first = keys.create(KeyCreate::default()).await.unwrap();
        for _ in 1..MAX_KEYS {
            keys.create(KeyCreate::default()).await.unwrap();
        }
        let refused = keys.create(KeyCreate::default()).await.unwrap_err();
        let reason = "The account has 500 API keys that work. Revoke one before you create another.";
        assert_eq!(refused, Error::NotAllowed(reason.to_owned()));
        keys.revoke(first.key.id).await.unwrap();
        keys.create(KeyCreate::default()).await.unwrap();
        assert_eq!(keys.list().await.unwrap().len(), MAX_KEYS + 1);
    });
}
