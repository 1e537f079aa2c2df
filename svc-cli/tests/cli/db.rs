//! `svc db`.

mod copies;
mod upkeep;
