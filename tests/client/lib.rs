//! The tests of svc-client against live servers are in `client.rs`.
