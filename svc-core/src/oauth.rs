//! OAuth 2.0: how a third-party app gets to work on an account (`docs/oauth.md`).
//!
//! # Protocol
//!
//! 1. The app sends the browser of an owner to the service. [`authorization::check`] checks the request. An owner who is signed
//!    in chooses an account and allows it, which [`authorization::allow`] turns into a [grant](crate::accounts::grants) and a
//!    code (RFC 6749 §4.1, with PKCE, RFC 7636).
//! 2. [`tokens::request`] gives an access token and a refresh token for the code, once. A code that comes again ends what it
//!    gave, and nothing else.
//! 3. The app sends the access token as others send an API key. It is looked up in the transaction of each request.
//! 4. [`tokens::request`] gives another access token for the refresh token. The refresh token of a confidential app stays.
//!    That of a public app is replaced each time, since nothing else tells the app from a thief.
//! 5. [`revoke`] ends a grant with its tokens and the webhooks of the app, in one transaction.
//!
//! # A response that is lost
//!
//! The tokens that replace a refresh token are made from its text and a number that the store alone has, and the access token
//! from its scope and its resource as well. So a repeat of the request gets the same response, though the store keeps digests
//! only, as long as the new refresh token was not used and [`tokens::GRACE`] has not passed. Any other repeat means that two
//! hold the token: the grant is revoked.
//!
//! The rights of an access token never change after it was issued. A repeat with another scope or resource gets another access
//! token, and a repeat of a request whose access token was revoked since gets a new one. A refresh token keeps the scope and
//! the resource that the owner has granted, whatever part of them a request asks for.
//!
//! # Locks
//!
//! Whatever changes a code, a token or a grant locks the account first, and reads them after that. A consent, a change and a
//! deletion of an app lock the app, after the account. So an app is never deleted or disabled while an account connects it.

pub mod authorization;
mod disconnection;
mod parameters;
pub mod published;
mod revocation;
pub mod tokens;

pub use self::disconnection::{AppDisconnected, create_app, update_app};
pub use self::parameters::{Parameters, Repeated, scope_text};
pub use self::revocation::{AppAuthorized, AppRevoked, RevokeReason, delete_app, delete_app_at_once, revoke};
