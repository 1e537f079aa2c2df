//! Signing in to the dashboard.

use super::executor::Runner;
use crate::accounts::dashboard_links::{self, DashboardLinkCreate, NewDashboardLink};
use crate::accounts::sessions::{self, NewSession, Role, Session, SessionId};
use crate::accounts::tenants::Tenant;
use crate::error::Error;
use crate::values::{Email, TenantId};
use crate::webhooks::deliveries::{Backlog, DeliveryStatus};
use crate::webhooks::replays::Replay;

/// The links and the sessions with which people use the dashboard.
#[derive(Clone, Copy)]
pub struct Dashboard<'e> {
    runner: Runner<'e>,
}

impl<'e> Dashboard<'e> {
    pub(super) fn new(runner: Runner<'e>) -> Self {
        Self { runner }
    }

    /// Makes a link that signs a person in. It works once, for ten minutes.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account does not exist.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let link = DashboardLinkCreate::to(tenant, Role::Owner).identity("ada@example.com");
    /// let link = svc.dashboard().create_link(link).await?;
    /// assert!(link.url("https://api.example.com").starts_with("https://api.example.com/dashboard/sign-in?token="));
    /// # Ok(()) });
    /// ```
    pub async fn create_link(self, input: DashboardLinkCreate) -> Result<NewDashboardLink, Error> {
        self.runner
            .write("svc.dashboard.create_link", input, async |tx, input| {
                dashboard_links::create(tx, input.clone()).await
            })
            .await
    }

    /// Uses a link up, and begins the session that it is for.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if the link was used already or has expired.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let link = svc.dashboard().create_link(DashboardLinkCreate::to(tenant, Role::Viewer)).await?;
    /// let new = svc.dashboard().sign_in(link.token.reveal()).await?;
    /// assert_eq!(new.session.identity, "viewer@link");
    /// assert!(svc.dashboard().sign_in(link.token.reveal()).await.is_err());
    /// # Ok(()) });
    /// ```
    pub async fn sign_in(self, token: &str) -> Result<NewSession, Error> {
        self.sign_in_with(token, false).await
    }

    /// Uses a link up like [`sign_in`](Self::sign_in), for a browser that remembers the session: it lasts for
    /// [`REMEMBERED_SESSION_LIFETIME`](crate::accounts::sessions::REMEMBERED_SESSION_LIFETIME), also without requests. A session of
    /// an operator is not remembered.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if the link was used already or has expired.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let link = svc.dashboard().create_link(DashboardLinkCreate::to(tenant, Role::Owner)).await?;
    /// let new = svc.dashboard().sign_in_remembered(link.token.reveal()).await?;
    /// assert!(new.session.is_remembered());
    /// # Ok(()) });
    /// ```
    pub async fn sign_in_remembered(self, token: &str) -> Result<NewSession, Error> {
        self.sign_in_with(token, true).await
    }

    async fn sign_in_with(self, token: &str, remembers: bool) -> Result<NewSession, Error> {
        let input = (token.to_owned(), remembers);
        let signed_in = self.runner.write("svc.dashboard.sign_in", input, async |tx, (token, remembers)| {
            dashboard_links::sign_in(tx, token, *remembers).await
        });
        signed_in.await
    }

    /// Begins the session of a person whose email address was verified, such as by an identity provider. It shows the account
    /// that the address is a [member](crate::accounts::members) of; of several, the person chooses one.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if the address is a member of no account.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let email = Email::parse("ada@example.com").unwrap();
    /// assert!(svc.dashboard().sign_in_member(email.clone()).await.is_err());
    /// svc.account(tenant).members().add(email.clone(), Role::Developer).await?;
    /// let new = svc.dashboard().sign_in_member(email).await?;
    /// assert_eq!(new.session.account(), Some((tenant, Role::Developer)));
    /// # Ok(()) });
    /// ```
    pub async fn sign_in_member(self, email: Email) -> Result<NewSession, Error> {
        self.runner
            .write("svc.dashboard.sign_in_member", email, async |tx, email| sessions::begin_of_member(tx, email).await)
            .await
    }

    /// Returns the accounts that an address is a member of, each with the role that it has there.
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
    /// let email = Email::parse("ada@example.com").unwrap();
    /// svc.account(tenant).members().add(email.clone(), Role::Developer).await?;
    /// let accounts = svc.dashboard().accounts_of(email).await?;
    /// assert_eq!((accounts[0].0.id, accounts[0].1), (tenant, Role::Developer));
    /// # Ok(()) });
    /// ```
    pub async fn accounts_of(self, email: Email) -> Result<Vec<(Tenant, Role)>, Error> {
        self.runner
            .read("svc.dashboard.accounts_of", email, async |tx, email| sessions::accounts_of(tx, email).await)
            .await
    }

    /// Lets the session of a member show another account that the address is a member of.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such session of a member, or the address is no member of the account.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let email = Email::parse("ada@example.com").unwrap();
    /// let other = svc.accounts().create(TenantCreate::named("Quay Electrics")).await?.id;
    /// svc.account(tenant).members().add(email.clone(), Role::Owner).await?;
    /// svc.account(other).members().add(email.clone(), Role::Viewer).await?;
    /// let session = svc.dashboard().sign_in_member(email).await?.session;
    /// assert_eq!(session.account(), None);
    /// let session = svc.dashboard().choose_account(session.id, other).await?;
    /// assert_eq!(session.account(), Some((other, Role::Viewer)));
    /// # Ok(()) });
    /// ```
    pub async fn choose_account(self, id: SessionId, tenant: TenantId) -> Result<Session, Error> {
        self.runner
            .write("svc.dashboard.choose_account", (id, tenant), async |tx, &(id, tenant)| {
                sessions::choose(tx, id, tenant).await
            })
            .await
    }

    /// Lets a session of an account show its sandbox, or with `false` the account itself again. Links and members lead to the
    /// account; the role is the same in its sandbox.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such session of an account, or the account has no sandbox.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let link = svc.dashboard().create_link(DashboardLinkCreate::to(tenant, Role::Developer)).await?;
    /// let session = svc.dashboard().sign_in(link.token.reveal()).await?.session;
    /// let sandbox = svc.account(tenant).sandbox().create().await?.sandbox.id;
    /// let session = svc.dashboard().show_sandbox(session.id, true).await?;
    /// assert_eq!(session.account(), Some((sandbox, Role::Developer)));
    /// let session = svc.dashboard().show_sandbox(session.id, false).await?;
    /// assert_eq!(session.account(), Some((tenant, Role::Developer)));
    /// # Ok(()) });
    /// ```
    pub async fn show_sandbox(self, id: SessionId, sandbox: bool) -> Result<Session, Error> {
        self.runner
            .write("svc.dashboard.show_sandbox", (id, sandbox), async |tx, &(id, sandbox)| {
                sessions::show_sandbox(tx, id, sandbox).await
            })
            .await
    }

    /// Ends a session for the person who signed in.
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
    /// let link = svc.dashboard().create_link(DashboardLinkCreate::to(tenant, Role::Viewer)).await?;
    /// let new = svc.dashboard().sign_in(link.token.reveal()).await?;
    /// svc.dashboard().sign_out(new.session.id).await?;
    /// assert_eq!(svc.dashboard().use_session(new.token.reveal()).await?, None);
    /// # Ok(()) });
    /// ```
    pub async fn sign_out(self, id: SessionId) -> Result<(), Error> {
        self.runner.write("svc.dashboard.sign_out", id, async |tx, &id| sessions::sign_out(tx, id).await).await
    }

    /// Returns the session with this token, unless it has ended, and stores that it is used now.
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
    /// let link = svc.dashboard().create_link(DashboardLinkCreate::to(tenant, Role::Viewer)).await?;
    /// let new = svc.dashboard().sign_in(link.token.reveal()).await?;
    /// assert_eq!(svc.dashboard().use_session(new.token.reveal()).await?, Some(new.session));
    /// assert_eq!(svc.dashboard().use_session("another").await?, None);
    /// # Ok(()) });
    /// ```
    pub async fn use_session(self, token: &str) -> Result<Option<Session>, Error> {
        let token = token.to_owned();
        let find = self.runner.read("svc.dashboard.session", token, async |tx, token| {
            let session = sessions::find(tx, token).await?;
            let now = tx.env().now();
            Ok(session.map(|session| (sessions::is_use_due(&session, now), session)))
        });
        let Some((is_use_due, session)) = find.await? else { return Ok(None) };
        if is_use_due {
            let id = session.id;
            self.runner
                .write("svc.dashboard.record_use", id, async |tx, &id| sessions::record_use(tx, id).await)
                .await?;
        }
        Ok(Some(session))
    }

    /// Returns the session with this token, unless it has ended. Unlike [`use_session`](Self::use_session), this is no use of
    /// it: a page that refreshes itself does not keep a session alive.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn find_session(self, token: &str) -> Result<Option<Session>, Error> {
        let token = token.to_owned();
        let find =
            self.runner.read("svc.dashboard.find_session", token, async |tx, token| sessions::find(tx, token).await);
        find.await
    }

    /// Returns the sessions of an account that have not ended, newest first; or those that show none, which are those of
    /// operators and of members who have chosen none.
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
    /// let link = svc.dashboard().create_link(DashboardLinkCreate::to(tenant, Role::Viewer)).await?;
    /// let new = svc.dashboard().sign_in(link.token.reveal()).await?;
    /// assert_eq!(svc.dashboard().sessions(Some(tenant)).await?, [new.session]);
    /// assert_eq!(svc.dashboard().sessions(None).await?, []);
    /// # Ok(()) });
    /// ```
    pub async fn sessions(self, tenant: Option<TenantId>) -> Result<Vec<Session>, Error> {
        self.runner.read("svc.dashboard.sessions", tenant, async |tx, &tenant| sessions::list(tx, tenant).await).await
    }

    /// Revokes a session of an account, or of an operator. It is refused from the next request on.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such session.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let link = svc.dashboard().create_link(DashboardLinkCreate::to(tenant, Role::Viewer)).await?;
    /// let new = svc.dashboard().sign_in(link.token.reveal()).await?;
    /// svc.dashboard().revoke(Some(tenant), new.session.id).await?;
    /// assert_eq!(svc.dashboard().use_session(new.token.reveal()).await?, None);
    /// # Ok(()) });
    /// ```
    pub async fn revoke(self, tenant: Option<TenantId>, id: SessionId) -> Result<(), Error> {
        self.runner
            .write("svc.dashboard.revoke", (tenant, id), async |tx, &(tenant, id)| {
                sessions::revoke(tx, tenant, id).await
            })
            .await
    }

    /// Ends all sessions of a member that show an account, and returns how many there were. They are refused from the next
    /// request on. Sessions of the person that show another account go on.
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
    /// let email = Email::parse("ada@example.com").unwrap();
    /// svc.account(tenant).members().add(email.clone(), Role::Developer).await?;
    /// let new = svc.dashboard().sign_in_member(email.clone()).await?;
    /// assert_eq!(svc.dashboard().sign_out_everywhere(tenant, email).await?, 1);
    /// assert_eq!(svc.dashboard().use_session(new.token.reveal()).await?, None);
    /// # Ok(()) });
    /// ```
    pub async fn sign_out_everywhere(self, tenant: TenantId, email: Email) -> Result<usize, Error> {
        self.runner
            .write("svc.dashboard.sign_out_everywhere", (tenant, email), async |tx, (tenant, email)| {
                sessions::sign_out_everywhere(tx, *tenant, email).await
            })
            .await
    }

    /// Returns how many deliveries of all accounts have a status, for operators, and how old the oldest is. It counts up to
    /// [`MAX_BACKLOG_COUNT`](crate::webhooks::deliveries::MAX_BACKLOG_COUNT), and no deliveries that succeeded.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, _| {
    /// assert_eq!(svc.dashboard().backlog(DeliveryStatus::Held).await?.deliveries, 0);
    /// # Ok(()) });
    /// ```
    pub async fn backlog(self, status: DeliveryStatus) -> Result<Backlog, Error> {
        self.runner.read("svc.dashboard.backlog", status, async |tx, &status| Ok(tx.backlog(status).await?)).await
    }

    /// Returns at most `limit` bulk replays of all accounts that are under way, for operators.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, _| {
    /// assert_eq!(svc.dashboard().unfinished_replays(20).await?, []);
    /// # Ok(()) });
    /// ```
    pub async fn unfinished_replays(self, limit: u32) -> Result<Vec<Replay>, Error> {
        let read = self.runner.read("svc.dashboard.unfinished_replays", limit, async |tx, &limit| {
            Ok(tx.unfinished_replays(limit).await?)
        });
        read.await
    }

    /// Lets an operator look at an account as its viewers do, or no longer at any. The audit log of the account records it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such session of an operator, or no such account.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let link = svc.dashboard().create_link(DashboardLinkCreate::for_operator()).await?;
    /// let new = svc.dashboard().sign_in(link.token.reveal()).await?;
    /// let session = svc.dashboard().view(new.session.id, Some(tenant)).await?;
    /// assert_eq!(session.account(), Some((tenant, Role::Viewer)));
    /// # Ok(()) });
    /// ```
    pub async fn view(self, id: SessionId, tenant: Option<TenantId>) -> Result<Session, Error> {
        self.runner
            .write("svc.dashboard.view", (id, tenant), async |tx, &(id, tenant)| sessions::view(tx, id, tenant).await)
            .await
    }
}
