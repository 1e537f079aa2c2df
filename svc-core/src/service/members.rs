//! Members of an account.

use super::Account;
use crate::accounts::members::{Member, MemberId};
use crate::accounts::sessions::Role;
use crate::error::Error;
use crate::platform::{MemberCreate, MemberUpdate, operations};
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
    /// there are [`MAX_MEMBERS`](crate::accounts::members::MAX_MEMBERS).
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
        self.account.call(&operations::ADD_MEMBER, MemberCreate { email, role }).await
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
        Ok(self.account.call(&operations::LIST_MEMBERS, ()).await?.data)
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
        self.account.call_on(&operations::GET_MEMBER, id, ()).await
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
        self.account.call_on(&operations::UPDATE_MEMBER, id, MemberUpdate { role }).await
    }

    /// Removes a member. Their sessions that show the account end for good, also if they are added again.
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
    pub async fn remove(self, id: MemberId) -> Result<(), Error> {
        self.account.call_on(&operations::REMOVE_MEMBER, id, ()).await
    }
}
