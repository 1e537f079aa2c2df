//! Work on whole databases.

mod copies;
mod upkeep;
