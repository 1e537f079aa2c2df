//! The file with all that an account knows of a contact. It is read and written page by page, and has the form of what
//! `svc contact export-all` writes.

use std::io;

use futures_util::stream::{self, StreamExt as _};
use serde::Serialize;
use svc_core::Svc;
use svc_core::error::{Error, StoreError};
use svc_core::personal::{ContactData, ContactDataParams};
use svc_core::resources::contacts::ContactId;
use svc_core::values::TenantId;

use super::page_response::{PageError, PageResponse};
use crate::kernel::response::Piece;

/// The memory in which a page is read and written, in records: 200 of the largest records, or 3 MiB of events, as JSON.
pub(super) const MEMORY: u32 = 256;
/// The lists in the order in which pages have them.
const LISTS: [&str; 6] = ["invoices", "payments", "quotes", "bookings", "jobs", "events"];

/// The writer of the file.
#[derive(Default)]
struct Writer {
    /// How many of the lists have begun. The last of them is open.
    begun: usize,
    /// Whether the open list has records.
    has_records: bool,
}

impl Writer {
    /// Returns the text of a page. The first one begins the file, and the last one ends it.
    fn page(&mut self, data: &ContactData) -> Result<String, StoreError> {
        let mut text = String::new();
        if self.begun == 0 {
            text = format!("{{\n  \"contact\": {}", json(&data.contact)?);
        }
        let ContactData { invoices, payments, quotes, bookings, jobs, events, .. } = data;
        self.list(&mut text, 0, invoices)?;
        self.list(&mut text, 1, payments)?;
        self.list(&mut text, 2, quotes)?;
        self.list(&mut text, 3, bookings)?;
        self.list(&mut text, 4, jobs)?;
        self.list(&mut text, 5, events)?;
        if data.next_cursor.is_none() {
            self.begin(&mut text, LISTS.len() - 1);
            text.push_str(&format!("],\n  \"is_complete\": {}\n}}\n", data.is_complete));
        }
        Ok(text)
    }

    fn list<R: Serialize>(&mut self, text: &mut String, list: usize, records: &[R]) -> Result<(), StoreError> {
        for record in records {
            self.begin(text, list);
            text.push_str(if self.has_records { ",\n    " } else { "\n    " });
            text.push_str(&json(record)?);
            self.has_records = true;
        }
        Ok(())
    }

    /// Begins a list, after those before it, unless it has begun.
    fn begin(&mut self, text: &mut String, list: usize) {
        while self.begun <= list {
            if self.begun > 0 {
                text.push(']');
            }
            text.push_str(&format!(",\n  \"{}\": [", LISTS[self.begun]));
            self.begun += 1;
            self.has_records = false;
        }
    }
}

fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Internal(error.to_string()))
}

/// Responds with the file.
///
/// # Errors
///
/// Those of the first page. When a later one cannot be read, the download fails.
pub(super) async fn respond(svc: &Svc, tenant: TenantId, id: ContactId) -> Result<PageResponse, PageError> {
    let svc = svc.clone();
    let read = async move |mut writer: Writer, cursor: Option<String>| -> Result<_, Error> {
        let data = svc.account(tenant).contacts().data_page(id, ContactDataParams { cursor }).await?;
        Ok((writer.page(&data)?, (writer, data.next_cursor)))
    };
    let (first, (writer, next)) = read(Writer::default(), None).await?;
    let first = Piece { bytes: first.into(), is_last: next.is_none() };
    let rest = stream::try_unfold((writer, next, read), |(writer, next, read)| async move {
        let Some(cursor) = next else { return Ok(None) };
        let (text, (writer, next)) = read(writer, Some(cursor)).await.map_err(|error| {
            tracing::error!(%error, "the data of a contact could not be read to its end");
            io::Error::other("the file could not be read to its end")
        })?;
        Ok(Some((Piece { bytes: text.into(), is_last: next.is_none() }, (writer, next, read))))
    });
    Ok(PageResponse::json(&format!("contact-{id}"), first, rest.boxed(), MEMORY))
}
