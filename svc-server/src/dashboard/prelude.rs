//! The parts of pages.

pub(super) use maud::{Markup, html};
pub(super) use svc_core::accounts::sessions::Role;
pub(super) use svc_core::accounts::tenants::Tenant;

pub(super) use super::components::*;
pub(super) use super::context::Context;
pub(super) use super::form::Form;
pub(super) use super::forms::*;
pub(super) use super::layout;
pub(super) use super::page_response::{PageError, PageResponse, if_found};
pub(super) use super::submissions::*;
