//! `#[derive(Resource)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, LitStr, Result, Type};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let mut collection: Option<LitStr> = None;
    let mut filter: Option<Type> = None;
    let mut soft_delete = false;
    let mut unversioned = false;
    let mut audited: Option<LitStr> = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("resource")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("collection") {
                collection = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("filter") {
                filter = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("soft_delete") {
                soft_delete = true;
            } else if meta.path.is_ident("unversioned") {
                unversioned = true;
            } else if meta.path.is_ident("audited") {
                audited = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error("expected `collection`, `filter`, `soft_delete`, `unversioned` or `audited`"));
            }
            Ok(())
        })?;
    }
    let missing = |what: &str| Error::new(name.span(), format!("`#[resource({what})]` is missing"));
    let collection = collection.ok_or_else(|| missing("collection = \"…\""))?;
    let filter = filter.ok_or_else(|| missing("filter = Type"))?;
    let audited = audited.map(|kind| {
        quote! { const AUDITED: ::std::option::Option<&'static str> = ::std::option::Option::Some(#kind); }
    });
    let deleted_at = soft_delete.then(|| {
        quote! {
            fn deleted_at(&self) -> ::std::option::Option<::svc_core::values::Timestamp> {
                self.deleted_at
            }
        }
    });
    let versioned = unversioned.then(|| quote! { const VERSIONED: bool = false; });
    Ok(quote! {
        impl ::svc_core::resources::Resource for #name {
            const COLLECTION: &'static str = #collection;
            type Filter = #filter;
            #versioned
            #audited

            fn id(&self) -> ::svc_core::values::Id<Self> {
                self.id
            }
            fn created_at(&self) -> ::svc_core::values::Timestamp {
                self.created_at
            }
            fn updated_at(&self) -> ::svc_core::values::Timestamp {
                self.updated_at
            }
            #deleted_at
            fn repository(
                tx: &mut dyn ::svc_core::store::Tx,
            ) -> &mut dyn ::svc_core::store::Repository<Self> {
                tx
            }
        }
    })
}
