//! Invoices and quotes as their customers see them: on paper, and at a [shared link](crate::accounts::shared_links).
//!
//! A customer who has the address of a quote can accept or decline it, as long as it is the quote that the page showed. The operations
//! are those of the business, so they have the same rules and fire the same events; the audit log names the link.
//!
//! A link shows nothing once its record or the contact of the record is gone: an erased contact is deleted as well.

use uuid::Uuid;

use crate::accounts::shared_links::{self, SharedLink, SharedLinkPurpose};
use crate::accounts::tenants::{self, Tenant};
use crate::error::Error;
use crate::resources::contacts::Contact;
use crate::resources::crud;
use crate::resources::invoices::Invoice;
use crate::resources::quotes::{self, Quote, QuoteId, QuoteStatus};
use crate::store::{Repository, Tx};
use crate::values::{Date, TenantId};

/// The purposes of the links that show documents.
const PURPOSES: [SharedLinkPurpose; 2] = [SharedLinkPurpose::Invoice, SharedLinkPurpose::Quote];

/// An invoice or a quote.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// An invoice.
    Invoice(Invoice),
    /// A quote.
    Quote(Quote),
}

/// A document with all that its page shows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SharedDocument {
    /// The account of the business.
    pub tenant: Tenant,
    /// The customer. `None` if the document names none, or one that is deleted.
    pub contact: Option<Contact>,
    /// The document.
    pub document: Document,
    /// The date of today in the time zone of the account.
    pub today: Date,
}

/// The outcome of opening a shared link.
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    /// The document.
    Document(Box<SharedDocument>),
    /// The account is suspended, so its links show nothing for now.
    Unavailable,
}

/// The decision of a customer about a quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The customer accepts the quote.
    Accept,
    /// The customer declines the quote.
    Decline,
}

impl Decision {
    /// Returns the status of a quote after the decision.
    fn status(self) -> QuoteStatus {
        match self {
            Self::Accept => QuoteStatus::Accepted,
            Self::Decline => QuoteStatus::Declined,
        }
    }
}

impl SharedDocument {
    /// Returns whether the customer can accept or decline the document: a quote that awaits it and is still valid.
    pub fn awaits_decision(&self) -> bool {
        match &self.document {
            Document::Invoice(_) => false,
            Document::Quote(quote) => quote.awaits_decision() && !self.has_expired(),
        }
    }

    /// Returns whether the last day of a quote has passed.
    pub fn has_expired(&self) -> bool {
        match &self.document {
            Document::Invoice(_) => false,
            Document::Quote(quote) => quote.valid_until.is_some_and(|day| day < self.today),
        }
    }
}

/// Returns a document of an account.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn read(
    tx: &mut dyn Tx,
    tenant: TenantId,
    purpose: SharedLinkPurpose,
    id: Uuid,
) -> Result<SharedDocument, Error> {
    Ok(read_with_contact(tx, tenant, purpose, id).await?.0)
}

/// Returns a document, and whether its contact is deleted.
async fn read_with_contact(
    tx: &mut dyn Tx,
    tenant: TenantId,
    purpose: SharedLinkPurpose,
    id: Uuid,
) -> Result<(SharedDocument, bool), Error> {
    let (document, contact_id) = match purpose {
        SharedLinkPurpose::Invoice => {
            let invoice: Invoice = crud::get(tx, tenant, id.into()).await?;
            let contact = invoice.contact_id;
            (Document::Invoice(invoice), contact)
        }
        SharedLinkPurpose::Quote => {
            let quote: Quote = crud::get(tx, tenant, id.into()).await?;
            let contact = quote.contact_id;
            (Document::Quote(quote), contact)
        }
        SharedLinkPurpose::Calendar => return Err(Error::NotFound),
    };
    let contact = match contact_id {
        Some(id) => Repository::<Contact>::get(tx, tenant, id).await?.filter(|contact| contact.deleted_at.is_none()),
        None => None,
    };
    let is_contact_gone = contact_id.is_some() && contact.is_none();
    let tenant = tenants::get(tx, tenant).await?;
    let today = tenant.time_zone.date_at(tx.env().now());
    Ok((SharedDocument { tenant, contact, document, today }, is_contact_gone))
}

/// Returns the link of a document, which is made if there is none. With `renews`, one that there is gets another address.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] if the contact of the document is deleted.
pub async fn share(
    tx: &mut dyn Tx,
    tenant: TenantId,
    purpose: SharedLinkPurpose,
    id: Uuid,
    renews: bool,
) -> Result<SharedLink, Error> {
    tx.lock_tenant(tenant).await?;
    if read_with_contact(tx, tenant, purpose, id).await?.1 {
        let reason = "Its contact is deleted, so there is nobody to give a link to.";
        return Err(Error::NotAllowed(reason.to_owned()));
    }
    shared_links::share(tx, tenant, purpose, Some(id), renews).await
}

/// Ends the link of a document, if there is one.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn unshare(tx: &mut dyn Tx, tenant: TenantId, purpose: SharedLinkPurpose, id: Uuid) -> Result<(), Error> {
    tx.lock_tenant(tenant).await?;
    read_with_contact(tx, tenant, purpose, id).await?;
    shared_links::revoke(tx, tenant, purpose, Some(id)).await.map(drop)
}

/// Returns what the link with this secret leads to.
///
/// # Errors
/// [`Error::NotFound`] if there is no such link of a document, or its record or contact is gone.
pub async fn open(tx: &mut dyn Tx, secret: &str) -> Result<Opened, Error> {
    let (link, tenant) = shared_links::find(tx, secret, &PURPOSES).await?;
    tx.read_as(tenant.id)?;
    open_link(tx, &link, &tenant).await
}

async fn open_link(tx: &mut dyn Tx, link: &SharedLink, tenant: &Tenant) -> Result<Opened, Error> {
    if !shared_links::is_available(tenant) {
        return Ok(Opened::Unavailable);
    }
    let record = link.record_id.ok_or(Error::NotFound)?;
    match read_with_contact(tx, tenant.id, link.purpose, record).await? {
        (_, true) => Err(Error::NotFound),
        (document, false) => Ok(Opened::Document(Box::new(document))),
    }
}

/// Records what the customer with this secret decides about the quote, of which the page showed the version of `shown`. A decision that
/// was made before changes nothing. Returns the quote after it.
///
/// # Errors
/// [`Error::NotFound`] as in [`open`], and for an invoice; [`Error::PreconditionFailed`] if the quote was changed since;
/// [`Error::NotAllowed`] if it awaits no decision, or is to be accepted after its last day.
pub async fn decide(tx: &mut dyn Tx, secret: &str, decision: Decision, shown: &str) -> Result<Opened, Error> {
    let (link, _) = shared_links::find(tx, secret, &[SharedLinkPurpose::Quote]).await?;
    tx.lock_tenant(link.tenant_id).await?;
    // It may have ended meanwhile.
    let (link, tenant) = shared_links::find(tx, secret, &[SharedLinkPurpose::Quote]).await?;
    let opened = open_link(tx, &link, &tenant).await?;
    let Opened::Document(document) = &opened else { return Ok(opened) };
    let Document::Quote(quote) = &document.document else { return Err(Error::NotFound) };
    if quote.status == decision.status() {
        return Ok(opened);
    }
    if quote.awaits_decision() && quote.updated_at.to_string() != shown {
        return Err(Error::PreconditionFailed);
    }
    let id: QuoteId = quote.id;
    tx.act_as(link.actor());
    match decision {
        Decision::Accept => quotes::accept(tx, tenant.id, id).await?,
        Decision::Decline => quotes::decline(tx, tenant.id, id).await?,
    };
    open_link(tx, &link, &tenant).await
}
