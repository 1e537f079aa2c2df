//! Sample records of every resource: with as few and with as many values as possible.

use std::fmt;

use svc_core::resources::bookings::{Booking, BookingStatus};
use svc_core::resources::contacts::{Contact, ContactId, ErasurePart, ErasurePosition};
use svc_core::resources::invoices::{Invoice, InvoiceId, InvoiceStatus};
use svc_core::resources::jobs::{Job, JobStatus};
use svc_core::resources::quotes::{Quote, QuoteId, QuoteStatus};
use svc_core::resources::{NewRecord, Resource};
use svc_core::values::EventKind;
use svc_core::values::{
    Amount, Currency, Date, Email, EventSet, Id, MAX_AMOUNT, Note, Secret, TenantId, Text, Timestamp, WebhookUrl,
};
use svc_core::values::{Stored as _, StreamUrl};
use svc_core::webhooks::options::{
    AttemptsInFlight, Authentication, CertificateAuthority, ClientCertificate, CustomHeaders, Ordering, Payload,
    PerSecond, RetryDelays, SignatureScheme, TimeoutSeconds,
};
use svc_core::webhooks::signatures::SigningKeys;
use svc_core::webhooks::subscriptions::{DisabledReason, WebhookSubscription};

use crate::Harness;

/// Records that the full samples refer to, for stores with foreign keys.
#[derive(Clone, Copy)]
pub(super) struct Links {
    pub(super) contact: ContactId,
    quote: QuoteId,
    invoice: InvoiceId,
}

impl Links {
    pub(super) async fn of(h: &Harness, tenant: TenantId) -> Self {
        let contact = h.insert(tenant, Contact::bare).await.id;
        let quote = h.insert(tenant, Quote::bare).await.id;
        let invoice = h.insert(tenant, Invoice::bare).await.id;
        Self { contact, quote, invoice }
    }
}

pub(super) trait Sample: Resource + fmt::Debug {
    /// Returns a record with `None` wherever possible, and the smallest values elsewhere.
    fn bare(new: NewRecord) -> Self;
    /// Returns a record with a value in every field. Texts have their maximum length and characters outside ASCII.
    fn full(new: NewRecord, links: Links) -> Self;
    /// Sets `updated_at`.
    fn set_updated_at(&mut self, now: Timestamp);
}

/// Returns a text of exactly `MAX` characters of one to four bytes each.
fn longest<const MAX: usize>() -> Text<MAX> {
    Text::parse(&"aß漢🔧".chars().cycle().take(MAX).collect::<String>()).unwrap()
}

/// Returns a document number that no other record of the tenant has, made from its id.
fn number(prefix: &str, new: NewRecord) -> String {
    format!("{prefix}-{}", new.id.simple())
}

pub(super) fn far() -> Timestamp {
    Timestamp::parse("9999-12-31T23:59:59.999999Z").unwrap()
}

fn email() -> Email {
    Email::parse(&format!("O'Brien+{}@Example.COM", "x".repeat(254 - 20))).unwrap()
}

impl Sample for Contact {
    fn bare(new: NewRecord) -> Self {
        Self {
            id: new.id.into(),
            email: None,
            first_name: None,
            last_name: None,
            phone: None,
            company_name: None,
            city: None,
            state: None,
            postcode: None,
            created_at: new.now,
            updated_at: new.now,
            deleted_at: None,
            erasure: None,
        }
    }

    fn full(new: NewRecord, _links: Links) -> Self {
        Self {
            erasure: Some(ErasurePosition {
                part: ErasurePart::Bookings,
                records_from: far(),
                events_from: Timestamp::MAX,
            }),
            email: Some(email()),
            first_name: Some(longest()),
            last_name: Some(longest()),
            phone: Some(longest()),
            company_name: Some(longest()),
            city: Some(longest()),
            state: Some(longest()),
            postcode: Some(longest()),
            ..Self::bare(new)
        }
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }
}

impl Sample for Invoice {
    fn bare(new: NewRecord) -> Self {
        Self {
            id: new.id.into(),
            invoice_number: number("INV", new),
            contact_id: None,
            status: InvoiceStatus::Draft,
            issue_date: None,
            due_date: None,
            total: Amount::from_minor(0, 2),
            currency: Currency::AUD,
            paid_at: None,
            created_at: new.now,
            updated_at: new.now,
            amount_paid: Amount::from_minor(0, 2),
        }
    }

    fn full(new: NewRecord, links: Links) -> Self {
        Self {
            contact_id: Some(links.contact),
            status: InvoiceStatus::Cancelled,
            issue_date: Some(Date::parse("0000-01-01").unwrap()),
            due_date: Some(Date::parse("9999-12-31").unwrap()),
            total: Amount::from_minor(MAX_AMOUNT * 10_000, 4),
            currency: Currency::parse("UYW").unwrap(),
            paid_at: Some(far()),
            amount_paid: Amount::from_minor(MAX_AMOUNT * 10_000 - 1, 4),
            ..Self::bare(new)
        }
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }
}

impl Sample for Booking {
    fn bare(new: NewRecord) -> Self {
        Self {
            id: new.id.into(),
            contact_id: None,
            service_name: None,
            start_time: new.now,
            end_time: new.now.next(),
            status: BookingStatus::Cancelled,
            notes: None,
            created_at: new.now,
            updated_at: new.now,
        }
    }

    fn full(new: NewRecord, links: Links) -> Self {
        Self {
            contact_id: Some(links.contact),
            service_name: Some(longest()),
            start_time: Timestamp::parse("0000-01-01T00:00:00Z").unwrap(),
            end_time: far(),
            status: BookingStatus::NoShow,
            notes: Some(Note::from_stored(&"ä\r\n\t 🔧'".chars().cycle().take(4096).collect::<String>())),
            ..Self::bare(new)
        }
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }
}

impl Sample for Quote {
    fn bare(new: NewRecord) -> Self {
        Self {
            id: new.id.into(),
            quote_number: number("QUO", new),
            contact_id: None,
            status: QuoteStatus::Draft,
            issue_date: None,
            valid_until: None,
            total: Amount::from_minor(0, 0),
            currency: Currency::parse("JPY").unwrap(),
            created_at: new.now,
            updated_at: new.now,
        }
    }

    fn full(new: NewRecord, links: Links) -> Self {
        Self {
            contact_id: Some(links.contact),
            status: QuoteStatus::Converted,
            issue_date: Some(Date::parse("2024-02-29").unwrap()),
            valid_until: Some(Date::parse("9999-12-31").unwrap()),
            total: Amount::from_minor(MAX_AMOUNT * 1_000, 3),
            currency: Currency::parse("KWD").unwrap(),
            ..Self::bare(new)
        }
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }
}

impl Sample for Job {
    fn bare(new: NewRecord) -> Self {
        Self {
            id: new.id.into(),
            job_number: number("JOB", new),
            title: Text::parse("x").unwrap(),
            status: JobStatus::Quoted,
            job_type: None,
            priority: None,
            contact_id: None,
            customer_name: None,
            customer_email: None,
            customer_phone: None,
            site_address: None,
            site_suburb: None,
            site_state: None,
            site_postcode: None,
            scheduled_start: None,
            scheduled_end: None,
            actual_start: None,
            actual_end: None,
            estimated_total: None,
            actual_total: None,
            quote_id: None,
            invoice_id: None,
            created_at: new.now,
            updated_at: new.now,
        }
    }

    fn full(new: NewRecord, links: Links) -> Self {
        Self {
            title: longest(),
            status: JobStatus::InProgress,
            job_type: Some(longest()),
            priority: Some(longest()),
            contact_id: Some(links.contact),
            customer_name: Some(format!("{} {}", longest::<300>(), longest::<300>())),
            customer_email: Some(email()),
            customer_phone: Some(longest()),
            site_address: Some(longest()),
            site_suburb: Some(longest()),
            site_state: Some(longest()),
            site_postcode: Some(longest()),
            scheduled_start: Some(Timestamp::parse("1969-12-31T23:59:59.999999Z").unwrap()),
            scheduled_end: Some(far()),
            actual_start: Some(new.now.next()),
            actual_end: Some(new.now),
            estimated_total: Some(Amount::from_minor(0, 2)),
            actual_total: Some(Amount::from_minor(MAX_AMOUNT * 100, 2)),
            quote_id: Some(links.quote),
            invoice_id: Some(links.invoice),
            ..Self::bare(new)
        }
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }
}

/// A section of PEM, as a store sees it.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
const PRIVATE_KEY: &str = "-----BEGIN EC PRIVATE KEY-----\nMAAw\n-----END EC PRIVATE KEY-----\n";

/// An authority with a key on P-256.
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBbjCCARWgAwIBAgIUe1vazPdRh9AEClffLE72CBpeo5wwCgYIKoZIzj0EAwIw\n\
DDEKMAgGA1UEAwwBeDAgFw0yNjExMjgxNjE2NTdaGA8yMTI2MTEwNDE2MTY1N1ow\n\
DDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNqn/s3+QP9W\n\
a6ffkvFZr6DHeZzzhXMqvFqc3c+Bm7s8nDs7Vtdn3mH7MHXuC/af+IbM4R9b7GhN\n\
D22yrTulZjujUzBRMB0GA1UdDgQWBBTypKsqxad9WvhMpvKSypIbxkcDcjAfBgNV\n\
HSMEGDAWgBTypKsqxad9WvhMpvKSypIbxkcDcjAPBgNVHRMBAf8EBTADAQH/MAoG\n\
CCqGSM49BAMCA0cAMEQCIA7CgHGyiLEeyf4Xv7VYWOINX/3mFizJveBbIYL7RY7K\n\
AiAqjH0M/12SBTqlemVJxcQOXNfSXvktC/+i6FUhaiTn+A==\n\
-----END CERTIFICATE-----\n";

impl Sample for WebhookSubscription {
    fn bare(new: NewRecord) -> Self {
        Self {
            id: new.id.into(),
            url: WebhookUrl::parse("https://example.com").unwrap(),
            events: EventSet::All,
            enabled: false,
            description: None,
            created_at: new.now,
            last_delivery_at: None,
            last_delivery_status: None,
            disabled_reason: None,
            paused_at: None,
            consecutive_failures: 0,
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
            signing_keys: None,
            client_certificate: None,
            certificate_authority: None,
            paced_until: None,
            stream_url: None,
            backoff_until: None,
            secret: Secret::new("whsec_"),
            previous_secret: None,
            previous_until: None,
            stopped_at: None,
            expires_at: None,
            grant_id: Some(new.id.into()),
            responses_kept: 0,
            responses_deleted_until: None,
            updated_at: new.now,
            deleted_at: None,
        }
    }

    fn full(new: NewRecord, _links: Links) -> Self {
        let url = format!("https://EXAMPLE.com/ä?{}", "x".repeat(2048 - 22));
        Self {
            url: WebhookUrl::parse(&url).unwrap(),

            events: EventSet::Kinds(EventKind::BUILT_IN.to_vec()),
            enabled: true,
            description: Some(longest()),
            last_delivery_at: Some(far()),
            last_delivery_status: Some(-1),
            disabled_reason: Some(DisabledReason::AutoPaused),
            paused_at: Some(new.now),
            consecutive_failures: 1_000_000,
            headers: CustomHeaders::new(vec![
                ("X-Team".to_owned(), Secret::new("~ ledger \" '")),
                ("authorization".to_owned(), Secret::new("Key 1")),
            ])
            .ok(),
            authentication: Some(Authentication::Basic { username: "svc".to_owned(), password: Secret::new("a:b \"") }),
            filter: "data.city == \"P\\\"erth\" and not (data.total < 100)".parse().ok(),
            payload: Some(Payload::Thin),
            max_per_second: PerSecond::new(1000).ok(),
            max_in_flight: AttemptsInFlight::new(64).ok(),
            timeout: TimeoutSeconds::new(30).ok(),
            retry_schedule: RetryDelays::new(vec![60, 14_400]).ok(),
            ordering: Some(Ordering::Record),
            signature: Some(SignatureScheme::Ed25519),
            signing_keys: SigningKeys::from_stored(&Secret::new(
                "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A= \
                 whsk_TM0Imyj/ltqdtsNG7BFOD1uKMZ81q6Yk2oz27U+4pvs=@9999-12-31T23:59:59.999999Z",
            )),
            client_certificate: ClientCertificate::new(CERTIFICATE, PRIVATE_KEY).ok(),
            certificate_authority: Some(CertificateAuthority::new(&AUTHORITY.repeat(3)).unwrap()),
            paced_until: Some(far()),
            stream_url: Some(StreamUrl::parse("nats://user:secret@nats.example.com/svc?create=EVENTS").unwrap()),
            backoff_until: Some(new.now),
            secret: Secret::new("whsec_c2VjcmV0+/=="),
            previous_secret: Some(Secret::new("whsec_b2xk")),
            previous_until: Some(Timestamp::from_micros(i64::MAX)),
            stopped_at: Some(far()),
            expires_at: Some(far()),
            responses_kept: u32::MAX,
            responses_deleted_until: Some(Id::max()),
            ..Self::bare(new)
        }
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }
}
