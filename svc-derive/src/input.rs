//! `#[derive(Input)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Expr, Field, Result, Type};

use crate::attributes::{named_fields, required_doc_comment};

/// The attributes of the struct.
#[derive(Default)]
struct StructAttributes {
    record: Option<Type>,
    patch: bool,
}

impl StructAttributes {
    fn of(input: &DeriveInput) -> Result<Self> {
        let mut found = Self::default();
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("input")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("record") {
                    found.record = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("patch") {
                    found.patch = true;
                } else {
                    return Err(meta.error("expected `record = Type` or `patch`"));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

/// The attributes of a field.
#[derive(Default)]
struct FieldAttributes {
    default: Option<Expr>,
    flatten: bool,
}

impl FieldAttributes {
    fn of(field: &Field) -> Result<Self> {
        let mut found = Self::default();
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("input")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("default") {
                    found.default = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("flatten") {
                    found.flatten = true;
                } else {
                    return Err(meta.error("expected `default = value` or `flatten`"));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let description = required_doc_comment(&input.attrs, name.span(), "an input")?;
    let attributes = StructAttributes::of(input)?;
    let mut idents = Vec::new();
    let mut reads = Vec::new();
    let mut name_lists = Vec::new();
    let mut schemas = Vec::new();
    let mut writes = Vec::new();
    for (ident, field) in named_fields(input, "Input")? {
        let (field_name, field_type) = (ident.to_string(), &field.ty);
        let FieldAttributes { default, flatten } = FieldAttributes::of(field)?;
        if flatten {
            reads.push(quote! { let #ident = <#field_type as ::svc_core::input::Input>::take(fields); });
            name_lists.push(quote! { <#field_type as ::svc_core::input::FieldNames>::FIELD_NAMES });
            writes.push(quote! { ::svc_core::input::ToBody::write_fields(&self.#ident, object)?; });
            schemas.push(quote! {
                schemas.extend(<#field_type as ::svc_core::input::Input>::field_schemas(generator));
            });
        } else {
            let description = required_doc_comment(&field.attrs, ident.span(), "a field of an input")?;
            let with_default = default.map(|value| quote! { .with_default(#value) });
            reads.push(quote! { let #ident = fields.take::<#field_type>(#field_name); });
            name_lists.push(quote! { &[#field_name] });
            writes.push(quote! {
                if !::svc_core::input::FromJson::is_absent(&self.#ident) {
                    ::svc_core::input::schema::SerializeMap::serialize_entry(object, #field_name, &self.#ident)?;
                }
            });
            schemas.push(quote! {
                schemas.push(
                    ::svc_core::input::schema::input_field::<#field_type>(generator, #field_name, #description)
                        #with_default,
                );
            });
        }
        idents.push(ident);
    }
    let read_only = attributes.record.map(|record| {
        quote! {
            fn read_only() -> &'static [&'static str] {
                <#record as ::svc_core::input::FieldNames>::FIELD_NAMES
            }
        }
    });
    let patch = attributes.patch;
    let schema_name = name.to_string();
    Ok(quote! {
        impl ::svc_core::input::Input for #name {
            const NEEDS_A_FIELD: bool = #patch;

            fn take(fields: &mut ::svc_core::input::Fields) -> ::std::option::Option<Self> {
                // All fields are taken before the first failure returns, so that every failing field is named.
                #(#reads)*
                ::std::option::Option::Some(Self { #(#idents: #idents?,)* })
            }

            #read_only

            fn field_schemas(
                generator: &mut ::svc_core::input::schema::SchemaGenerator,
            ) -> ::std::vec::Vec<::svc_core::input::schema::FieldSchema> {
                let mut schemas = ::std::vec::Vec::new();
                #(#schemas)*
                schemas
            }
        }

        impl ::svc_core::input::ToBody for #name {
            fn write_fields<M: ::svc_core::input::schema::SerializeMap>(
                &self,
                object: &mut M,
            ) -> ::std::result::Result<(), M::Error> {
                #(#writes)*
                ::std::result::Result::Ok(())
            }
        }

        impl ::svc_core::input::FieldNames for #name {
            const FIELD_NAMES: &'static [&'static str] = {
                const LISTS: &[&[&str]] = &[#(#name_lists),*];
                const NAMES: [&str; ::svc_core::input::schema::total_length(LISTS)] =
                    ::svc_core::input::schema::concatenate(LISTS);
                &NAMES
            };
        }

        impl ::svc_core::input::schema::JsonSchema for #name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#schema_name)
            }
            fn json_schema(
                generator: &mut ::svc_core::input::schema::SchemaGenerator,
            ) -> ::svc_core::input::schema::Schema {
                let fields = <Self as ::svc_core::input::Input>::field_schemas(generator);
                ::svc_core::input::schema::input(#description, #patch, fields)
            }
        }
    })
}
