//! Work on whole databases.

mod copies;
