//! The texts of operations in a document.

use std::borrow::Cow;

use crate::accounts::platform_keys::Area;

/// Where the texts of an operation come from.
#[derive(Clone, Copy)]
pub(super) enum TextsOf {
    Fixed {
        summary: &'static str,
        description: &'static str,
        success: &'static str,
    },
    /// Those that every resource has, made of its profile.
    OfResource(fn(&Profile) -> Texts, &'static Profile),
}

/// The texts of an operation in a document, in Markdown.
#[derive(Clone, Debug)]
pub struct Texts {
    /// The title.
    pub summary: Cow<'static, str>,
    /// The effect of the operation.
    pub description: Cow<'static, str>,
    /// The content of a successful response.
    pub success: Cow<'static, str>,
}

impl TextsOf {
    pub(super) fn texts(self) -> Texts {
        match self {
            Self::Fixed { summary, description, success } => {
                let [summary, description, success] = [summary, description, success].map(Cow::Borrowed);
                Texts { summary, description, success }
            }
            Self::OfResource(texts, profile) => texts(profile),
        }
    }
}

/// The texts that the operations of a resource have in common.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The area of the platform API that they belong to.
    pub area: Area,
    /// The memory that a record needs in a response at most, in records of 64 KiB.
    pub memory: u32,
    /// A record with its article, such as "a contact".
    pub with_article: &'static str,
    /// A record without an article, such as "contact".
    pub singular: &'static str,
    /// Records, such as "contacts".
    pub plural: &'static str,
    /// The list.
    pub list: OperationText,
    /// The retrieval of one.
    pub get: &'static str,
    /// The creation.
    pub create: OperationText,
    /// The change.
    pub update: OperationText,
    /// The deletion.
    pub delete: OperationText,
}

/// The name of an operation, and what it says besides what it says of every resource.
#[derive(Clone, Copy, Debug)]
pub struct OperationText {
    /// The name, such as `listContacts`.
    pub id: &'static str,
    /// Sentences, in Markdown.
    pub text: &'static str,
}

impl OperationText {
    /// Says nothing of an operation that clients do not have.
    pub const NONE: Self = Self { id: "", text: "" };

    /// Says this of an operation.
    pub const fn new(id: &'static str, text: &'static str) -> Self {
        Self { id, text }
    }
}
