//! The derives of [svc-core](https://docs.rs/svc-core).
//!
//! A record of the API, the bodies that create and change it, and the enums in its fields are plain structs and enums.
//! These derives add what follows from their fields: reading, copying, names and JSON schemas. The doc comments are the
//! descriptions in the schemas, and so in the OpenAPI document; a field without one does not compile.
//!
//! | Derive | Implements | For |
//! |---|---|---|
//! | [`Record`] | `FieldNames`, `JsonSchema`, and `Input` on demand | what the API returns |
//! | [`Input`] | `Input`, `ToBody`, `FieldNames`, `JsonSchema` | bodies and query parameters |
//! | [`Apply`] | `Apply<Record>` | inputs whose fields are copied into a record |
//! | [`Resource`] | `Resource` | records with a collection of their own, such as `/contacts` |
//! | [`TextEnum`] | parser, `meaning`, `Display`, `FromStr`, `Serialize`, `Deserialize`, `FromJson`, `JsonSchema` | enums that are written as text |
//!
//! svc-core exports each derive beside the trait of the same name, so an application has no need of this crate. The
//! generated code names everything by its full path below `::svc_core`.
//!
//! # Examples
//!
#![doc = include_str!("../examples/derives.md")]

mod apply;
mod attributes;
mod input;
mod record;
mod resource;
mod text_enum;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, parse_macro_input};

fn derive(
    tokens: TokenStream,
    expand: impl FnOnce(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let input = parse_macro_input!(tokens as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Implements `FieldNames` and `JsonSchema` for a record that the API returns.
///
/// The schema is an object with the fields as properties, each with its doc comment as description. All of them are
/// required, as the API writes null for what is empty. Derive serde's `Serialize` beside it.
///
/// # Attributes of the struct
///
/// - `#[record(input)]` also implements `Input`, which reads a record back with all its fields, as from an export. Every
///   field must implement `FromJson`, and those with `#[serde(skip)]` `Default`.
///
/// # Attributes of a field
///
/// - `#[serde(skip)]` leaves the field out of the schema. It stays in `FIELD_NAMES`, so a body that names it is
///   refused with `read_only_field`.
/// - `#[serde(skip_serializing_if = "…")]` makes the property one that is not required.
/// - `#[record(schema = Type)]` takes the schema of another type: `String` for an enum whose values the schema should
///   not list, or the inner type of an `Option` that is left out instead of null.
///
/// # Examples
///
#[doc = include_str!("../examples/record.md")]
#[proc_macro_derive(Record, attributes(record, serde))]
pub fn derive_record(tokens: TokenStream) -> TokenStream {
    derive(tokens, record::expand)
}

/// Implements `Input`, `ToBody`, `FieldNames` and `JsonSchema` for a body or a set of query parameters. The types of the
/// fields must be `Serialize`.
///
/// The type of a field says whether it must be sent: `T` is required, `Option<T>` is null when it is left out, and
/// `Patch<T>` tells a field that was left out from one that was sent.
///
/// # Attributes of the struct
///
/// - `#[input(record = Type)]` names the record. Its fields that the input does not have are refused with
///   `read_only_field` instead of `unknown_field`.
/// - `#[input(patch)]` marks the body of a PATCH: it needs at least one field.
///
/// # Attributes of a field
///
/// - `#[input(default = value)]` documents in the schema what applies when the field is left out. It does not change
///   how the field is read. Generated clients send the value, so it is for a value that is the same for every caller.
/// - `#[input(flatten)]` takes the fields of another input, as if they stood here.
///
/// # Examples
///
#[doc = include_str!("../examples/input.md")]
#[proc_macro_derive(Input, attributes(input))]
pub fn derive_input(tokens: TokenStream) -> TokenStream {
    derive(tokens, input::expand)
}

/// Implements `Apply<Record>`: copies the fields of an input into the fields of a record that have the same name.
///
/// `T` and `Option<T>` replace the value of the record, and so does a `Patch<T>` that was sent. A `T` can also be
/// copied into an `Option<T>`.
///
/// # Attributes
///
/// - `#[apply(to = Type)]` on the struct names the record.
/// - `#[apply(skip)]` on a field leaves it to the rules of the resource: an amount that depends on the currency, or a
///   status with a time beside it.
/// - `#[apply(flatten)]` on a field copies the fields of another input that implements `Apply` for the same record.
///
/// # Examples
///
#[doc = include_str!("../examples/apply.md")]
#[proc_macro_derive(Apply, attributes(apply))]
pub fn derive_apply(tokens: TokenStream) -> TokenStream {
    derive(tokens, apply::expand)
}

/// Implements `Resource` for a record with the fields `id`, `created_at` and `updated_at`.
///
/// The store has to implement `Repository` for the record, as part of its `Tx`; so this derive is for svc-core.
///
/// # Attributes of the struct
///
/// - `#[resource(collection = "contacts")]` is the segment in the path.
/// - `#[resource(filter = ContactFilter)]` is the type of the list's own query parameters.
/// - `#[resource(profile = PROFILE)]` is a constant with what its operations have in common.
/// - `#[resource(soft_delete)]`, for a record with a field `deleted_at`, keeps the rows of deleted records.
/// - `#[resource(own_only)]`, for a record with a field `grant_id`, shows an app only the records that it made.
/// - `#[resource(audited = "webhook")]` records every change in the audit log, under this kind of object.
///
/// # Examples
///
/// ```ignore
/// #[derive(Clone, Debug, PartialEq, Serialize, Record, Resource)]
/// #[resource(collection = "contacts", filter = ContactFilter, profile = PROFILE, soft_delete)]
/// pub struct Contact {
///     // …
/// }
/// ```
#[proc_macro_derive(Resource, attributes(resource))]
pub fn derive_resource(tokens: TokenStream) -> TokenStream {
    derive(tokens, resource::expand)
}

/// Gives an enum a fixed text per variant: in JSON, in SQL and on the command line.
///
/// The text of a variant is its name in snake case, or that of `#[text = "…"]`. Its doc comment says what the value
/// means and is part of the description of its schema.
///
/// It generates `ALL`, `as_str`, `from_text` and `meaning`, and implements `Display`, `Serialize`, `FromJson` and `JsonSchema`.
/// The enum must be `Copy`.
///
/// One variant may be `#[text(other)]` and hold a type with `as_str` and `from_text`, for texts that are not declared
/// here. The list of the others is then named `BUILT_IN`, the schema has these alone, and there is no
/// `meaning`.
///
/// # Examples
///
#[doc = include_str!("../examples/text_enum.md")]
#[proc_macro_derive(TextEnum, attributes(text))]
pub fn derive_text_enum(tokens: TokenStream) -> TokenStream {
    derive(tokens, text_enum::expand)
}
