//! The versions of the APIs, and the limits of their writes.

use http::Method;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::limits::CappedCollection;
use svc_core::operation::{self, About};

/// A version of the API. Both versions of the public API have the same operations today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The stable version.
    V1,
    /// The preview of the next version.
    V2,
    /// The platform API, which has operations and a listener of its own.
    Platform,
    /// The tools of assistants, which are operations of the public API.
    Mcp,
    /// Those of them that change nothing.
    McpReadOnly,
}

/// The versions of the public API.
pub const VERSIONS: [Version; 2] = [Version::V1, Version::V2];

impl Version {
    /// Returns the path in front of the paths of the operations.
    pub fn path(self) -> &'static str {
        match self {
            Self::V1 => "/api/v1",
            Self::V2 => "/api/v2",
            Self::Platform => "/platform/v1",
            Self::Mcp => "/mcp",
            Self::McpReadOnly => "/mcp/readonly",
        }
    }

    /// Returns the path of an operation after that, in the notation of OpenAPI and of the router, such as `/contacts/{id}`. The
    /// keys of the platform API alone open more than one account, so its paths name it.
    pub fn path_of(self, operation: &About) -> String {
        if self == Self::Platform { operation.path() } else { operation.path_in_account() }
    }

    /// Returns the version that clients see in the path of a record: assistants see no paths.
    pub(crate) fn for_clients(self) -> Self {
        match self {
            Self::Mcp | Self::McpReadOnly => Self::V1,
            version => version,
        }
    }

    /// Returns the name of the version, such as `v1` or `platform-v1`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::Platform => "platform-v1",
            Self::Mcp => "mcp",
            Self::McpReadOnly => "mcp-readonly",
        }
    }

    /// Returns the version number of its OpenAPI document.
    pub fn number(self) -> &'static str {
        match self {
            Self::V1 | Self::Platform | Self::Mcp | Self::McpReadOnly => "1.0.0",
            Self::V2 => "2.0.0-preview",
        }
    }
}

/// Returns the method of an operation. HEAD works wherever GET does.
pub fn method_of(operation: &About) -> Method {
    match operation.method {
        operation::Method::Get => Method::GET,
        operation::Method::Post => Method::POST,
        operation::Method::Patch => Method::PATCH,
        operation::Method::Delete => Method::DELETE,
    }
}

/// The number of writes to a collection that are allowed in a window of 60 seconds, per key, method and route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultWriteLimit {
    /// The collection.
    pub collection: CappedCollection,
    /// Writes per window.
    pub limit: u32,
}

/// The limits of writes, unless the operator sets others (`docs/contract.md`, "Rate limits").
pub const DEFAULT_WRITE_LIMITS: [DefaultWriteLimit; 5] = [
    DefaultWriteLimit { collection: CappedCollection::Contacts, limit: 30 },
    DefaultWriteLimit { collection: CappedCollection::Bookings, limit: 30 },
    DefaultWriteLimit { collection: CappedCollection::Quotes, limit: 20 },
    DefaultWriteLimit { collection: CappedCollection::Jobs, limit: 30 },
    DefaultWriteLimit { collection: CappedCollection::Webhooks, limit: 20 },
];

/// Returns the default limit of the writes that an operation counts with; `None` for reads.
pub fn default_write_limit(operation: &About) -> Option<DefaultWriteLimit> {
    let limit = DEFAULT_WRITE_LIMITS.into_iter().find(|limit| limit.collection.as_str() == operation.tag);
    limit.filter(|_| operation.scope() == Scope::Write)
}
