//! The pages, in the order of the navigation. The table of all of them is [`super::routes`].

pub(super) mod keys;
pub(super) mod overview;
pub(super) mod sign_in;
