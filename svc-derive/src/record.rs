//! `#[derive(Record)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result, Type};

use crate::attributes::{named_fields, required_doc_comment, serde_skips};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let description = required_doc_comment(&input.attrs, name.span(), "a record")?;
    let is_readable = is_readable(input)?;
    let mut names = Vec::new();
    let mut properties = Vec::new();
    let mut reads = Vec::new();
    let mut idents = Vec::new();
    for (ident, field) in named_fields(input, "Record")? {
        let field_name = ident.to_string();
        let skips = serde_skips(&field.attrs)?;
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
        if !skips.always {
            let description = required_doc_comment(&field.attrs, ident.span(), "a field of a record")?;
            let required = !skips.sometimes;
            properties.push(quote! {
                ::svc_core::input::schema::record_field::<#schema_type>(
                    generator, #field_name, #description, #required,
                )
            });
        }
        let field_type = &field.ty;
        reads.push(match skips.when_read {
            true => quote! { let #ident = ::std::option::Option::Some(<#field_type>::default()); },
            false => quote! { let #ident = fields.take::<#field_type>(#field_name); },
        });
        idents.push(ident);
        names.push(field_name);
    }
    let input = is_readable.then(|| {
        quote! {
            impl ::svc_core::input::Input for #name {
                fn take(fields: &mut ::svc_core::input::Fields) -> ::std::option::Option<Self> {
                    // All fields are taken before the first failure returns, so that every failing field is named.
                    #(#reads)*
                    ::std::option::Option::Some(Self { #(#idents: #idents?,)* })
                }
            }
        }
    });
    let schema_name = name.to_string();
    Ok(quote! {
        #input

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

/// Whether the struct has the attribute `#[record(input)]`.
fn is_readable(input: &DeriveInput) -> Result<bool> {
    let mut readable = false;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("record")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("input") {
                return Err(meta.error("expected `input`"));
            }
            readable = true;
            Ok(())
        })?;
    }
    Ok(readable)
}
