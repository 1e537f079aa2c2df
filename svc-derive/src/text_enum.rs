//! `#[derive(TextEnum)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Expr, ExprLit, Fields, Ident, Lit, Meta, Result, Type, Variant};

use crate::attributes::required_doc_comment;

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let (name, visibility) = (&input.ident, &input.vis);
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(name.span(), "TextEnum can be derived for enums"));
    };
    let mut variants = Vec::new();
    let mut texts = Vec::new();
    let mut meanings = Vec::new();
    let mut described = Vec::new();
    let mut other = None;
    for variant in &data.variants {
        if is_other(variant) {
            other = Some(other_variant(variant)?);
            continue;
        }
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new(variant.ident.span(), "a variant of a TextEnum has no fields"));
        }
        let text = text_of(variant)?;
        let meaning = required_doc_comment(&variant.attrs, variant.ident.span(), "a variant of a TextEnum")?;
        described.push(format!("- `{text}`: {meaning}"));
        meanings.push(meaning);
        variants.push(&variant.ident);
        texts.push(text);
    }
    let described = described.join("\n");
    let refusal = format!("must be one of {}", texts.join(" "));
    let wrong_case = format!("{refusal}, in lower case");
    let schema_name = name.to_string();
    let named = match &other {
        None => quote! {
            /// Every value, in the order of declaration.
            #visibility const ALL: &'static [Self] = &[#(Self::#variants),*];

            /// Returns the text of this value, the same in JSON, in SQL and on the command line.
            #visibility const fn as_str(self) -> &'static str {
                match self { #(Self::#variants => #texts,)* }
            }

            /// Returns what this value means, as a sentence.
            #visibility const fn meaning(self) -> &'static str {
                match self { #(Self::#variants => #meanings,)* }
            }
        },
        Some((variant, _)) => quote! {
            /// Every value that is declared here, in the order of declaration.
            #visibility const BUILT_IN: &'static [Self] = &[#(Self::#variants),*];

            /// Returns the text of this value, the same in JSON, in SQL and on the command line.
            #visibility fn as_str(&self) -> &str {
                match self {
                    #(Self::#variants => #texts,)*
                    Self::#variant(other) => other.as_str(),
                }
            }

            /// Returns what this value means, as a sentence; `None` for one that is not declared here.
            #visibility const fn meaning(&self) -> ::std::option::Option<&'static str> {
                match self {
                    #(Self::#variants => ::std::option::Option::Some(#meanings),)*
                    Self::#variant(_) => ::std::option::Option::None,
                }
            }
        },
    };
    let from_other = match &other {
        None => quote! { ::std::option::Option::None },
        Some((variant, of)) => quote! { <#of>::from_text(text).map(Self::#variant) },
    };
    Ok(quote! {
        impl #name {
            #named

            /// Returns the value with this text, or `None` if there is none.
            #visibility fn from_text(text: &str) -> ::std::option::Option<Self> {
                match text {
                    #(#texts => ::std::option::Option::Some(Self::#variants),)*
                    _ => #from_other,
                }
            }
        }

        impl ::std::fmt::Display for #name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::svc_core::input::schema::Serialize for #name {
            fn serialize<S: ::svc_core::input::schema::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for #name {
            type Err = ::svc_core::error::Issue;

            fn from_str(text: &str) -> ::std::result::Result<Self, ::svc_core::error::Issue> {
                Self::from_text(text).ok_or_else(|| {
                    let is_known = Self::from_text(&text.to_lowercase()).is_some();
                    let refusal = if is_known { #wrong_case } else { #refusal };
                    ::svc_core::error::Issue::new(::svc_core::error::FieldCode::InvalidEnum, refusal)
                })
            }
        }

        impl<'de> ::svc_core::input::schema::Deserialize<'de> for #name {
            fn deserialize<D: ::svc_core::input::schema::Deserializer<'de>>(
                deserializer: D,
            ) -> ::std::result::Result<Self, D::Error> {
                ::svc_core::input::schema::deserialize_text(deserializer)
            }
        }

        impl ::svc_core::input::FromJson for #name {
            fn from_json(
                json: ::svc_core::input::json::Json,
            ) -> ::std::result::Result<Self, ::svc_core::error::Issue> {
                json.into_string()?.parse()
            }
        }

        impl ::svc_core::input::schema::JsonSchema for #name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#schema_name)
            }
            fn json_schema(
                _: &mut ::svc_core::input::schema::SchemaGenerator,
            ) -> ::svc_core::input::schema::Schema {
                ::svc_core::input::schema::text_enum(&[#(#texts),*], #described)
            }
        }
    })
}

/// Returns whether a variant has all values that have no variant of their own: `#[text(other)]`.
fn is_other(variant: &Variant) -> bool {
    let is_other =
        |attribute: &Attribute| matches!(&attribute.meta, Meta::List(list) if list.tokens.to_string() == "other");
    variant.attrs.iter().any(|attribute| attribute.path().is_ident("text") && is_other(attribute))
}

/// Returns the name of the variant for other values, and the type of its only field.
fn other_variant(variant: &Variant) -> Result<(&Ident, &Type)> {
    match &variant.fields {
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => Ok((&variant.ident, &fields.unnamed[0].ty)),
        _ => Err(Error::new(variant.ident.span(), "a variant for other values has one field, without a name")),
    }
}

/// Returns the text of a variant: that of `#[text = "…"]`, or else its name in snake case.
fn text_of(variant: &Variant) -> Result<String> {
    let attribute = variant.attrs.iter().find(|attribute| attribute.path().is_ident("text"));
    match attribute {
        Some(attribute) => given_text(attribute),
        None => Ok(snake_case(&variant.ident.to_string())),
    }
}

fn given_text(attribute: &Attribute) -> Result<String> {
    if let Meta::NameValue(pair) = &attribute.meta
        && let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value
    {
        return Ok(text.value());
    }
    Err(Error::new_spanned(attribute, "expected `#[text = \"…\"]`"))
}

fn snake_case(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variants_become_snake_case() {
        for (name, text) in [("Draft", "draft"), ("NoShow", "no_show"), ("AutoPaused", "auto_paused")] {
            assert_eq!(snake_case(name), text);
        }
    }
}
