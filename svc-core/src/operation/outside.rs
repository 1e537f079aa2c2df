//! The checks that svc-core cannot make by itself.

use crate::values::{StreamUrl, WebhookUrl};
use crate::webhooks::options::{CertificateAuthority, ClientCertificate};

/// The checks of an input before its operation runs that need a name server, TLS or the client of a broker.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// The URL of a webhook, whose host must be public, with the name of its field.
    pub webhook: Option<(&'static str, WebhookUrl)>,
    /// The certificate that is shown to an endpoint.
    pub certificate: Option<ClientCertificate>,
    /// The authorities that are trusted at an endpoint.
    pub authority: Option<CertificateAuthority>,
    /// The URL of a broker.
    pub stream: Option<StreamUrl>,
}

impl Outside {
    pub(crate) fn webhook(field: &'static str, url: Option<WebhookUrl>) -> Self {
        Self { webhook: url.map(|url| (field, url)), ..Self::default() }
    }
}
