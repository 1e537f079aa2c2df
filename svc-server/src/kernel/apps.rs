//! Apps (OAuth 2.0): what this service is to them.

use svc_core::oauth::authorization::Issuer;

use super::origin::Origin;

/// Which apps owners can let work on their accounts (OAuth 2.0, draft-ietf-oauth-client-id-metadata-document).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "standalone", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum OauthClients {
    /// Those that were registered with the operator.
    #[default]
    Registered,
    /// Registered apps and those that publish their description at a URL, their client id, as assistants do. The page of consent says that
    /// nobody has verified them.
    Metadata,
}

/// The settings of the authorization server.
#[derive(Clone, Debug)]
pub struct OauthSettings {
    /// The origin of this server as the world sees it, such as `https://api.example.com`.
    pub origin: Origin,
    /// Which apps owners can let work on their accounts. Those that were registered by default.
    pub clients: OauthClients,
}

impl OauthSettings {
    /// Lets registered apps work, at this origin.
    pub fn new(origin: Origin) -> Self {
        Self { origin, clients: OauthClients::default() }
    }
}

/// The properties of this service as apps see it.
pub(crate) struct Apps {
    pub(crate) issuer: Issuer,
    /// The origin of the issuer.
    pub(crate) origin: Origin,
    /// The resources that tokens are for. A path that begins with another one comes before it.
    pub(crate) resources: Vec<Resource>,
    /// Whether apps may publish what they are, in place of being registered.
    pub(crate) takes_published: bool,
}

/// A resource that tokens are for, below the issuer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    pub(crate) path: &'static str,
    pub(crate) is_read_only: bool,
}

impl Apps {
    /// Returns what a service is at this origin, below this mount.
    pub(crate) fn new(origin: Origin, mount: &str, resources: Vec<Resource>, takes_published: bool) -> Self {
        let paths = resources.iter().map(|resource| resource.path.to_owned()).collect();
        let issuer = Issuer { url: format!("{origin}{mount}"), resources: paths };
        Self { issuer, origin, resources, takes_published }
    }
}
