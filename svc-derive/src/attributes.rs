//! Reading of doc comments and attributes.

use proc_macro2::Span;
use syn::{Attribute, Data, DeriveInput, Error, Expr, ExprLit, Field, Fields, Ident, Lit, Meta, Result};

/// Returns the doc comment as Markdown: lines of a paragraph and of a list item are joined, paragraphs are separated by
/// a blank line.
pub(crate) fn doc_comment(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    let mut new_paragraph = false;
    for line in attributes.iter().filter_map(doc_line) {
        let line = line.trim();
        if line.is_empty() {
            new_paragraph = true;
            continue;
        }
        let separator = match (text.is_empty(), new_paragraph, line.starts_with("- ")) {
            (true, ..) => "",
            (false, true, _) => "\n\n",
            (false, false, true) => "\n",
            (false, false, false) => " ",
        };
        text.push_str(separator);
        text.push_str(line);
        new_paragraph = false;
    }
    text
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    if !pair.path.is_ident("doc") {
        return None;
    }
    match &pair.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// Returns the doc comment, or an error that asks for one.
pub(crate) fn required_doc_comment(attributes: &[Attribute], span: Span, of: &str) -> Result<String> {
    let text = doc_comment(attributes);
    if text.is_empty() {
        return Err(Error::new(
            span,
            format!("{of} needs a doc comment; it becomes the description in the JSON schema"),
        ));
    }
    Ok(text)
}

/// Returns the named fields of a struct with their names.
pub(crate) fn named_fields<'a>(input: &'a DeriveInput, derive: &str) -> Result<Vec<(&'a Ident, &'a Field)>> {
    let wrong_shape =
        || Error::new(input.ident.span(), format!("{derive} can be derived for structs with named fields"));
    let Data::Struct(data) = &input.data else { return Err(wrong_shape()) };
    let Fields::Named(fields) = &data.fields else { return Err(wrong_shape()) };
    Ok(fields.named.iter().filter_map(|field| Some((field.ident.as_ref()?, field))).collect())
}

/// Whether serde leaves a field out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SerdeSkips {
    /// The JSON form never has the field (`skip` and `skip_serializing`).
    pub(crate) always: bool,
    /// The JSON form does not have the field in some cases (`skip_serializing_if`).
    pub(crate) sometimes: bool,
    /// The field is not read either (`skip`).
    pub(crate) when_read: bool,
}

/// Returns where serde leaves the field out.
pub(crate) fn serde_skips(attributes: &[Attribute]) -> Result<SerdeSkips> {
    let mut skips = SerdeSkips::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| {
            skips.when_read |= meta.path.is_ident("skip");
            skips.always |= meta.path.is_ident("skip") || meta.path.is_ident("skip_serializing");
            skips.sometimes |= meta.path.is_ident("skip_serializing_if");
            if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<Expr>()?;
            }
            Ok(())
        })?;
    }
    Ok(skips)
}
