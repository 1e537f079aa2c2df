//! The data of an account about a person.

use super::records::Records;
use crate::error::Error;
use crate::personal::{ContactData, ContactDataParams, Erasure, ErasureCreate};
use crate::platform::operations;
use crate::resources::contacts::{Contact, ContactId};

/// All data of a contact, and its erasure, as the laws on privacy ask for.
impl Records<'_, Contact> {
    /// Returns what the account knows of a contact, also if it was deleted. It is read page by page, and returned whole.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn data(self, id: ContactId) -> Result<ContactData, Error> {
        let mut data = self.data_page(id, ContactDataParams::default()).await?;
        while let Some(cursor) = data.next_cursor.take() {
            data = data.and(self.data_page(id, ContactDataParams { cursor: Some(cursor) }).await?);
        }
        Ok(data)
    }

    /// Returns a page of what the account knows of a contact.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::InvalidCursor`] if the cursor was not returned for this contact.
    pub async fn data_page(self, id: ContactId, params: ContactDataParams) -> Result<ContactData, Error> {
        self.account.call_on(&operations::GET_CONTACT_DATA, id, params).await
    }

    /// Erases a contact, which may be deleted already, in transactions of a hundred changes each. Fires `contact.deleted` with
    /// the id alone. See [`personal`](crate::personal) for what it finds.
    ///
    /// # Errors
    /// [`Error::NotFound`]. If a later transaction fails, those before it stay; erase the contact again.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::personal::ErasureCreate;
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let contacts = svc.account(tenant).contacts();
    /// let contact = contacts.create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let erased = contacts.erase(contact.id, ErasureCreate { reason: "asked by letter".parse()? }).await?;
    /// assert_eq!((erased.contacts, erased.events, erased.is_complete), (1, 1, true));
    /// assert_eq!(contacts.data(contact.id).await?.contact.email, None);
    /// # Ok(()) });
    /// ```
    pub async fn erase(self, id: ContactId, input: ErasureCreate) -> Result<Erasure, Error> {
        let mut all = Erasure::default();
        while !all.is_complete {
            all = all.and(self.account.call_on(&operations::ERASE_CONTACT, id, input.clone()).await?);
        }
        Ok(all)
    }
}
