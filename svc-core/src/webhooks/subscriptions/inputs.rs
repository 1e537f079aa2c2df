//! The requests that create or change a subscription.

use super::WebhookSubscription;
use crate::input::Input;
use crate::operation::Outside;
use crate::values::{EventSet, Patch, StreamUrl, Text, WebhookUrl};
use crate::webhooks::filters::Filter;
use crate::webhooks::options::{
    AttemptsInFlight, Authentication, CertificateAuthority, ClientCertificate, CustomHeaders, Ordering, Payload,
    PerSecond, RetryDelays, SignatureScheme, SigningSecret, TimeoutSeconds, Unredacted,
};

/// A new webhook subscription. It is enabled from the start.
#[derive(Clone, Debug, PartialEq, Input)]
#[input(record = WebhookSubscription)]
pub struct WebhookCreate {
    /// The URL of the endpoint. It must use `https` and a public host, and have no user name or password.
    pub url: WebhookUrl,
    /// The kinds of events to deliver, or `["*"]` for all of them, including those that are added later. Repeated kinds
    /// are stored once.
    pub events: EventSet,
    /// A description of the subscription, for your own use. Must be a single line. Blank text is stored as null.
    pub description: Option<Text<500>>,
    /// Headers that each delivery has in addition, as an object with their values by their names, at most 20. The values are
    /// secret: no response has them. Headers that the service or HTTP sets itself are refused.
    pub headers: Option<Unredacted<CustomHeaders>>,
    /// How deliveries are authenticated at the endpoint: `basic` with `username` and `password`, `bearer` with `token`, or
    /// `oauth2` with `token_url`, `client_id`, `client_secret` and perhaps `scope`. No response has the secret.
    pub authentication: Option<Unredacted<Authentication>>,
    /// Which events of these kinds are delivered, by what is in them, such as `data.city == "Perth"`. Without it, all are.
    pub filter: Option<Filter>,
    /// The `data` in the body of a delivery: `contract` for the record, which is the default, or `thin` for its `id`.
    pub payload: Option<Payload>,
    /// The highest rate of deliveries, in deliveries a second. Without it, the endpoint gets as many as it takes.
    pub max_per_second: Option<PerSecond>,
    /// The highest number of delivery attempts at the same time. Without it, there are up to 64 while they succeed.
    pub max_in_flight: Option<AttemptsInFlight>,
    /// The timeout of a delivery attempt in seconds. Without it, it is that of the service: 10 seconds by default.
    pub timeout: Option<TimeoutSeconds>,
    /// The waits before the retries of a delivery in seconds. Without it, they are those of the service.
    pub retry_schedule: Option<RetryDelays>,
    /// Which deliveries wait for earlier ones: `none`, which is the default, or with `record` those of the same record, until
    /// the earlier ones have succeeded or were given up.
    pub ordering: Option<Ordering>,
    /// How deliveries are signed: `hmac`, which is the default, or `ed25519`, which adds a signature that is verified with a public
    /// key.
    pub signature: Option<SignatureScheme>,
    /// The certificate that deliveries show to the endpoint (mutual TLS), with its private key. No response has the key.
    pub client_certificate: Option<Unredacted<ClientCertificate>>,
    /// The certificates of the authorities that are trusted at the endpoint in place of the public ones, in PEM.
    pub certificate_authority: Option<Unredacted<CertificateAuthority>>,
    /// The signing secret, for a receiver that has one from another sender: `whsec_` and the base64 of 24 to 64 bytes. Without it,
    /// the service makes one.
    pub secret: Option<Unredacted<SigningSecret>>,
}

impl WebhookCreate {
    /// Returns what must be checked before the subscription is created.
    pub(crate) fn outside(&self) -> Outside {
        Outside {
            webhook: Some(("url", self.url.clone())),
            certificate: self.client_certificate.clone().map(|Unredacted(certificate)| certificate),
            authority: self.certificate_authority.clone().map(|Unredacted(authority)| authority),
            stream: None,
        }
    }

    /// Returns a subscription of this endpoint to these events.
    pub fn new(url: WebhookUrl, events: EventSet) -> Self {
        Self {
            url,
            events,
            description: None,
            headers: None,
            authentication: None,
            filter: None,
            payload: None,
            max_per_second: None,
            max_in_flight: None,
            timeout: None,
            retry_schedule: None,
            ordering: None,
            signature: None,
            client_certificate: None,
            certificate_authority: None,
            secret: None,
        }
    }
}

/// A new subscription whose events go to a broker in place of deliveries. It is enabled from the start.
#[derive(Clone, Debug, PartialEq, Input)]
pub struct StreamCreate {
    /// The URL of the broker, such as `nats://user:password@nats.example.com:4222/svc`, with `nats`, `amqp` or `kafka`, or over TLS
    /// `tls`, `amqps` or `kafka+ssl`. No response has its user name, its password or its parameters.
    pub to: Unredacted<StreamUrl>,
    /// The kinds of events to send, or `["*"]` for all of them, including those that are added later. Repeated kinds are
    /// stored once.
    pub events: EventSet,
    /// A description of the subscription, for your own use. Must be a single line. Blank text is stored as null.
    pub description: Option<Text<500>>,
    /// Which events of these kinds are sent, by what is in them, such as `data.city == "Perth"`. Without it, all are.
    pub filter: Option<Filter>,
    /// The `data` in the body of a message: `contract` for the record, which is the default, or `thin` for its `id`.
    pub payload: Option<Payload>,
}

/// Changes to a webhook subscription. A field that is left out keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Input)]
#[input(record = WebhookSubscription, patch)]
pub struct WebhookUpdate {
    /// The URL of the endpoint. It must use `https` and a public host, and have no user name or password. Pending
    /// deliveries are sent to the new URL as well. `headers`, `authentication` and `client_certificate` were set for the host of
    /// the URL before it: another scheme, host or port gets none of them, so they become null unless the change sets them.
    pub url: Patch<WebhookUrl>,
    /// The kinds of events to deliver from now on, or `["*"]` for all of them, including those that are added later.
    pub events: Patch<EventSet>,
    /// Whether deliveries are sent. `true` enables the subscription, ends a pause and sets `consecutive_failures` to 0.
    /// `false` disables it and ends a pause as well: no deliveries are created for further events, and pending
    /// deliveries become held, so that they are sent only if they are replayed.
    pub enabled: Patch<bool>,
    /// A description of the subscription, for your own use. Must be a single line. Null clears it.
    pub description: Patch<Option<Text<500>>>,
    /// Headers that each delivery has in addition, as an object with their values by their names, at most 20. They replace all
    /// that were set. Null clears them.
    pub headers: Patch<Option<Unredacted<CustomHeaders>>>,
    /// How deliveries are authenticated at the endpoint: `basic` with `username` and `password`, `bearer` with `token`, or
    /// `oauth2` with `token_url`, `client_id`, `client_secret` and perhaps `scope`. Null clears it.
    pub authentication: Patch<Option<Unredacted<Authentication>>>,
    /// Which events of these kinds are delivered from now on, by what is in them. Null clears it.
    pub filter: Patch<Option<Filter>>,
    /// The `data` in the body of a delivery: `contract` for the record, or `thin` for its `id`. Null is `contract`.
    pub payload: Patch<Option<Payload>>,
    /// The highest rate of deliveries, in deliveries a second. Null clears it.
    pub max_per_second: Patch<Option<PerSecond>>,
    /// The highest number of delivery attempts at the same time. Null clears it.
    pub max_in_flight: Patch<Option<AttemptsInFlight>>,
    /// The timeout of a delivery attempt in seconds. Null restores that of the service.
    pub timeout: Patch<Option<TimeoutSeconds>>,
    /// The waits before the retries of a delivery in seconds. Null restores those of the service.
    pub retry_schedule: Patch<Option<RetryDelays>>,
    /// Which deliveries wait for earlier ones: `none`, or `record` for those of the same record. Null is `none`. It applies to
    /// the events from now on.
    pub ordering: Patch<Option<Ordering>>,
    /// How deliveries are signed: `hmac`, or `ed25519`, which adds a signature that is verified with a public key. Null is `hmac`.
    pub signature: Patch<Option<SignatureScheme>>,
    /// The certificate that deliveries show to the endpoint (mutual TLS), with its private key. The next attempt shows it. Null
    /// clears it.
    pub client_certificate: Patch<Option<Unredacted<ClientCertificate>>>,
    /// The certificates of the authorities that are trusted at the endpoint in place of the public ones, in PEM. Null clears it.
    pub certificate_authority: Patch<Option<Unredacted<CertificateAuthority>>>,
}
