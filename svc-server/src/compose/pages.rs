//! The dashboard, and apps, to which owners consent in it.

use std::sync::Arc;

use svc_core::platform::operations::{REMOVE_MEMBER, UPDATE_MEMBER};

use super::{Server, Surfaces};
use crate::dashboard::{Dashboard, ReferencePage};
use crate::kernel::apps::{Apps, Resource};
use crate::kernel::apps::{OauthClients, OauthSettings};
use crate::kernel::listener::{Kind, Listener, Surface};
use crate::kernel::versions::{VERSIONS, Version};
use crate::oauth::{Introspection, Oauth};

impl Surfaces {
    /// Returns what this service is to apps below a mount.
    pub(super) fn apps(&self, mount: &str) -> Option<Apps> {
        let OauthSettings { origin, clients } = self.dashboard.as_ref()?.oauth.as_ref()?;
        Some(Apps::new(origin.clone(), mount, self.resources(), *clients == OauthClients::Metadata))
    }

    /// Returns what tokens of apps are for.
    fn resources(&self) -> Vec<Resource> {
        #[cfg(feature = "mcp")]
        let tools = self.mcp.is_some().then_some(crate::mcp::VERSIONS).into_iter().flatten();
        #[cfg(not(feature = "mcp"))]
        let tools = [];
        let resource =
            |version: Version| Resource { path: version.path(), is_read_only: version == Version::McpReadOnly };
        tools.into_iter().chain(VERSIONS).map(resource).collect()
    }
}

impl Server {
    /// Adds the dashboard, and the endpoints of apps.
    pub(super) fn add_pages(&mut self, listener: &mut Listener) {
        let Self { kernel, surfaces, .. } = self;
        let Some(settings) = &surfaces.dashboard else { return };
        #[cfg(feature = "docs")]
        let reference: Option<ReferencePage> =
            surfaces.docs.then_some(|mount, bar, key| crate::docs::page_with_key(mount, Version::V1.path(), bar, key));
        #[cfg(not(feature = "docs"))]
        let reference = None;
        let dashboard = Arc::new(Dashboard::new(Arc::clone(kernel), settings.clone(), reference));
        listener.surfaces.push(Arc::clone(&dashboard) as Arc<dyn Surface>);
        // After a change of the members a session may show less.
        let members = [UPDATE_MEMBER.id, REMOVE_MEMBER.id].map(Kind::Operation);
        self.after.push(Arc::new(move |exchange, _| {
            if members.contains(&exchange.kind) && exchange.status.is_success() {
                dashboard.check_sessions();
            }
        }));
        listener.after.clone_from(&self.after);
        if let Some(oauth) = Oauth::new(kernel).map(Arc::new) {
            listener.surfaces.push(Arc::clone(&oauth) as Arc<dyn Surface>);
            listener.after.push(Arc::new(move |exchange, headers| oauth.challenge(exchange, headers)));
        }
    }

    /// Adds what programs of the operator ask about the tokens of apps.
    pub(super) fn add_introspection(&self, listener: &mut Listener) {
        if let Some(introspection) = Introspection::new(&self.kernel) {
            listener.add(introspection);
        }
    }
}
