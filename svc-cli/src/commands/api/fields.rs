//! The fields of a request, as they are typed: `-f key=value`, `-F key=value`, `key[inner]=value` and `key[]=value`.

use std::path::Path;

use svc_core::input::json::{self, Json};

use crate::commands::input::read_input;
use crate::document::Document;
use crate::exit::{Exit, Failure};

/// Fields with their values.
pub(super) type Pairs = Vec<(String, String)>;

/// Returns the body of a request with these fields: those whose values are texts, and those of the type that their values look
/// like.
///
/// # Errors
/// A name has no form of a field, or two contradict each other.
pub(super) fn to_body(texts: Pairs, typed: Pairs) -> Result<Vec<u8>, Failure> {
    let mut body = Json::Object(Vec::new());
    for (key, text) in texts {
        insert(&mut body, &key, Json::String(text))?;
    }
    for (key, text) in typed {
        let value = value(&text)?;
        insert(&mut body, &key, value)?;
    }
    serde_json::to_vec(&Document::Json(body))
        .map_err(|error| Failure::new(Exit::Failed, format!("The body cannot be written: {error}.")))
}

/// Returns the value that a text looks like.
fn value(text: &str) -> Result<Json, Failure> {
    match json::parse(text.as_bytes()) {
        Ok(value @ (Json::Null | Json::Bool(_) | Json::Number(_))) => Ok(value),
        _ => Ok(Json::String(String::from_utf8_lossy(&content(text)?).into_owned())),
    }
}

/// Returns the content of the file that a text names after an @, or the text itself.
pub(super) fn content(text: &str) -> Result<Vec<u8>, Failure> {
    match text.strip_prefix('@') {
        Some(file) => read_input(Path::new(file)),
        None => Ok(text.as_bytes().to_vec()),
    }
}

/// Sets the value of a field, whose name can lead into objects and lists.
fn insert(body: &mut Json, key: &str, value: Json) -> Result<(), Failure> {
    let refused = |reason: &str| Failure::new(Exit::Usage, format!("The field {key} {reason}."));
    let (first, rest) = key.split_once('[').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let mut names = vec![first];
    if let Some(rest) = rest {
        let inner = rest.strip_suffix(']').ok_or_else(|| refused("must end with a bracket, as key[inner] does"))?;
        names.extend(inner.split("]["));
    }
    let mut place = body;
    for name in names {
        place =
            step(place, name).ok_or_else(|| refused("is a text, an object and a list at once; give one of them"))?;
    }
    match place {
        // The place was made for it.
        Json::Null => *place = value,
        _ => return Err(refused("is given twice")),
    }
    Ok(())
}

/// Returns the place of a member, which is null if it is new. An empty name is the next item of a list.
fn step<'j>(place: &'j mut Json, name: &str) -> Option<&'j mut Json> {
    if matches!(place, Json::Null) {
        *place = if name.is_empty() { Json::Array(Vec::new()) } else { Json::Object(Vec::new()) };
    }
    match place {
        Json::Array(items) if name.is_empty() => {
            items.push(Json::Null);
            items.last_mut()
        }
        Json::Object(members) if !name.is_empty() => {
            let at = members.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                members.push((name.to_owned(), Json::Null));
                members.len() - 1
            });
            members.get_mut(at).map(|(_, value)| value)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(texts: &[&str], typed: &[&str]) -> Result<String, String> {
        let pairs = |fields: &[&str]| {
            let pair = |field: &&str| field.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
            fields.iter().filter_map(pair).collect::<Pairs>()
        };
        let body = to_body(pairs(texts), pairs(typed)).map_err(|failure| failure.message().to_owned())?;
        Ok(String::from_utf8(body).unwrap())
    }

    #[test]
    fn a_text_stays_a_text_and_a_typed_value_is_what_it_looks_like() {
        assert_eq!(body(&["phone=0412", "a=true", "b="], &[]).unwrap(), r#"{"phone":"0412","a":"true","b":""}"#);
        let typed = ["total=99.950", "paid=true", "notes=null", "name=Ada", "phone=0412", "x={}"];
        let want = r#"{"total":99.950,"paid":true,"notes":null,"name":"Ada","phone":"0412","x":"{}"}"#;
        assert_eq!(body(&[], &typed).unwrap(), want);
    }

    #[test]
    fn a_name_leads_into_objects_and_lists() {
        let texts = ["events[]=invoice.paid", "events[]=invoice.sent", "authentication[type]=bearer", "a[b][][c]=1"];
        let want =
            r#"{"events":["invoice.paid","invoice.sent"],"authentication":{"type":"bearer"},"a":{"b":[{"c":"1"}]}}"#;
        assert_eq!(body(&texts, &[]).unwrap(), want);
    }

    #[test]
    fn fields_that_contradict_each_other_are_refused() {
        for (texts, reason) in [
            (&["a=1", "a=2"][..], "The field a is given twice."),
            (&["a=1", "a[b]=2"], "The field a[b] is a text, an object and a list at once; give one of them."),
            (&["a[]=1", "a[b]=2"], "The field a[b] is a text, an object and a list at once; give one of them."),
            (&["a[b=1"], "The field a[b must end with a bracket, as key[inner] does."),
        ] {
            assert_eq!(body(texts, &[]), Err(reason.to_owned()));
        }
        assert!(body(&[], &["a=@missing.json"]).unwrap_err().starts_with("Cannot read missing.json: "));
    }
}
