//! The connection options in a `postgres://` URL.

use std::time::Duration;

use svc_core::error::StoreError;
use svc_core::store::StoreResult;
use tokio_postgres::config::{Config, Host, SslMode};
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{Client, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::cannot_connect;
use super::tls::{self, Verification};

/// The longest that connecting may take, to all hosts of the URL together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// After how long without traffic a TCP keepalive probe is sent, and how long to wait for its response.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Timeouts of the server. They come before the `options` in the URL, which therefore override them.
const TIMEOUTS: &str = "-c statement_timeout=10s -c lock_timeout=5s -c idle_in_transaction_session_timeout=15s";
/// Settings of the planner. Every list has an index in its order, so a page is best read from that index, whatever the
/// number of rows and the statistics of the server. With these settings plans depend on the schema only, as on SQLite. JIT
/// compilation is off, as disabled plan types make the estimated costs look high. Joins search an index for each row, where a
/// plan that was made for empty tables would keep all rows of the tenant.
const PLANNER_SETTINGS: &str = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off \
     -c enable_material=off -c max_parallel_workers_per_gather=0 -c jit=off";
/// These connections write nothing that must be durable.
const VOLATILE_SETTINGS: &str = "-c synchronous_commit=off";

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Read,
    Write,
    /// Notifications and request counts, which may be lost.
    Volatile,
}

/// The options of a connection: the server, the database, the credentials and TLS.
#[derive(Clone)]
pub(super) struct ConnectOptions {
    config: Config,
    tls: MakeRustlsConnect,
    /// Whether to connect without TLS when TLS fails (`sslmode=prefer`).
    allows_plaintext: bool,
    /// Whether connections get [`PLANNER_SETTINGS`].
    pub(super) steers_plans: bool,
}

impl ConnectOptions {
    /// Parses a URL as libpq does. The error never contains the password.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let (rest, ssl) = TlsOptions::split_off(url)?;
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            // The driver quotes the part that it cannot parse, which may contain the password.
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            format!("{error} {}", source.split(['`', '\'']).next().unwrap_or_default()).trim().to_owned()
        })?;
        let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        // Connections over a Unix socket never use TLS.
        config.ssl_mode(match ssl.mode {
            _ if is_local => SslMode::Disable,
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        if config.get_application_name().is_none() {
            config.application_name("svc");
        }
        if config.get_connect_timeout().is_none() {
            // One host that does not answer leaves time for the others.
            let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX).max(1);
            config.connect_timeout(CONNECT_TIMEOUT / hosts);
        }
        config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE).keepalives_retries(2);
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(KEEPALIVE * 2);
        }
        let verification = ssl.verification()?;
        Ok(Self {
            config,
            tls: tls::connector(verification)?,
            allows_plaintext: ssl.mode == TlsMode::Prefer && !is_local,
            steers_plans: true,
        })
    }

    pub(super) async fn connect(
        &self,
        role: Role,
    ) -> StoreResult<(Client, Connection<Socket, impl TlsStream + Unpin + Send + use<>>)> {
        let mut config = self.config.clone();
        let role_settings = match role {
            Role::Read | Role::Write => "",
            Role::Volatile => VOLATILE_SETTINGS,
        };
        let planner_settings = if self.steers_plans { PLANNER_SETTINGS } else { "" };
        config.options(format!(
            "{TIMEOUTS} {planner_settings} {role_settings} {}",
            self.config.get_options().unwrap_or_default()
        ));
        let connecting = async {
            let connected = config.connect(self.tls.clone()).await;
            match connected {
                // The server may offer TLS that does not work, or refuse clients that use TLS.
                Err(error) if self.allows_plaintext && !is_unreachable(&error) => {
                    config.ssl_mode(SslMode::Disable).connect(self.tls.clone()).await.map_err(|_| error)
                }
                connected => connected,
            }
        };
        in_time(connecting).await
    }
}

/// Bounds the time of a step of connecting.
pub(super) async fn in_time<T>(step: impl Future<Output = Result<T, tokio_postgres::Error>>) -> StoreResult<T> {
    match tokio::time::timeout(CONNECT_TIMEOUT, step).await {
        Ok(done) => done.map_err(|error| cannot_connect(&error)),
        Err(_) => Err(StoreError::Unavailable(format!("no connection within {CONNECT_TIMEOUT:?}"))),
    }
}

fn is_unreachable(error: &tokio_postgres::Error) -> bool {
    error.to_string().starts_with("error connecting")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The parameters `sslmode` and `sslrootcert`, which the driver supports only in part.
struct TlsOptions {
    mode: TlsMode,
    root: Option<String>,
}

impl TlsOptions {
    /// Returns a URL without the two parameters, and their values.
    fn split_off(url: &str) -> Result<(String, Self), String> {
        let mut ssl = Self { mode: TlsMode::Prefer, root: None };
        let Some((front, query)) = url.split_once('?') else { return Ok((url.to_owned(), ssl)) };
        let mut rest = Vec::new();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslmode", mode)) => {
                    ssl.mode = match mode {
                        "disable" => TlsMode::Disable,
                        "prefer" => TlsMode::Prefer,
                        "require" => TlsMode::Require,
                        "verify-ca" => TlsMode::VerifyCa,
                        "verify-full" => TlsMode::VerifyFull,
                        _ => {
                            return Err("sslmode must be disable, prefer, require, verify-ca or verify-full".to_owned());
                        }
                    };
                }
                Some(("sslrootcert", path)) => {
                    ssl.root = Some(percent_decoded(path).ok_or("sslrootcert is not valid percent-encoding")?);
                }
                _ => rest.push(pair),
            }
        }
        let question = if rest.is_empty() { "" } else { "?" };
        Ok((format!("{front}{question}{}", rest.join("&")), ssl))
    }

    fn verification(&self) -> Result<Verification<'_>, String> {
        match (self.mode, self.root.as_deref()) {
            (TlsMode::Disable | TlsMode::Prefer | TlsMode::Require, None) => Ok(Verification::None),
            (TlsMode::Disable | TlsMode::Prefer, Some(_)) => Ok(Verification::None),
            // libpq also verifies the certificate with sslmode=require if there is a root certificate.
            (TlsMode::Require | TlsMode::VerifyCa, Some(path)) => Ok(Verification::Authority(path)),
            (TlsMode::VerifyFull, Some(path)) => Ok(Verification::Full(path)),
            (TlsMode::VerifyCa | TlsMode::VerifyFull, None) => {
                Err("sslmode=verify-ca and verify-full need sslrootcert=PATH".to_owned())
            }
        }
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Returns a URL for error messages: `***` replaces its password, both before the host and in the query.
pub(crate) fn without_password(url: &str) -> String {
    if !crate::is_postgres(url) {
        return url.to_owned();
    }
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (front, query) = match rest.split_once('?') {
        Some((front, query)) => (front, Some(query)),
        None => (rest, None),
    };
    // Split at the last @ before the query, as a password that is not percent-encoded may contain others.
    let front = match front.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{name}:***@{host}"),
            None => front.to_owned(),
        },
        None => front.to_owned(),
    };
    let query = query.map(|query| {
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) if name.contains("pass") => format!("{name}=***"),
            _ => pair.to_owned(),
        });
        format!("?{}", pairs.collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}://{front}{}", query.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("postgres://svc:s3cret@db/svc", "postgres://svc:***@db/svc"),
            ("postgres://svc:s3c:r@et@db:5432/svc?sslmode=require", "postgres://svc:***@db:5432/svc?sslmode=require"),
            ("postgresql://svc@db/svc?password=s3cret&x=y", "postgresql://svc@db/svc?password=***&x=y"),
            ("postgres:///svc?host=/run/postgresql", "postgres:///svc?host=/run/postgresql"),
        ] {
            assert_eq!(without_password(url), shown);
        }
        for bad in ["postgres://svc:s3cret@db:s3cret/x", "postgres://svc:s3cret@db/x?s3cret=1"] {
            let reason = ConnectOptions::parse(bad).map(drop).unwrap_err();
            assert!(!reason.contains("s3cret"), "{reason}");
        }
    }

    #[test]
    fn sslmode_and_sslrootcert_select_the_verification() {
        let verification = |url: &str| {
            TlsOptions::split_off(url).and_then(|(rest, ssl)| Ok((rest, format!("{:?}", ssl.verification()?))))
        };
        for (url, rest, want) in [
            ("postgres://db/x", "postgres://db/x", "None"),
            ("postgres://db/x?sslmode=require&a=b", "postgres://db/x?a=b", "None"),
            ("postgres://db/x?sslmode=require&sslrootcert=/a%20b", "postgres://db/x", "Authority(\"/a b\")"),
            ("postgres://db/x?sslrootcert=/ca&sslmode=verify-full", "postgres://db/x", "Full(\"/ca\")"),
        ] {
            assert_eq!(verification(url), Ok((rest.to_owned(), want.to_owned())));
        }
        for bad in ["sslmode=allow", "sslmode=verify-ca", "sslmode=verify-full", "sslrootcert=%f"] {
            assert!(verification(&format!("postgres://db/x?{bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_url_overrides_the_defaults() {
        let connect_options = ConnectOptions::parse("postgres://db/x?application_name=mine&connect_timeout=2").unwrap();
        assert_eq!(connect_options.config.get_application_name(), Some("mine"));
        assert_eq!(connect_options.config.get_connect_timeout(), Some(&Duration::from_secs(2)));
        let connect_options = ConnectOptions::parse("postgres://db/x").unwrap();
        assert_eq!(connect_options.config.get_application_name(), Some("svc"));
    }
}
