//! All tests with the vectors of `fixtures/`, in one program: every file here is a module of it.

mod macs;
mod snippets;
mod vectors;
