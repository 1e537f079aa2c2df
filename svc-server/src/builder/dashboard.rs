//! The dashboard, and what it brings.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::request::Parts;

use super::Builder;
use crate::dashboard::Identity;
use crate::kernel::apps::OauthSettings;

impl Builder {
    /// Sets whether the dashboard is served at `/dashboard` below the mount; see [`Surfaces::dashboard`](crate::Surfaces::dashboard).
    #[must_use]
    pub fn dashboard(mut self, dashboard: bool) -> Self {
        self.surfaces.dashboard = dashboard.then(|| self.surfaces.dashboard.unwrap_or_default());
        self
    }

    /// Serves the dashboard, and lets the application say who asks for a page, from its own session, so that nobody needs a link. The
    /// closure is called for each request; with `None`, the person needs a link as without it.
    ///
    /// ```
    /// use svc_core::prelude::*;
    /// use svc_server::Builder;
    /// use svc_server::dashboard::Identity;
    ///
    /// /// What a layer of the application has put into the request.
    /// #[derive(Clone)]
    /// struct SignedIn {
    ///     account: TenantId,
    ///     email: String,
    ///     token: String,
    /// }
    ///
    /// let svc = Svc::in_memory();
    /// let builder = Builder::new(&svc).mount("/business").dashboard(true).dashboard_identity(|request| {
    ///     Box::pin(async move {
    ///         let person = request.extensions.get::<SignedIn>()?;
    ///         Some(Identity::new(person.account, Role::Developer, &person.email, &person.token))
    ///     })
    /// });
    /// let (api, background) = builder.build();
    /// # drop((api, background));
    /// ```
    ///
    /// # Changes
    ///
    /// Forms of the dashboard are accepted from pages of the same origin with a token that follows from the secret that
    /// [`Identity::new`](crate::dashboard::Identity::new) gets. The closure does not have to check anything for that.
    #[must_use]
    pub fn dashboard_identity(
        mut self,
        identify: impl for<'a> Fn(&'a Parts) -> BoxFuture<'a, Option<Identity>> + Send + Sync + 'static,
    ) -> Self {
        self.surfaces.dashboard.get_or_insert_default().identity = Some(Arc::new(identify));
        self
    }

    /// Makes this server an authorization server for apps; see [`DashboardSettings::oauth`](crate::DashboardSettings::oauth). It has the dashboard then.
    ///
    /// ```
    /// use svc_core::prelude::*;
    /// use svc_server::{Builder, OauthSettings};
    ///
    /// let origin = "https://api.example.com".parse().unwrap();
    /// let builder = Builder::new(&Svc::in_memory()).oauth(OauthSettings::new(origin));
    /// # drop(builder.build());
    /// ```
    #[must_use]
    pub fn oauth(mut self, settings: OauthSettings) -> Self {
        self.surfaces.dashboard.get_or_insert_default().oauth = Some(settings);
        self
    }
}
