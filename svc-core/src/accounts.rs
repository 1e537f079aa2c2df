//! Accounts of customers (tenants) and what guards them: API keys with their scopes, signatures of requests, rate
//! limits, idempotency keys and the audit log.

pub mod audit;
pub mod idempotency;
pub mod keys;
pub mod limits;
pub mod signing;
pub mod tenants;
