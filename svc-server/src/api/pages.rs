//! Requests that are no operations: pages of the dashboard, and the endpoints of OAuth.

use std::net::IpAddr;

use bytes::Bytes;
use http::Method;
use http::request::Parts;

use crate::api::Api;
use crate::api::body::{ArrivingBody, MAX_FORM};
use crate::api::problem::Problem;
use crate::api::response::{Outcome, ResponseBody};
use crate::api::response_memory::Holder;
use crate::api::state::State;
use crate::dashboard::{Admitted, AdmittedPage, Dashboard, consent};
use crate::oauth::{Endpoint, Oauth};

impl Api {
    /// Responds to a request of the dashboard: finds out who asks, from where and how often, before a byte of the form is read.
    pub(super) async fn respond_with_page(
        &self,
        dashboard: &Dashboard,
        parts: &Parts,
        body: ArrivingBody<'_>,
        peer: IpAddr,
    ) -> Result<Outcome, Problem> {
        let State { limits, responses, .. } = &*self.state;
        let mut page = match dashboard.admit(parts, peer, limits).await {
            Admitted::File(file) => return Ok(Outcome::Page(file)),
            Admitted::Page(page) => page,
        };
        let mut form = Bytes::new();
        if page.takes_form() {
            match body.read(MAX_FORM).await {
                Ok(received) => form = received,
                Err(Problem::BodyTooLarge) => page = AdmittedPage::too_large(),
                Err(problem) => return Err(problem),
            }
        } else {
            drop(body);
        }
        let (holder, records) = (page.holder(), page.records());
        let memory = match responses.try_acquire(holder, records) {
            Some(memory) => memory,
            // A form has memory of its own, and nobody waits with it. What follows on a change is a redirect or a form.
            None if !form.is_empty() => responses.nothing(holder),
            None => responses.acquire(holder, records).await?,
        };
        let page = dashboard.respond(parts, page, form, limits).await;
        Ok(Outcome::Page(page.map(|body| body.within(responses, memory, parts.extensions.get()))))
    }

    /// Responds at an endpoint of OAuth. Refused requests for tokens count against their address.
    pub(super) async fn respond_to_app(
        &self,
        oauth: &Oauth,
        endpoint: Endpoint,
        parts: &Parts,
        body: ArrivingBody<'_>,
        peer: IpAddr,
    ) -> Result<Outcome, Problem> {
        let responses = &self.state.responses;
        // They are small, and made at once.
        let held =
            |body: ResponseBody| body.within(responses, responses.nothing(Holder::Strangers), parts.extensions.get());
        match self.respond_to_app_unheld(oauth, endpoint, parts, body, peer).await? {
            Outcome::Page(page) => Ok(Outcome::Page(page.map(held))),
            other => Ok(other),
        }
    }

    async fn respond_to_app_unheld(
        &self,
        oauth: &Oauth,
        endpoint: Endpoint,
        parts: &Parts,
        body: ArrivingBody<'_>,
        peer: IpAddr,
    ) -> Result<Outcome, Problem> {
        let State { limits, store, dashboard, .. } = &*self.state;
        let refusals = limits.key_of_peer(peer);
        if endpoint.takes_tokens() {
            limits.check(refusals, self.env().now()).map_err(|limited| Problem::rate_limited(&limited))?;
        }
        if endpoint == Endpoint::Revoke && parts.method == Method::POST {
            let counted = limits.count(limits.revocations_of_peer(peer), self.env().now()).await;
            counted.map_err(|limited| Problem::rate_limited(&limited))?;
        }
        let form = match parts.method {
            Method::POST => match body.read(MAX_FORM).await {
                Err(Problem::BodyTooLarge) if endpoint.takes_tokens() => return Ok(Outcome::Page(Oauth::too_large())),
                form => form?,
            },
            _ => Bytes::new(),
        };
        if let (Endpoint::Authorize, Some(dashboard)) = (endpoint, dashboard) {
            let page = consent::respond(dashboard, oauth.issuer(), parts, form, peer, limits).await;
            return Ok(Outcome::Page(page));
        }
        if endpoint == Endpoint::Introspect && parts.method == Method::POST {
            return match oauth.introspect(&**store, parts, &form).await {
                Ok(response) => Ok(Outcome::Page(response)),
                Err(problem) => {
                    let counted = limits.count(refusals, self.env().now()).await;
                    Err(counted.map_or_else(|limited| Problem::rate_limited(&limited), |_| problem))
                }
            };
        }
        if parts.method == Method::POST {
            // What an app may do in a minute with a grant, whatever its requests are.
            if let Some(window) = oauth.window(&**store, endpoint, parts, &form, limits).await? {
                let counted = limits.count(window, self.env().now()).await;
                counted.map_err(|limited| Problem::rate_limited(&limited))?;
            }
        }
        let response = oauth.respond(&**store, endpoint, parts, form).await;
        if endpoint.takes_tokens() && response.status().is_client_error() {
            let counted = limits.count(refusals, self.env().now()).await;
            counted.map_err(|limited| Problem::rate_limited(&limited))?;
        }
        Ok(Outcome::Page(response))
    }
}
