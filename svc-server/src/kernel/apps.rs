//! Apps (OAuth 2.0): what this service is to them.

use svc_core::oauth::authorization::Issuer;

use super::origin::Origin;

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
