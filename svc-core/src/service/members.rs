//! Members of an account.

use super::Account;
use super::executor::operation;
use crate::accounts::members::{self, Member, MemberId};
use crate::accounts::sessions::Role;
use crate::error::Error;
use crate::values::Email;

/// The members of an account: the email addresses with which people may sign in to its dashboard, and the role of each.
#[derive(Clone, Copy)]
pub struct Members<'e> {
    account: Account<'e>,
}

impl<'e> Members<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { account }
    }

    /// Adds a member. Addresses are compared in lower case.
    ///
    /// # Errors
    /// [`Error::UnknownTenant`] if there is no such account, and [`Error::NotAllowed`] if the address is a member already or
    /// there are [`MAX_MEMBERS`](members::MAX_MEMBERS).
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let email = Email::parse("Ada@example.com").unwrap();
    /// let member = account.members().add(email.clone(), Role::Owner).await?;
    /// assert_eq!(member.email.as_str(), "ada@example.com");
    /// assert!(account.members().add(email, Role::Viewer).await.is_err());
    /// # Ok(()) });
    /// ```
    pub async fn add(self, email: Email, role: Role) -> Result<Member, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .write(operation!("svc.members.add"), (tenant, email, role), async |tx, (tenant, email, role)| {
                members::add(tx, *tenant, email, *role).await
            })
            .await
    }

    /// Returns all members, in the order of their addresses.
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
    /// let member = account.members().add(Email::parse("ada@example.com").unwrap(), Role::Owner).await?;
    /// assert_eq!(account.members().list().await?, [member]);
    /// # Ok(()) });
    /// ```
    pub async fn list(self) -> Result<Vec<Member>, Error> {
        let Account { runner, id: tenant } = self.account;
        runner.read(operation!("svc.members.list"), tenant, async |tx, &tenant| members::list(tx, tenant).await).await
    }

    /// Returns the member with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such member.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let member = account.members().add(Email::parse("ada@example.com").unwrap(), Role::Owner).await?;
    /// assert_eq!(account.members().get(member.id).await?, member);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: MemberId) -> Result<Member, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read(operation!("svc.members.get", id), (tenant, id), async |tx, &(tenant, id)| {
                members::get(tx, tenant, id).await
            })
            .await
    }

    /// Changes the role of a member. It holds from their next request on.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such member, and [`Error::NotAllowed`] if a person in the dashboard takes the
    /// role of the last owner away.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let member = account.members().add(Email::parse("ada@example.com").unwrap(), Role::Viewer).await?;
    /// assert_eq!(account.members().set_role(member.id, Role::Developer).await?.role, Role::Developer);
    /// # Ok(()) });
    /// ```
    pub async fn set_role(self, id: MemberId, role: Role) -> Result<Member, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .write(operation!("svc.members.set_role", id), (tenant, id, role), async |tx, &(tenant, id, role)| {
                members::set_role(tx, tenant, id, role).await
            })
            .await
    }

    /// Removes a member, and returns it. Their sessions that show the account end for good, also if they are added again.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such member, and [`Error::NotAllowed`] if a person in the dashboard removes
    /// the last owner.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let member = account.members().add(Email::parse("ada@example.com").unwrap(), Role::Owner).await?;
    /// account.members().remove(member.id).await?;
    /// assert_eq!(account.members().list().await?, []);
    /// # Ok(()) });
    /// ```
    pub async fn remove(self, id: MemberId) -> Result<Member, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .write(operation!("svc.members.remove", id), (tenant, id), async |tx, &(tenant, id)| {
                members::remove(tx, tenant, id).await
            })
            .await
    }
}
