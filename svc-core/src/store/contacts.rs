//! Contacts by their email.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::resources::contacts::ContactId;
use crate::values::{Email, TenantId};

/// Finds contacts by their email, for the rule that no two contacts of a tenant have the same.
///
/// A list by email would do as well, but it has an order and returns whole records, which costs every new contact twice as
/// much.
#[async_trait]
pub trait ContactEmailRepository: Send {
    /// Returns a contact of the tenant that has this email, ignoring case, and is not deleted; any of them if there are
    /// several.
    async fn contact_with_email(&mut self, tenant: TenantId, email: &Email) -> Result<Option<ContactId>, StoreError>;
}
