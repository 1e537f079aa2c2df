//! Writes the JSON of responses.
//!
//! It writes byte for byte what `serde_json` writes, with less work: a large part of a list is its JSON. Whether a text has
//! to be escaped is found out for eight bytes at once, and names of fields are written without finding out, as they are
//! identifiers. What is rare in responses is left to `serde_json`.

use serde::ser::{self, Error as _, SerializeStruct as _};
use serde::{Serialize, Serializer};
use serde_json::Error;

/// The size that most responses with one record do not exceed.
const CAPACITY: usize = 512;

/// The name by which `RawValue` tells a serializer that its text is JSON already.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Returns a value as JSON.
///
/// # Errors
///
/// Fails when the value cannot be serialized, such as a map whose keys are not texts.
pub(crate) fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    let mut json = Vec::with_capacity(CAPACITY);
    value.serialize(Json(&mut json))?;
    Ok(json)
}

/// Returns whether a text can be written between quotes as it is.
fn is_plain(text: &str) -> bool {
    let all = |byte: u8| u64::from_ne_bytes([byte; 8]);
    // The highest bit of each byte below the limit, and maybe of bytes above such a one: enough to know if there is any.
    let below = |word: u64, limit: u8| word.wrapping_sub(all(limit)) & !word;
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    words.iter().all(|word| {
        let word = u64::from_ne_bytes(*word);
        let (quote, backslash) = (below(word ^ all(b'"'), 1), below(word ^ all(b'\\'), 1));
        (below(word, 0x20) | quote | backslash) & all(0x80) == 0
    }) && rest.iter().all(|byte| *byte >= 0x20 && !matches!(byte, b'"' | b'\\'))
}

/// The serializer of one value, which is appended.
struct Json<'o>(&'o mut Vec<u8>);

impl<'o> Json<'o> {
    /// Appends a value as `serde_json` writes it.
    fn by_serde_json<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        serde_json::to_writer(self.0, value)
    }

    fn text(&mut self, text: &str) {
        self.0.reserve(text.len() + 2);
        self.0.push(b'"');
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(b'"');
    }

    fn name(&mut self, name: &'static str) {
        debug_assert!(is_plain(name), "{name} is no identifier");
        self.text(name);
        self.0.push(b':');
    }

    /// Opens a list or an object, which ends with `end`.
    fn open(self, begin: u8, end: &'static str) -> Compound<'o> {
        self.0.push(begin);
        Compound { json: self.0, is_first: true, end }
    }

    /// Opens the value of an enum that has data.
    fn open_variant(mut self, variant: &'static str, begin: u8, end: &'static str) -> Compound<'o> {
        self.0.push(b'{');
        self.name(variant);
        self.open(begin, end)
    }
}

/// Leaves the values of types to `serde_json`.
macro_rules! by_serde_json {
    ($($method:ident: $type:ty),+) => {$(
        fn $method(self, value: $type) -> Result<(), Error> {
            self.by_serde_json(&value)
        }
    )+};
}

impl<'o> Serializer for Json<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'o>;
    type SerializeTuple = Compound<'o>;
    type SerializeTupleStruct = Compound<'o>;
    type SerializeTupleVariant = Compound<'o>;
    type SerializeMap = Compound<'o>;
    type SerializeStruct = Compound<'o>;
    type SerializeStructVariant = Compound<'o>;

    by_serde_json! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_f32: f32, serialize_f64: f64, serialize_char: char, serialize_bytes: &[u8]
    }

    #[inline]
    fn serialize_str(mut self, text: &str) -> Result<(), Error> {
        if is_plain(text) {
            self.text(text);
            return Ok(());
        }
        self.by_serde_json(text)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.0.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut object = self.open(b'{', "}");
        object.field(variant, value)?;
        object.close()
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Compound<'o>, Error> {
        Ok(self.open(b'[', "]"))
    }

    fn serialize_tuple(self, _len: usize) -> Result<Compound<'o>, Error> {
        Ok(self.open(b'[', "]"))
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Compound<'o>, Error> {
        Ok(self.open(b'[', "]"))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Compound<'o>, Error> {
        Ok(self.open_variant(variant, b'[', "]}"))
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Compound<'o>, Error> {
        Ok(self.open(b'{', "}"))
    }

    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Compound<'o>, Error> {
        if name == RAW_VALUE {
            Ok(Compound { json: self.0, is_first: true, end: "" })
        } else {
            Ok(self.open(b'{', "}"))
        }
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Compound<'o>, Error> {
        Ok(self.open_variant(variant, b'{', "}}"))
    }
}

/// A list or an object that is being written.
struct Compound<'o> {
    json: &'o mut Vec<u8>,
    is_first: bool,
    /// What is written at its end.
    end: &'static str,
}

impl Compound<'_> {
    #[inline]
    fn next(&mut self) -> Json<'_> {
        if !std::mem::take(&mut self.is_first) {
            self.json.push(b',');
        }
        Json(self.json)
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(self.next())
    }

    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        if name == RAW_VALUE {
            return Json(self.json).by_serde_json(&RawText(value));
        }
        self.next().name(name);
        value.serialize(Json(self.json))
    }

    fn close(self) -> Result<(), Error> {
        self.json.extend_from_slice(self.end.as_bytes());
        Ok(())
    }
}

/// Implements the traits of compounds without names.
macro_rules! lists {
    ($($list:ident: $method:ident),+) => {$(
        impl ser::$list for Compound<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        }
    )+};
}

lists! {
    SerializeSeq: serialize_element, SerializeTuple: serialize_element, SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
}

/// Implements the traits of compounds whose names are known.
macro_rules! objects {
    ($($object:ident),+) => {$(
        impl ser::$object for Compound<'_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
                self.field(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        }
    )+};
}

objects! { SerializeStruct, SerializeStructVariant }

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let next = self.next();
        let begin = next.0.len();
        key.serialize(Json(next.0))?;
        if self.json.get(begin) == Some(&b'"') { Ok(()) } else { Err(Error::custom("the key of a map is not a text")) }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.json.push(b':');
        value.serialize(Json(self.json))
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

/// The text of a `RawValue`.
struct RawText<'t, T: ?Sized>(&'t T);

impl<T: Serialize + ?Sized> Serialize for RawText<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
        raw.serialize_field(RAW_VALUE, self.0)?;
        raw.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::de::DeserializeOwned;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};
    use svc_core::resources::{bookings::Booking, contacts::Contact, invoices::Invoice, jobs::Job, quotes::Quote};
    use svc_core::values::{EventKind, EventKinds};
    use svc_core::webhooks::samples;

    use super::*;

    #[track_caller]
    fn check<T: Serialize + ?Sized>(value: &T) {
        let expected = serde_json::to_string(value).unwrap();
        assert_eq!(String::from_utf8(to_vec(value).unwrap()).unwrap(), expected);
    }

    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(u8),
        Tuple(u8, &'static str),
        Struct { side: f64, name: Option<char> },
    }

    #[derive(Serialize)]
    struct Empty {}

    #[derive(Serialize)]
    struct Everything {
        raw: Box<RawValue>,
        raws: Vec<Box<RawValue>>,
        shapes: Vec<Shape>,
        tuple: (i128, f32, bool, ()),
        map: BTreeMap<&'static str, Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped: Option<u8>,
        empty: Empty,
        #[serde(flatten)]
        flattened: BTreeMap<&'static str, u8>,
    }

    #[test]
    fn every_form_is_written_as_serde_json_writes_it() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        check(&Everything {
            raw: raw("{\"a\": [1.50, \"\\u00fc\"]}"),
            raws: vec![raw("1.10"), raw("[ ]")],
            shapes: vec![
                Shape::Unit,
                Shape::Newtype(1),
                Shape::Tuple(2, "\"two\""),
                Shape::Struct { side: 0.1, name: Some('\n') },
                Shape::Struct { side: f64::NAN, name: None },
            ],
            tuple: (i128::MIN, 1e30, true, ()),
            map: BTreeMap::from([("", json!(null)), ("a \"b\"", json!({ "c": [], "d": {}, "e": -1 }))]),
            skipped: None,
            empty: Empty {},
            flattened: BTreeMap::from([("x", 1)]),
        });
        assert!(to_vec(&BTreeMap::from([(1, 2)])).is_err());
    }

    #[test]
    fn every_character_is_escaped_as_serde_json_does_it_wherever_it_is() {
        for character in ('\0'..='\u{ff}').chain(['\u{2028}', '\u{ffff}', '\u{10ffff}']) {
            for before in 0..20 {
                for after in [0, 1, 7, 8, 9] {
                    check(&format!("{}{character}{}", "~".repeat(before), " ".repeat(after)));
                }
            }
        }
    }

    #[test]
    fn records_are_written_as_serde_json_writes_them() {
        fn records<R: Serialize + DeserializeOwned>(kind: EventKind) {
            let data = samples::data(&EventKinds::default(), kind).unwrap();
            let record: R = serde_json::from_value(data.clone()).unwrap();
            check(&record);
            check(&data);
            check(&json!({ "data": [record], "next_cursor": null }));
        }
        records::<Contact>(EventKind::ContactCreated);
        records::<Booking>(EventKind::BookingCreated);
        records::<Invoice>(EventKind::InvoiceCreated);
        records::<Job>(EventKind::JobCreated);
        records::<Quote>(EventKind::QuoteCreated);
    }
}
