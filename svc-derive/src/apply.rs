//! `#[derive(Apply)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, Result, Type};

use crate::attributes::named_fields;

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let mut record: Option<Type> = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("apply")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("to") {
                return Err(meta.error("expected `to = Type`"));
            }
            record = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    let record = record.ok_or_else(|| Error::new(name.span(), "name the record: `#[apply(to = Type)]`"))?;
    let mut copied = Vec::new();
    for (ident, field) in named_fields(input, "Apply")? {
        let (mut skip, mut flatten) = (false, false);
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("apply")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("skip") {
                    skip = true;
                } else if meta.path.is_ident("flatten") {
                    flatten = true;
                } else {
                    return Err(meta.error("expected `skip` or `flatten`"));
                }
                Ok(())
            })?;
        }
        if flatten {
            copied.push(quote! { ::svc_core::input::Apply::apply_to(self.#ident, record); });
        } else if !skip {
            copied.push(quote! { ::svc_core::input::ApplyField::apply_field(self.#ident, &mut record.#ident); });
        }
    }
    Ok(quote! {
        impl ::svc_core::input::Apply<#record> for #name {
            fn apply_to(self, record: &mut #record) {
                #(#copied)*
            }
        }
    })
}
