//! The memory that responses need at most, in records of 64 KiB.

/// An event: data of 1 MiB, the JSON of the response while it grows, and the other fields.
pub(super) const EVENT: u32 = 49;
/// A page of events, whatever its limit. One read returns 3 MiB of data at most.
pub(super) const EVENTS: u32 = 3 * EVENT;
/// A page of attempts: 20 response bodies of 16 KiB, in JSON up to six times as long.
pub(super) const ATTEMPTS: u32 = 20 * 4;
/// The request log of an account, in which it is searched.
pub(super) const REQUEST_LOG: u32 = 32;
/// A list without pages, such as that of 500 keys with names of 1,200 bytes.
pub(super) const WHOLE_LIST: u32 = 32;
