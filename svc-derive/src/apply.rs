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
        let mut skip = false;
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("apply")) {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("skip") {
                    return Err(meta.error("expected `skip`"));
                }
                skip = true;
                Ok(())
            })?;
        }
        if !skip {
            copied.push(ident);
        }
    }
    Ok(quote! {
        impl ::svc_core::input::Apply<#record> for #name {
            fn apply_to(self, record: &mut #record) {
                #(::svc_core::input::ApplyField::apply_field(self.#copied, &mut record.#copied);)*
            }
        }
    })
}
