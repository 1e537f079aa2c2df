//! `#[derive(Record)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result, Type};

use crate::attributes::{named_fields, required_doc_comment, serde_skips};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let description = required_doc_comment(&input.attrs, name.span(), "a record")?;
    let mut names = Vec::new();
    let mut properties = Vec::new();
    for (ident, field) in named_fields(input, "Record")? {
        let field_name = ident.to_string();
        let (skipped, optional) = serde_skips(&field.attrs)?;
        let mut schema_type = field.ty.clone();
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("record")) {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("schema") {
                    return Err(meta.error("expected `schema = Type`"));
                }
                schema_type = meta.value()?.parse::<Type>()?;
                Ok(())
            })?;
        }
        if !skipped {
            let description = required_doc_comment(&field.attrs, ident.span(), "a field of a record")?;
            let required = !optional;
            properties.push(quote! {
                ::svc_core::input::schema::record_field::<#schema_type>(
                    generator, #field_name, #description, #required,
                )
            });
        }
        names.push(field_name);
    }
    let schema_name = name.to_string();
    Ok(quote! {
        impl ::svc_core::input::FieldNames for #name {
            const FIELD_NAMES: &'static [&'static str] = &[#(#names),*];
        }

        impl ::svc_core::input::schema::JsonSchema for #name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#schema_name)
            }
            fn json_schema(
                generator: &mut ::svc_core::input::schema::SchemaGenerator,
            ) -> ::svc_core::input::schema::Schema {
                let fields = ::std::vec![#(#properties),*];
                ::svc_core::input::schema::record(#description, fields)
            }
        }
    })
}
