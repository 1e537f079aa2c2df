//! The records of one account.

use super::executor::Account;
use super::{AuditLog, Deliveries, Events, Grants, Keys, Members, Records, Replays, Requests, Sandbox};
use crate::accounts::tenants::{self, Tenant};
use crate::error::Error;
use crate::find::{FindText, SearchResults};
use crate::platform::operations;
use crate::resources::bookings::Booking;
use crate::resources::contacts::Contact;
use crate::resources::invoices::Invoice;
use crate::resources::jobs::Job;
use crate::resources::quotes::Quote;
use crate::today::{self, Today};
use crate::values::TenantId;
use crate::webhooks::subscriptions::WebhookSubscription;

impl<'e> Account<'e> {
    /// Returns the id of the account.
    pub fn id(self) -> TenantId {
        self.id
    }

    /// Returns the settings of the account.
    ///
    /// # Errors
    /// [`Error::UnknownTenant`] if there is no such account.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// assert_eq!(svc.account(tenant).settings().await?.name, "Harbour Plumbing");
    /// # Ok(()) });
    /// ```
    pub async fn settings(self) -> Result<Tenant, Error> {
        let Self { runner, id } = self;
        runner.read("svc.settings.get", id, async |tx, &id| tenants::get(tx, id).await).await
    }

    /// Changes the settings of the account. The closure may run again, after a conflict with another transaction.
    ///
    /// # Errors
    /// [`Error::UnknownTenant`] if there is no such account.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let settings = svc.account(tenant).change_settings(|tenant| tenant.max_webhooks = Some(50)).await?;
    /// assert_eq!(settings.max_webhooks, Some(50));
    /// # Ok(()) });
    /// ```
    pub async fn change_settings(
        self,
        change: impl Fn(&mut Tenant) + Clone + Send + Sync + 'static,
    ) -> Result<Tenant, Error> {
        let Self { runner, id } = self;
        runner
            .write("svc.settings.change", (id, change), async |tx, (id, change)| {
                tenants::update(tx, id.0, change.clone()).await
            })
            .await
    }

    /// Returns the contacts: people and companies.
    pub fn contacts(self) -> Records<'e, Contact> {
        Records::new(self)
    }

    /// Returns the invoices, with the operations of the back office.
    pub fn invoices(self) -> Records<'e, Invoice> {
        Records::new(self)
    }

    /// Returns the quotes: offers with a price.
    pub fn quotes(self) -> Records<'e, Quote> {
        Records::new(self)
    }

    /// Returns the bookings: appointments with contacts.
    pub fn bookings(self) -> Records<'e, Booking> {
        Records::new(self)
    }

    /// Returns the jobs: work on a site.
    pub fn jobs(self) -> Records<'e, Job> {
        Records::new(self)
    }

    /// Finds records by a part of a name, an email address, a phone number, a company, a suburb or a number, or by the
    /// beginning of an id. [`find::parse`](crate::find::parse) reads the text that a person typed.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::find;
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let found = account.find(find::parse("EXAMPLE.com")?).await?;
    /// assert_eq!(found.data[0].id, contact.id.uuid());
    /// # Ok(()) });
    /// ```
    pub async fn find(self, text: FindText) -> Result<SearchResults, Error> {
        self.call(&operations::FIND_RECORDS, text).await
    }

    /// Returns what wants attention today: what customers owe, what was paid this month, who comes, and what waits.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let invoice = account.invoices().create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// account.invoices().send(invoice.id).await?;
    /// let today = account.today().await?;
    /// assert_eq!(today.receivables()[0].total().to_string(), "149.5");
    /// # Ok(()) });
    /// ```
    pub async fn today(self) -> Result<Today, Error> {
        let read = self.runner.read("svc.account.today", self.id, async |tx, &tenant| today::read(tx, tenant).await);
        read.await
    }

    /// Returns the API keys.
    pub fn keys(self) -> Keys<'e> {
        Keys::new(self)
    }

    /// Returns the sandbox: an account of its own, for testing programs.
    pub fn sandbox(self) -> Sandbox<'e> {
        Sandbox::new(self)
    }

    /// Returns the members: the people who may sign in to the dashboard.
    pub fn members(self) -> Members<'e> {
        Members::new(self)
    }

    /// Returns the apps that may work on the account.
    pub fn grants(self) -> Grants<'e> {
        Grants::new(self)
    }

    /// Returns the webhook subscriptions.
    pub fn webhooks(self) -> Records<'e, WebhookSubscription> {
        Records::new(self)
    }

    /// Returns the deliveries of events to webhook subscriptions.
    pub fn deliveries(self) -> Deliveries<'e> {
        Deliveries::new(self)
    }

    /// Returns the bulk replays of deliveries.
    pub fn replays(self) -> Replays<'e> {
        Replays::new(self)
    }

    /// Returns the events.
    pub fn events(self) -> Events<'e> {
        Events::new(self)
    }

    /// Returns the audit log: who changed what, and when.
    pub fn audit_log(self) -> AuditLog<'e> {
        AuditLog::new(self)
    }

    /// Returns the request log: the newest requests to the API.
    pub fn requests(self) -> Requests<'e> {
        Requests::new(self)
    }
}
