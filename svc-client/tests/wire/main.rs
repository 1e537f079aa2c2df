//! The client against servers whose responses the test sets: every retry, every error, every header.

mod collections;
mod errors;
mod fixture;
mod lists;
mod retries;
mod settings;
mod signing;
