//! The state that all pages share, with and without a session.

use std::sync::Arc;

use http::HeaderValue;
use svc_core::Svc;
use svc_core::oauth::authorization::Issuer;

use super::assets::Assets;
use super::identity::People;
use super::live::Live;
use super::oidc::Provider;
use super::published::PublishedApps;
use super::trials::Trials;
use crate::kernel::Kernel;

/// The path of the dashboard below the mount of the API.
pub(super) const PATH: &str = "/dashboard";

/// Renders the API reference below a mount, with this HTML above it and a key for requests from the page. Returns the page
/// and the policy that it needs.
pub(crate) type ReferencePage = fn(mount: &str, bar: &str, key: &str) -> (String, HeaderValue);

/// The dashboard as its pages know it.
pub(super) struct Site {
    pub(super) kernel: Arc<Kernel>,
    pub(super) svc: Svc,
    pub(super) assets: Assets,
    /// The path in front of all links: the mount of the API and [`PATH`].
    pub(super) base: String,
    pub(super) people: Arc<People>,
    pub(super) live: Live,
    /// The apps that describe themselves at a URL and are not registered. `None` if such apps are refused.
    pub(super) published: Option<PublishedApps>,
    /// The trials of endpoints. `None` if the process has no webhook client.
    pub(super) trials: Option<Trials>,
    /// Renders the API reference, in which people try requests out. `None` if it is not served.
    pub(super) reference: Option<ReferencePage>,
    pub(super) provider: Option<Provider>,
}

impl Site {
    /// Returns the URL of a page, such as `/keys`.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns the path of the API in a host application, empty for none.
    pub(super) fn mount(&self) -> &str {
        self.base.strip_suffix(PATH).unwrap_or_default()
    }

    /// Ends the streams of live lists whose session has ended, or whose member was removed or has another role.
    pub(super) fn check_sessions(&self) {
        self.live.check_sessions();
    }

    /// Returns whether there are apps, which owners let work on their accounts.
    pub(super) fn has_apps(&self) -> bool {
        self.issuer().is_some()
    }

    /// Returns what this service is to apps. `None` if there are no apps.
    pub(super) fn issuer(&self) -> Option<&Issuer> {
        self.kernel.apps.as_ref().map(|apps| &apps.issuer)
    }

    /// Returns the host of the identity provider, if there is one.
    pub(super) fn provider_host(&self) -> Option<&str> {
        self.provider.as_ref().map(Provider::host)
    }
}
