//! Files that people upload for an import, until the import has ended.
//!
//! An import takes several steps, and each may be handled by another node, so the file is stored in the database. It is encrypted
//! there, ends with a day, and an account has few: a new one takes the place of the oldest. An upload has what the person chose and
//! how far the import has come, as texts whose form is that of the caller.

use std::time::Duration;

use crate::error::Error;
use crate::store::Tx;
use crate::values::{Id, TenantId, Timestamp};

/// The most uploads of an account.
pub const MAX_UPLOADS: u32 = 3;
/// The size of the largest file, in bytes.
pub const MAX_SIZE: usize = 4 * 1024 * 1024;
/// How long an upload is stored.
pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The id of an upload.
pub type UploadId = Id<Upload>;

/// A file that was uploaded for an import, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The id of the upload.
    pub id: UploadId,
    /// The tenant whose upload it is.
    pub tenant_id: TenantId,
    /// The name of the file.
    pub name: String,
    /// The person who uploaded it, as the session names them.
    pub created_by: String,
    /// The choices of the person.
    pub choices: String,
    /// How far the import has come.
    pub progress: String,
    /// When it was uploaded.
    pub created_at: Timestamp,
    /// When it is deleted.
    pub expires_at: Timestamp,
}

/// A new upload.
#[derive(Clone, Debug)]
pub struct UploadCreate {
    /// The name of the file.
    pub name: String,
    /// The person who uploaded it, as the session names them.
    pub created_by: String,
    /// The choices of the person.
    pub choices: String,
    /// The content of the file.
    pub content: Vec<u8>,
}

/// Stores an upload. Where the account has [`MAX_UPLOADS`], the oldest ones are deleted.
///
/// # Errors
/// [`Error::Store`].
pub async fn create(tx: &mut dyn Tx, tenant: TenantId, input: &UploadCreate) -> Result<Upload, Error> {
    tx.lock_tenant(tenant).await?;
    for old in tx.uploads(tenant).await?.iter().skip(MAX_UPLOADS as usize - 1) {
        tx.delete_upload(tenant, old.id).await?;
    }
    let now = tx.env().now();
    let upload = Upload {
        id: tx.env().id(now),
        tenant_id: tenant,
        name: input.name.clone(),
        created_by: input.created_by.clone(),
        choices: input.choices.clone(),
        progress: String::new(),
        created_at: now,
        expires_at: now.checked_add(LIFETIME).unwrap_or(Timestamp::MAX),
    };
    tx.insert_upload(&upload, &input.content).await?;
    Ok(upload)
}

/// Returns the uploads of a tenant, the newest first.
///
/// # Errors
/// [`Error::Store`].
pub async fn list(tx: &mut dyn Tx, tenant: TenantId) -> Result<Vec<Upload>, Error> {
    let now = tx.env().now();
    let uploads = tx.uploads(tenant).await?;
    Ok(uploads.into_iter().filter(|upload| upload.expires_at > now).collect())
}

/// Returns an upload.
///
/// # Errors
/// [`Error::NotFound`], also when it has expired.
pub async fn get(tx: &mut dyn Tx, tenant: TenantId, id: UploadId) -> Result<Upload, Error> {
    let now = tx.env().now();
    tx.upload(tenant, id).await?.filter(|upload| upload.expires_at > now).ok_or(Error::NotFound)
}

/// Returns an upload with its content.
///
/// # Errors
/// [`Error::NotFound`], also when it has expired.
pub async fn open(tx: &mut dyn Tx, tenant: TenantId, id: UploadId) -> Result<(Upload, Vec<u8>), Error> {
    let upload = get(tx, tenant, id).await?;
    let content = tx.upload_content(tenant, id).await?.ok_or(Error::NotFound)?;
    Ok((upload, content))
}

/// Stores the choices of the person and how far the import has come, if that is still `before`: of two requests that go on with an
/// import at once, one counts.
///
/// # Errors
/// [`Error::NotFound`] if there is no such upload, [`Error::PreconditionFailed`] if the import has come further.
pub async fn update(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: UploadId,
    before: &str,
    choices: &str,
    progress: &str,
) -> Result<(), Error> {
    tx.lock_tenant(tenant).await?;
    let mut upload = get(tx, tenant, id).await?;
    if upload.progress != before {
        return Err(Error::PreconditionFailed);
    }
    (upload.choices, upload.progress) = (choices.to_owned(), progress.to_owned());
    Ok(tx.update_upload(&upload).await?)
}

/// Deletes an upload. There may be none, which is no error.
///
/// # Errors
/// [`Error::Store`].
pub async fn delete(tx: &mut dyn Tx, tenant: TenantId, id: UploadId) -> Result<(), Error> {
    tx.lock_tenant(tenant).await?;
    Ok(tx.delete_upload(tenant, id).await?)
}
