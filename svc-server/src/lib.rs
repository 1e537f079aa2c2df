//! The svc API over HTTP.
//!
//! [`Api`] is a service: hand it requests, mount it in an axum application, or let [`serve`] listen for it.
//! A request goes through [`service`] (the order of the checks) by way of the table in [`routes`], which names
//! the handler in [`api`]; errors become answers in [`problem`], and only there.

pub mod api;
pub mod auth;
pub mod config;
pub mod cors;
pub mod deliver;
pub mod demo;
pub mod idempotency;
pub mod limits;
pub mod metrics;
pub mod openapi;
pub mod problem;
pub mod proxy;
pub mod reply;
pub mod resolve;
pub mod routes;
pub mod run;
pub mod serve;
pub mod service;
pub mod telemetry;
mod upkeep;

pub use self::service::{Api, Settings};
