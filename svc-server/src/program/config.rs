//! Flags and environment variables of the server.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use clap::builder::BoolishValueParser;
use http::HeaderValue;
use ipnet::IpNet;
use svc_core::accounts::limits::{CappedCollection, parse_limit, parse_write_limit};
use svc_core::error::Issue;
use svc_core::webhooks::deliveries::RetrySchedule;
use svc_core::webhooks::engine::Policy;
use svc_store::Options;

use crate::api::Settings;
use crate::api::cors::Cors;
use crate::program::proxy::network;
use crate::telemetry::LogFormat;

const EXAMPLES: &str = "Examples:
  svc-server --demo
      try the API on a temporary database with sample data
  svc-server --database-url sqlite:///var/lib/svc/svc.db --listen 0.0.0.0:8080
      serve the API from a file
  svc-server --database-url postgres://svc@db.internal/svc?sslmode=require --listen 0.0.0.0:8080
      serve it from PostgreSQL; SVC_SECRET_KEY, the same on every node, seals secrets there
  SVC_LISTEN=127.0.0.1:0 SVC_LOG_FORMAT=json svc-server
      take a free port and write the log as JSON

Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed, 2 wrong usage, 5 database unreachable.
The variable SVC_LOG filters the log, as in SVC_LOG=warn.";

/// Serves the business operations API.
#[derive(Debug, Parser)]
#[command(name = "svc-server", version, about, after_help = EXAMPLES)]
pub struct Config {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, env = "SVC_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Database: sqlite://PATH, made when missing, or postgres://USER:PASSWORD@HOST:PORT/DATABASE, which several nodes
    /// can share. By default sqlite://svc.db; with --demo a temporary one.
    #[arg(long, env = "SVC_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// PostgreSQL: connections for reading; each serves many requests at once.
    #[arg(long, env = "SVC_DATABASE_READ_CONNECTIONS", value_name = "N", default_value_t = Options::default().read_connections, value_parser = connections)]
    pub database_read_connections: usize,

    /// PostgreSQL: connections for writing; as many tenants can write at the same time. With those for reading and two
    /// more, times the nodes, they must stay below the server's max_connections.
    #[arg(long, env = "SVC_DATABASE_WRITE_CONNECTIONS", value_name = "N", default_value_t = Options::default().write_connections, value_parser = connections)]
    pub database_write_connections: usize,

    /// Address for operators: /metrics, /healthz and /readyz, apart from the public listener. When left out,
    /// 127.0.0.1:9464 if it is free.
    #[arg(long, env = "SVC_OPS_LISTEN", value_name = "ADDRESS")]
    pub ops_listen: Option<SocketAddr>,

    /// Start with a demo tenant, a key, sample data, and private webhook targets allowed.
    #[arg(long, env = "SVC_DEMO", value_parser = BoolishValueParser::new())]
    pub demo: bool,

    /// Development only: allow http:// and private addresses as webhook targets.
    #[arg(long, env = "SVC_ALLOW_PRIVATE_WEBHOOKS", value_parser = BoolishValueParser::new())]
    pub allow_private_webhooks: bool,

    /// Enforce no rate limits.
    #[arg(long, env = "SVC_NO_RATE_LIMIT", value_parser = BoolishValueParser::new())]
    pub no_rate_limit: bool,

    /// Requests a minute of one key, or of one address without a valid key; `svc tenant set` gives the keys of one
    /// tenant another limit.
    #[arg(long, env = "SVC_RATE_LIMIT", value_name = "N", default_value = "60", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate_limit: u32,

    /// Writes a minute of one key per method and route of a resource, such as quotes=20; repeatable. `svc tenant set`
    /// gives the keys of one tenant other limits.
    #[arg(long, env = "SVC_WRITE_RATE_LIMIT", value_name = "RESOURCE=N", value_delimiter = ',', value_parser = write_rate_limit)]
    pub write_rate_limit: Vec<(CappedCollection, NonZeroU32)>,

    /// Longest time for one delivery attempt, from the look-up of the name to the end of the answer.
    #[arg(long, env = "SVC_WEBHOOK_TIMEOUT", value_name = "DURATION", default_value = "10s", value_parser = attempt_timeout)]
    pub webhook_timeout: Duration,

    /// Waits before the retries of a delivery, each with up to 10 % added at random.
    #[arg(long, env = "SVC_WEBHOOK_RETRY", value_name = "DURATIONS", value_delimiter = ',', default_value = "1m,4m,16m,64m,240m", value_parser = duration)]
    pub webhook_retry: Vec<Duration>,

    /// Most delivery attempts at the same time; one tenant gets half of them at most.
    #[arg(long, env = "SVC_WEBHOOK_CONCURRENCY", value_name = "N", default_value = "2048", value_parser = clap::value_parser!(u32).range(1..))]
    pub webhook_concurrency: u32,

    /// How long answers are kept under their Idempotency-Key.
    #[arg(long, env = "SVC_IDEMPOTENCY_TTL", value_name = "DURATION", default_value = "24h", value_parser = duration)]
    pub idempotency_ttl: Duration,

    /// How long events are kept, with their finished deliveries and logs; what is pending or held stays with its event.
    #[arg(long, env = "SVC_RETENTION", value_name = "DURATION", default_value = "30d", value_parser = duration)]
    pub retention: Duration,

    /// How long running requests may take to end after SIGTERM or SIGINT.
    #[arg(long, env = "SVC_SHUTDOWN_GRACE", value_name = "DURATION", default_value = "20s", value_parser = duration)]
    pub shutdown_grace: Duration,

    /// Form of the log on stderr.
    #[arg(long, env = "SVC_LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// Certificate chain in PEM; serves https. It and its key are read again on SIGHUP.
    #[arg(long, env = "SVC_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate in PEM.
    #[arg(long, env = "SVC_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Proxy whose X-Forwarded-For is believed, an address or a network such as 10.0.0.0/8; repeatable.
    #[arg(long, env = "SVC_TRUSTED_PROXY", value_name = "NETWORK", value_delimiter = ',', value_parser = network)]
    pub trusted_proxy: Vec<IpNet>,

    /// Origin that browsers may call from, such as <https://app.example.com>; repeatable.
    #[arg(long, env = "SVC_CORS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    pub cors_origin: Vec<HeaderValue>,

    /// Most connections at the same time; further ones wait to be accepted.
    #[arg(long, env = "SVC_MAX_CONNECTIONS", value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: u32,
}

/// A duration of at most ten years, so that no sum of durations and times overflows.
fn duration(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
    match humantime::parse_duration(text) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        Ok(_) => Err("must be at most ten years".to_owned()),
        Err(error) => Err(format!("{error}; write it as in 10s, 24h or 30d")),
    }
}

/// The deadline of an attempt, which also bounds how long a crash delays what was in flight.
fn attempt_timeout(text: &str) -> Result<Duration, String> {
    let timeout = duration(text)?;
    if timeout.is_zero() || timeout > Duration::from_secs(60 * 60) {
        return Err("must be more than nothing and at most 1h".to_owned());
    }
    Ok(timeout)
}

fn connections(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=1000) => Ok(count),
        _ => Err("must be a whole number from 1 to 1000".to_owned()),
    }
}

fn write_rate_limit(text: &str) -> Result<(CappedCollection, NonZeroU32), Issue> {
    parse_write_limit(text, parse_limit)
}

impl Config {
    /// How deliveries are made.
    pub fn sender_policy(&self) -> Policy {
        Policy {
            timeout: self.webhook_timeout,
            retry: RetrySchedule::new(self.webhook_retry.clone()),
            concurrency: self.webhook_concurrency as usize,
        }
    }

    /// How the database is worked with.
    pub fn store_options(&self) -> Options {
        Options {
            read_connections: self.database_read_connections,
            write_connections: self.database_write_connections,
            ..Options::default()
        }
    }

    /// The settings of the service.
    pub fn settings(&self) -> Settings {
        Settings {
            rate_limit: self.rate_limit,
            write_rate_limits: self.write_rate_limit.iter().copied().collect(),
            limit_rates: !self.no_rate_limit,
            idempotency_ttl: self.idempotency_ttl,
            retention: self.retention,
            cors: Cors::new(self.cors_origin.clone()),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_sound() {
        use clap::CommandFactory as _;
        Config::command().debug_assert();
    }

    #[test]
    fn the_help_tells_what_there_is() {
        use clap::CommandFactory as _;
        let help = Config::command().render_long_help().to_string();
        for told in ["sqlite://PATH", "postgres://USER", "--database-read-connections", "SVC_SECRET_KEY"] {
            assert!(help.contains(told), "{told}: {help}");
        }
        let options = Config::parse_from(["svc-server"]).store_options();
        let defaults = Options::default();
        assert_eq!(options.read_connections, defaults.read_connections);
        assert_eq!(options.write_connections, defaults.write_connections);
    }

    #[test]
    fn durations_have_bounds() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(attempt_timeout("500ms"), Ok(Duration::from_millis(500)));
        for bad in ["", "10", "x", "11years", "600000000000y"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        for bad in ["0s", "61m"] {
            assert!(attempt_timeout(bad).is_err(), "{bad}");
        }
        for bad in ["0", "-1", "many", "1001"] {
            assert!(connections(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_of_writes_come_in_one_flag_or_several() {
        let flags = ["svc-server", "--write-rate-limit", "quotes=5,jobs=6", "--write-rate-limit", "quotes=7"];
        let limits = Config::parse_from(flags).settings().write_rate_limits;
        let of = |collection| limits.of(collection).map(u32::from);
        assert_eq!((of(CappedCollection::Quotes), of(CappedCollection::Jobs)), (Some(7), Some(6)));
        assert_eq!(of(CappedCollection::Contacts), None);
        assert!(Config::try_parse_from(["svc-server", "--write-rate-limit", "quotes=0"]).is_err());
    }
}
