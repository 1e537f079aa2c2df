//! The accounts of customers, which the code calls tenants, and their protection: API keys with scopes, request
//! signatures, rate limits, idempotency keys and the audit log.

pub mod audit;
pub mod idempotency;
pub mod keys;
pub mod limits;
pub mod signing;
pub mod tenants;
