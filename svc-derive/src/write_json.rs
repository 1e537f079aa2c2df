//! `#[derive(WriteJson)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Attribute, DeriveInput, Error, Expr, LitByteStr, LitStr, Path, Result, Token, parse_quote};

use crate::attributes::named_fields;

/// When serde writes a field.
enum Presence {
    Always,
    Never,
    /// Unless this function returns true.
    Unless(Path),
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    if let Some(attribute) = input.attrs.iter().find(|attribute| attribute.path().is_ident("serde")) {
        return Err(Error::new_spanned(attribute, "WriteJson knows no attribute of serde for the whole struct"));
    }
    let mut writes = Vec::new();
    for (ident, field) in named_fields(input, "WriteJson")? {
        let begin = if writes.is_empty() { '{' } else { ',' };
        let begin = LitByteStr::new(format!("{begin}\"{ident}\":").as_bytes(), Span::call_site());
        let write = quote! {
            out.extend_from_slice(#begin);
            ::svc_core::output::WriteJson::write_json(&self.#ident, out);
        };
        match presence(&field.attrs)? {
            Presence::Always => writes.push(write),
            Presence::Never => {}
            Presence::Unless(_) if writes.is_empty() => {
                return Err(Error::new(ident.span(), "the first field must always be written"));
            }
            Presence::Unless(left_out) => writes.push(quote! { if !#left_out(&self.#ident) { #write } }),
        }
    }
    if writes.is_empty() {
        return Err(Error::new(name.span(), "WriteJson needs a field that is written"));
    }
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::svc_core::output::WriteJson));
    }
    let (parameters, arguments, conditions) = generics.split_for_impl();
    Ok(quote! {
        impl #parameters ::svc_core::output::WriteJson for #name #arguments #conditions {
            fn write_json(&self, out: &mut ::std::vec::Vec<u8>) {
                #(#writes)*
                out.push(b'}');
            }
        }
    })
}

/// Returns when serde writes a field with these attributes. Others that change what serde writes are refused.
fn presence(attributes: &[Attribute]) -> Result<Presence> {
    let mut presence = Presence::Always;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("skip") || meta.path.is_ident("skip_serializing") {
                presence = Presence::Never;
            } else if meta.path.is_ident("skip_serializing_if") {
                presence = Presence::Unless(meta.value()?.parse::<LitStr>()?.parse()?);
            } else if !meta.path.is_ident("default") {
                return Err(
                    meta.error("WriteJson knows `skip`, `skip_serializing`, `skip_serializing_if` and `default`")
                );
            } else if meta.input.peek(Token![=]) {
                meta.value()?.parse::<Expr>()?;
            }
            Ok(())
        })?;
    }
    Ok(presence)
}
