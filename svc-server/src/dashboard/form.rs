//! The fields of forms and of queries.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use svc_core::crypto::sha256;
use svc_core::error::StoreError;

use super::page_response::PageError;

/// The number of fields of the largest form.
const MAX_FIELDS: usize = 500;
/// The size of the largest form that is read in place, in bytes. It takes 0.1 ms.
const SMALL_FORM: usize = 32 * 1024;

/// The most characters of the name of a file.
const MAX_FILE_NAME: usize = 100;

/// The fields of a form or of a query.
#[derive(Debug, Default)]
pub(super) struct Form {
    fields: Vec<(String, String)>,
    /// The file that was sent with the form.
    pub(super) file: Option<UploadedFile>,
}

/// A file that was sent with a form.
#[derive(Debug)]
pub(super) struct UploadedFile {
    /// The name of the file, without the folder that it was in.
    pub(super) name: String,
    pub(super) content: Bytes,
}

impl Form {
    /// Reads the fields of a form that was sent. A large one is read on a thread of its own.
    ///
    /// # Errors
    ///
    /// Returns [`PageError::Invalid`] when the form has more fields than a page can have.
    pub(super) async fn read(body: Bytes) -> Result<Self, PageError> {
        if body.iter().filter(|byte| **byte == b'&').count() >= MAX_FIELDS {
            return Err(PageError::Invalid(format!("A form has at most {MAX_FIELDS} fields.")));
        }
        if body.len() <= SMALL_FORM {
            return Ok(Self::of(&body));
        }
        let read = tokio::task::spawn_blocking(move || Self::of(&body));
        read.await.map_err(|error| PageError::Internal(StoreError::Internal(error.to_string())))
    }

    /// Reads the fields of a form that was sent as `multipart/form-data`, with a file in its field `file`. The form then has the
    /// digest of the file in that field.
    ///
    /// # Errors
    ///
    /// Returns [`PageError::Invalid`] when the body is none, or has more fields than a page can have.
    pub(super) async fn read_multipart(content_type: &str, body: Bytes) -> Result<Self, PageError> {
        let invalid = |error: multer::Error| PageError::Invalid(format!("The form cannot be read: {error}."));
        let boundary = multer::parse_boundary(content_type).map_err(invalid)?;
        let mut multipart = multer::Multipart::new(stream::iter([Ok::<_, Infallible>(body)]), boundary);
        let mut form = Self::default();
        while let Some(field) = multipart.next_field().await.map_err(invalid)? {
            if form.fields.len() >= MAX_FIELDS {
                return Err(PageError::Invalid(format!("A form has at most {MAX_FIELDS} fields.")));
            }
            let name = field.name().unwrap_or_default().to_owned();
            let file = field.file_name().map(|path| path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned());
            let content = field.bytes().await.map_err(invalid)?;
            match file {
                // Browsers send an empty file without a name if none was chosen.
                Some(file) if file.is_empty() && content.is_empty() => {}
                Some(file) if name == "file" => {
                    form.fields.push((name, hex::encode(sha256(&content))));
                    let name = file.chars().filter(|char| !char.is_control()).take(MAX_FILE_NAME).collect();
                    form.file = Some(UploadedFile { name, content });
                }
                _ => form.fields.push((name, String::from_utf8_lossy(&content).into_owned())),
            }
        }
        Ok(form)
    }

    /// Reads fields that are encoded as `application/x-www-form-urlencoded`.
    pub(super) fn of(text: &[u8]) -> Self {
        let fields = url::form_urlencoded::parse(text).map(|(name, value)| (name.into_owned(), value.into_owned()));
        Self { fields: fields.collect(), file: None }
    }

    /// Returns a form with these fields.
    pub(super) fn from_fields(fields: Vec<(&str, String)>) -> Self {
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { fields, file: None }
    }

    /// Returns the value of a field without the spaces around it. A field that was not sent is empty.
    pub(super) fn text(&self, name: &str) -> &str {
        self.fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.trim())
    }

    /// Returns all values of a field, in their order.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Returns those of these fields that are not empty, encoded as a query.
    pub(super) fn encoded(&self, names: &[&str]) -> String {
        let given = names.iter().filter_map(|name| Some((name, self.given(name)?)));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish()
    }

    /// Returns all fields but these in the encoding of forms.
    pub(super) fn encoded_without(&self, names: &[&str]) -> String {
        let others = self.fields.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish()
    }

    /// Returns a digest of all fields: the version of what a form shows that has no version of its own.
    pub(super) fn digest(&self) -> String {
        hex::encode(sha256(self.encoded_without(&[]).as_bytes()))
    }

    /// Returns the value of a field that was sent and is not empty.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }
}
