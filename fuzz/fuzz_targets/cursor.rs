//! Cursors: what was sealed opens to its position, in its own list alone; what opens was sealed.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use svc_core::input::{Fields, Input as _};
use svc_core::resources::pages::{CursorKey, ListParams, Order, CursorScope};
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

/// Microseconds that fit into a cursor.
const POSITIONS: i64 = 1 << 58;

#[derive(Arbitrary, Debug)]
struct Sent<'a> {
    key: [u8; 32],
    tenant: u128,
    position: i64,
    flipped: u8,
    made_up: u128,
    text: &'a str,
}

fuzz_target!(|sent: Sent<'_>| {
    let key = CursorKey::new(sent.key);
    let scope = |tenant| CursorScope::new(TenantId(Uuid::from_u128(tenant)), "contacts", None, &());
    let (own, other) = (scope(sent.tenant), scope(!sent.tenant));

    let position = Timestamp::from_micros(sent.position.rem_euclid(POSITIONS));
    let cursor = key.seal(&own, position);
    assert_eq!((cursor.get_version_num(), cursor.get_variant()), (8, uuid::Variant::RFC4122));
    assert_eq!(key.open(&own, cursor), Ok(position));
    key.open(&other, cursor).unwrap_err();
    let flipped = Uuid::from_u128(cursor.as_u128() ^ (1 << (sent.flipped % 128)));
    key.open(&own, flipped).unwrap_err();

    let made_up = Uuid::from_u128(sent.made_up);
    if let Ok(position) = key.open(&own, made_up) {
        assert_eq!(key.seal(&own, position), made_up);
    }

    let listed = |text: &str| {
        let mut fields = Fields::from_query(vec![("cursor".to_owned(), text.to_owned())]);
        let params = ListParams::take(&mut fields);
        fields.finish(params).and_then(|params| params.query(&key, &own, &()))
    };
    match listed(&cursor.to_string()).unwrap().order {
        Order::NewestFirst { before } => assert_eq!(before, Some(position)),
        Order::OldestChangeFirst { .. } => panic!("another order"),
    }
    if let Ok(listing) = listed(sent.text) {
        let Order::NewestFirst { before: Some(position) } = listing.order else { panic!("no position") };
        let canonical = sent.text.parse::<Uuid>().unwrap();
        assert_eq!(key.seal(&own, position), canonical);
    }
});
