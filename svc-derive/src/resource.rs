//! `#[derive(Resource)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, LitStr, Path, Result, Type};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let mut collection: Option<LitStr> = None;
    let mut filter: Option<Type> = None;
    let mut soft_delete = false;
    let mut unversioned = false;
    let mut own_only = false;
    let mut audited: Option<LitStr> = None;
    let mut profile: Option<Path> = None;
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
            } else if meta.path.is_ident("own_only") {
                own_only = true;
            } else if meta.path.is_ident("profile") {
                profile = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("audited") {
                audited = Some(meta.value()?.parse()?);
            } else {
                let expected =
                    "`collection`, `filter`, `profile`, `soft_delete`, `unversioned`, `own_only` or `audited`";
                return Err(meta.error(format!("expected {expected}")));
            }
            Ok(())
        })?;
    }
    let missing = |what: &str| Error::new(name.span(), format!("`#[resource({what})]` is missing"));
    let collection = collection.ok_or_else(|| missing("collection = \"…\""))?;
    let filter = filter.ok_or_else(|| missing("filter = Type"))?;
    let profile = profile.ok_or_else(|| missing("profile = CONSTANT"))?;
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
    let own = own_only.then(|| quote! { const OWN_ONLY: bool = true; });
    let grant_id = own_only.then(|| {
        quote! {
            fn grant_id(&self) -> ::std::option::Option<::svc_core::accounts::grants::GrantId> {
                self.grant_id
            }
        }
    });
    Ok(quote! {
        impl ::svc_core::resources::Resource for #name {
            const COLLECTION: &'static str = #collection;
            const PROFILE: &'static ::svc_core::operation::Profile = &#profile;
            type Filter = #filter;
            #versioned
            #audited
            #own

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
            #grant_id
            fn repository(
                tx: &mut dyn ::svc_core::store::Tx,
            ) -> &mut dyn ::svc_core::store::Repository<Self> {
                tx
            }
        }
    })
}
