//! Contacts by their email.

use async_trait::async_trait;

use super::{MemoryTx, of_tenant};
use crate::error::StoreError;
use crate::resources::contacts::ContactId;
use crate::store::ContactEmailRepository;
use crate::values::{Email, TenantId};

#[async_trait]
impl ContactEmailRepository for MemoryTx<'_> {
    async fn contact_with_email(&mut self, tenant: TenantId, email: &Email) -> Result<Option<ContactId>, StoreError> {
        let has_email = |other: &Email| other.key() == email.key();
        let mut live = of_tenant(&self.state.contacts, tenant).filter(|contact| contact.deleted_at.is_none());
        Ok(live.find(|contact| contact.email.as_ref().is_some_and(has_email)).map(|contact| contact.id))
    }
}
