//! Files that people upload for an import.

use svc_core::accounts::uploads::{self, LIFETIME, MAX_UPLOADS, Upload, UploadCreate, UploadId};
use svc_core::error::Error;
use svc_core::values::TenantId;

use crate::Harness;

impl Harness {
    pub(super) async fn upload(&self, tenant: TenantId, content: &[u8]) -> Upload {
        let input = UploadCreate {
            name: "contacts.csv".to_owned(),
            created_by: "ada@example.com".to_owned(),
            choices: "{\"kind\":\"contacts\"}".to_owned(),
            content: content.to_vec(),
        };
        self.write((tenant, input), async |tx, (tenant, input)| uploads::create(tx, *tenant, input).await)
            .await
            .unwrap()
    }

    async fn open_upload(&self, tenant: TenantId, id: UploadId) -> Result<(Upload, Vec<u8>), Error> {
        self.read((tenant, id), async |tx, &(tenant, id)| uploads::open(tx, tenant, id).await).await
    }

    pub(super) async fn list_uploads(&self, tenant: TenantId) -> Vec<UploadId> {
        let listed = self.read(tenant, async |tx, &tenant| uploads::list(tx, tenant).await).await.unwrap();
        listed.iter().map(|upload| upload.id).collect()
    }

    async fn update_upload(&self, upload: &Upload, before: &'static str, progress: &'static str) -> Result<(), Error> {
        let input = (upload.tenant_id, upload.id, before, progress);
        let update = self.write(input, async |tx, &(tenant, id, before, progress)| {
            uploads::update(tx, tenant, id, before, "{}", progress).await
        });
        update.await
    }

    async fn delete_upload(&self, tenant: TenantId, id: UploadId) {
        self.write((tenant, id), async |tx, &(tenant, id)| uploads::delete(tx, tenant, id).await).await.unwrap();
    }

    async fn delete_expired_uploads(&self, limit: u32) -> u64 {
        let delete = self.write(limit, async |tx, &limit| {
            let now = tx.env().now();
            Ok(tx.delete_expired_uploads(now, limit).await?)
        });
        delete.await.unwrap()
    }
}

pub(super) async fn an_upload_has_its_content(h: Harness) {
    let tenant = h.tenant().await;
    let content: Vec<u8> = (0..100_000_u32).map(|byte| (byte % 256) as u8).collect();
    for content in [&content[..], b""] {
        let upload = h.upload(tenant, content).await;
        assert_eq!(h.open_upload(tenant, upload.id).await, Ok((upload, content.to_vec())));
    }
}

pub(super) async fn a_tenant_has_few_uploads(h: Harness) {
    let tenant = h.tenant().await;
    let mut all = Vec::new();
    for _ in 0..MAX_UPLOADS + 2 {
        all.insert(0, h.upload(tenant, b"email\n").await.id);
        h.clock.advance(std::time::Duration::from_millis(1));
    }
    assert_eq!(h.list_uploads(tenant).await, all[..MAX_UPLOADS as usize], "the newest first");
}

pub(super) async fn uploads_of_tenants_are_apart(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let upload = h.upload(tenant, b"email\n").await;
    assert_eq!(h.open_upload(other, upload.id).await, Err(Error::NotFound));
    let foreign = Upload { tenant_id: other, ..upload.clone() };
    assert_eq!(h.update_upload(&foreign, "", "1").await, Err(Error::NotFound));
    h.delete_upload(other, upload.id).await;
    assert_eq!(h.list_uploads(other).await, []);
    assert_eq!(h.list_uploads(tenant).await, [upload.id]);
    h.delete_upload(tenant, upload.id).await;
    assert_eq!(h.open_upload(tenant, upload.id).await, Err(Error::NotFound));
}

pub(super) async fn of_two_steps_of_an_import_one_counts(h: Harness) {
    let tenant = h.tenant().await;
    let upload = h.upload(tenant, b"email\n").await;
    assert_eq!(h.update_upload(&upload, "", "1").await, Ok(()));
    assert_eq!(h.update_upload(&upload, "", "2").await, Err(Error::PreconditionFailed));
    let (stored, content) = h.open_upload(tenant, upload.id).await.unwrap();
    assert_eq!((stored.choices.as_str(), stored.progress.as_str()), ("{}", "1"));
    assert_eq!(content, b"email\n");
}

pub(super) async fn an_upload_ends_with_a_day(h: Harness) {
    let tenant = h.tenant().await;
    let uploads = [h.upload(tenant, b"1").await, h.upload(tenant, b"2").await];
    h.clock.advance(LIFETIME);
    for upload in uploads {
        assert_eq!(h.open_upload(tenant, upload.id).await, Err(Error::NotFound));
    }
    assert_eq!(h.list_uploads(tenant).await, []);
    assert_eq!(h.delete_expired_uploads(1).await, 0);
    h.clock.advance(std::time::Duration::from_millis(1));
    let new = h.upload(tenant, b"3").await;
    assert_eq!(h.delete_expired_uploads(1).await, 1);
    assert_eq!(h.delete_expired_uploads(9).await, 1);
    assert_eq!(h.list_uploads(tenant).await, [new.id]);
}
