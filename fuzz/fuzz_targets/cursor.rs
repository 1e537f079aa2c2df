//! Cursors: a sealed cursor opens to its position in its own list only, and every cursor that opens was sealed.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use svc_core::input::{Fields, Input as _};
use svc_core::pages::{CursorKey, CursorScope, ListParams, Order};
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

/// The number of positions, in microseconds, that a cursor can hold.
const POSITIONS: i64 = 1 << 58;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    key: [u8; 32],
    tenant: u128,
    position: i64,
    flipped: u8,
    unsealed: u128,
    text: &'a str,
}

fuzz_target!(|input: Input<'_>| {
    let key = CursorKey::new(input.key);
    let scope = |tenant| CursorScope::new(TenantId(Uuid::from_u128(tenant)), "contacts", None, &());
    let (own, other) = (scope(input.tenant), scope(!input.tenant));

    let position = Timestamp::from_micros(input.position.rem_euclid(POSITIONS));
    let cursor = key.seal(&own, position);
    assert_eq!((cursor.get_version_num(), cursor.get_variant()), (8, uuid::Variant::RFC4122));
    assert_eq!(key.open(&own, cursor), Ok(position));
    key.open(&other, cursor).unwrap_err();
    let flipped = Uuid::from_u128(cursor.as_u128() ^ (1 << (input.flipped % 128)));
    key.open(&own, flipped).unwrap_err();

    let unsealed = Uuid::from_u128(input.unsealed);
    if let Ok(position) = key.open(&own, unsealed) {
        assert_eq!(key.seal(&own, position), unsealed);
    }

    let listed = |text: &str| {
        let mut fields = Fields::from_query(vec![("cursor".to_owned(), text.to_owned())]);
        let params = ListParams::take(&mut fields);
        fields.finish(params).and_then(|params| params.query(&key, &own, &()))
    };
    match listed(&cursor.to_string()).unwrap().order {
        Order::NewestFirst { before } => assert_eq!(before, Some(position)),
        Order::OldestChangeFirst { .. } => panic!("unexpected order"),
    }
    if let Ok(listing) = listed(input.text) {
        let Order::NewestFirst { before: Some(position) } = listing.order else { panic!("no position") };
        let canonical = input.text.parse::<Uuid>().unwrap();
        assert_eq!(key.seal(&own, position), canonical);
    }
});
