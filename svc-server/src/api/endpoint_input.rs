//! What is checked of a new or changed webhook subscription before its operation runs, since it takes a name server or TLS.

use svc_core::error::Error;
use svc_core::platform::TemporaryWebhookCreate;
use svc_core::values::WebhookUrl;
use svc_core::webhooks::options::Sent;
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookUpdate};

use crate::api::row::Row;
use crate::deliver::tls;

/// An input that sets the URL and the certificates of an endpoint.
pub(super) trait EndpointInput {
    /// Returns the URL, if the input sets one.
    fn url(&self) -> Option<WebhookUrl>;

    /// Checks the certificates that the input sets.
    fn check_certificates(&self) -> Result<(), Error>;
}

impl EndpointInput for WebhookCreate {
    fn url(&self) -> Option<WebhookUrl> {
        Some(self.url.clone())
    }

    fn check_certificates(&self) -> Result<(), Error> {
        let (certificate, authority) = (self.client_certificate.as_ref(), self.certificate_authority.as_ref());
        tls::check(certificate.map(|Sent(certificate)| certificate), authority.map(|Sent(authority)| authority))
    }
}

impl EndpointInput for TemporaryWebhookCreate {
    fn url(&self) -> Option<WebhookUrl> {
        self.webhook.url()
    }

    fn check_certificates(&self) -> Result<(), Error> {
        self.webhook.check_certificates()
    }
}

impl EndpointInput for WebhookUpdate {
    fn url(&self) -> Option<WebhookUrl> {
        self.url.clone().sent()
    }

    fn check_certificates(&self) -> Result<(), Error> {
        let certificate = self.client_certificate.clone().sent().flatten();
        let authority = self.certificate_authority.clone().sent().flatten();
        tls::check(certificate.as_ref().map(|Sent(it)| it), authority.as_ref().map(|Sent(it)| it))
    }
}

impl<K, I: EndpointInput, O, S> Row<K, I, O, S> {
    /// Checks the host of the URL and the certificates of the input before the operation runs.
    pub(super) fn with_endpoint(self) -> Self {
        self.with_webhook_url("url", I::url).checking(I::check_certificates)
    }
}
