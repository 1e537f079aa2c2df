//! All tests of the crate over sockets, in one program.
//!
//! Every file here is a module of it, as each further program would be linked with the whole server again.

// Tests run in the order of their names, and these wait longest.
#[cfg(all(feature = "standalone", feature = "nats"))]
mod brokers;
mod custom_kinds;
#[cfg(feature = "dashboard")]
mod dashboard;
mod deliver;
mod mount;
#[cfg(feature = "dashboard")]
mod oauth;
#[cfg(feature = "otlp")]
mod otlp;
