//! All tests of the public interface, in one program: every file here is a module of it.

mod records;
mod rules;
mod service;
mod simulation;
