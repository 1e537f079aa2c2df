//! The flags and environment variables of the server, and the file that can stand in for them.

mod file;

use std::convert::Infallible;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{BoolishValueParser, PathBufValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum, ValueHint};
use http::{HeaderValue, Uri};
use ipnet::IpNet;
use svc_core::accounts::limits::{CappedCollection, parse_limit, parse_max_webhooks, parse_write_limit};
use svc_core::env::DEFAULT_MAX_WEBHOOKS;
use svc_core::error::Issue;
use svc_core::values::{EventKinds, Secret, StreamUrl, WebhookUrl};
use svc_core::webhooks::deliveries::RetrySchedule;
use svc_core::webhooks::engine::Policy;
use svc_store::Options;

use crate::dashboard::{Authorities, OidcSettings};
use crate::program::address::ListenAddress;
use crate::program::proxy::network;
use crate::streams;
use crate::telemetry::LogFormat;
use crate::{Cors, DashboardSettings, EgressProxy, OauthClients, OauthSettings, Origin, Settings, Surfaces};

const EXAMPLES: &str = "Examples:
  svc-server --demo
      Try the API on a temporary database with sample data.
  svc-server --database-url sqlite:///var/lib/svc/svc.db --listen 0.0.0.0:8080
      Serve the API from a SQLite file.
  svc-server --database-url 'postgres://svc@db.internal/svc?sslmode=verify-full&sslrootcert=system' --listen 0.0.0.0:8080
      Serve the API from PostgreSQL. SVC_SECRET_KEY, the same on every node, encrypts the secrets in the database.
  SVC_LISTEN=127.0.0.1:0 SVC_LOG_FORMAT=json svc-server
      Listen on a free port, and write the log as JSON.

Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed, 2 invalid usage, 5 database unreachable.
The environment variable SVC_LOG filters the log by level and module, as in SVC_LOG=warn. The default is info.";

/// A server for business records: serves the API and sends webhooks.
#[derive(Debug, Parser)]
#[command(name = "svc-server", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Config {
    /// The command to run instead of serving.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// A file of settings in TOML with the names of the flags, such as listen = ":8080". Flags and environment variables
    /// win over it.
    #[arg(long, env = "SVC_CONFIG", value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,

    /// The address and port to listen on: 127.0.0.1:8080, localhost:8080, or :8080 for all addresses of the machine. A name
    /// is resolved at start, and all its addresses are used. Port 0 selects a free port.
    #[arg(long, env = "SVC_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: ListenAddress,

    /// The database: sqlite://PATH, a file that is created if it does not exist, or
    /// postgres://USER:PASSWORD@HOST:PORT/DATABASE, which several nodes can share. The default is sqlite://svc.db, and
    /// with --demo a temporary file.
    #[arg(long, env = "SVC_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// The number of PostgreSQL connections for reading. Each serves many requests at the same time. SQLite ignores it.
    #[arg(long, env = "SVC_DATABASE_READ_CONNECTIONS", value_name = "N", default_value_t = Options::default().read_connections, value_parser = connections)]
    pub database_read_connections: usize,

    /// The number of PostgreSQL connections for writing, and so of transactions that write at the same time.
    /// The connections for reading and writing and two more, times the number of nodes, must stay below max_connections of
    /// the database server. SQLite ignores it.
    #[arg(long, env = "SVC_DATABASE_WRITE_CONNECTIONS", value_name = "N", default_value_t = Options::default().write_connections, value_parser = connections)]
    pub database_write_connections: usize,

    /// Whether PostgreSQL's planner is told to read every list from its index, whatever its statistics say. By default it is,
    /// except on Citus.
    #[arg(long, env = "SVC_DATABASE_PLANNER_SETTINGS", value_enum)]
    pub database_planner_settings: Option<Switch>,

    /// The address and port of the operations listener, which serves /metrics, /healthz and /readyz. The default is
    /// 127.0.0.1:9464, if that port is free.
    #[arg(long, env = "SVC_OPS_LISTEN", value_name = "ADDRESS", global = true)]
    pub ops_listen: Option<ListenAddress>,

    /// Address of the platform API, with which programs of the operator work on all accounts by platform keys, such as
    /// 127.0.0.1:8081. It is not served unless this is set. Let only these programs reach it.
    #[arg(long, env = "SVC_PLATFORM_LISTEN", value_name = "ADDRESS")]
    pub platform_listen: Option<ListenAddress>,

    /// The URL that operational events are sent to as webhooks: endpoint.paused, delivery.exhausted, key.expiring,
    /// account.approved, app.authorized and app.revoked. Without it they are not recorded. Every node needs the same.
    #[arg(long, env = "SVC_PLATFORM_WEBHOOK", value_name = "URL")]
    pub platform_webhook: Option<WebhookUrl>,

    /// Start with a demo account, an API key and sample data, and allow http:// and private addresses in webhook URLs.
    #[arg(long, env = "SVC_DEMO", value_parser = BoolishValueParser::new())]
    pub demo: bool,

    /// Allow http:// and private addresses in webhook URLs. For development only: it lets the accounts of the API send
    /// requests into the network of the server.
    #[arg(long, env = "SVC_ALLOW_PRIVATE_WEBHOOKS", value_parser = BoolishValueParser::new())]
    pub allow_private_webhooks: bool,

    /// Disable all rate limits.
    #[arg(long, env = "SVC_NO_RATE_LIMIT", value_parser = BoolishValueParser::new())]
    pub no_rate_limit: bool,

    /// The number of requests per minute that are allowed for each API key, and for each address without a valid key.
    /// `svc account set` sets another limit for the keys of one account.
    #[arg(long, env = "SVC_RATE_LIMIT", value_name = "N", default_value = "60", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate_limit: u32,

    /// The number of writes per minute that are allowed for each API key, per method and route of a resource, such as
    /// quotes=20. Can be repeated or separated by commas. `svc account set` sets other limits for the keys of one account.
    #[arg(long, env = "SVC_WRITE_RATE_LIMIT", value_name = "RESOURCE=N", value_delimiter = ',', value_parser = write_rate_limit)]
    pub write_rate_limit: Vec<(CappedCollection, NonZeroU32)>,

    /// The number of webhook subscriptions that each account can have, from 1 to 1000. `svc account set` sets another limit
    /// for one account.
    #[arg(long, env = "SVC_MAX_WEBHOOKS", value_name = "N", default_value_t = DEFAULT_MAX_WEBHOOKS, value_parser = parse_max_webhooks)]
    pub max_webhooks: u32,

    /// A JSON file with your own event kinds: an object of JSON Schemas by the names of their kinds, such as order.shipped. The
    /// same on every node.
    #[arg(long, env = "SVC_EVENT_KINDS", value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = event_kinds())]
    pub event_kinds: Option<EventKinds>,

    /// The timeout of one webhook delivery attempt, from resolving the host name to the end of the response, such as 10s.
    /// At most 1h.
    #[arg(long, env = "SVC_WEBHOOK_TIMEOUT", value_name = "DURATION", default_value = "10s", value_parser = attempt_timeout)]
    pub webhook_timeout: Duration,

    /// The longest timeout that a webhook subscription can have instead, from 1s to 30s.
    #[arg(long, env = "SVC_WEBHOOK_MAX_TIMEOUT", value_name = "DURATION", default_value = "30s", value_parser = attempt_timeout)]
    pub webhook_max_timeout: Duration,

    /// The delays before the retries of a webhook delivery, separated by commas. Up to 10 % is added to each at random.
    #[arg(long, env = "SVC_WEBHOOK_RETRY", value_name = "DURATIONS", value_delimiter = ',', default_value = "1m,4m,16m,64m,240m", value_parser = duration)]
    pub webhook_retry: Vec<Duration>,

    /// The highest number of webhook delivery attempts at the same time. One account can use half of them.
    #[arg(long, env = "SVC_WEBHOOK_CONCURRENCY", value_name = "N", default_value = "2048", value_parser = clap::value_parser!(u32).range(1..))]
    pub webhook_concurrency: u32,

    /// An HTTP proxy that all webhook deliveries go through (CONNECT), such as http://USER:PASSWORD@HOST:PORT, so that receivers
    /// can allow static addresses. Addresses are still resolved and checked here. Set it in the environment, as other users can
    /// see flags.
    #[arg(long, env = "SVC_EGRESS_PROXY", value_name = "URL", hide_env_values = true, value_parser = unchecked_secret)]
    pub egress_proxy: Option<Secret>,

    /// Whether the proxy of --egress-proxy resolves host names. With on, it has to keep deliveries from private addresses: svc
    /// then refuses only those that are written in URLs.
    #[arg(long, env = "SVC_EGRESS_PROXY_RESOLVES", value_enum, default_value_t = Switch::Off)]
    pub egress_proxy_resolves: Switch,

    /// How long the response to a request with an Idempotency-Key is stored. A retry with the same key gets it again.
    #[arg(long, env = "SVC_IDEMPOTENCY_TTL", value_name = "DURATION", default_value = "24h", value_parser = duration)]
    pub idempotency_ttl: Duration,

    /// The broker that all events of all accounts are sent to as well: nats://HOST:PORT/PREFIX,
    /// amqp://USER:PASSWORD@HOST:PORT/VHOST/EXCHANGE or kafka://HOST:PORT/TOPIC, and with TLS tls://, amqps:// and kafka+ssl://.
    /// The program must be built with the feature of the broker.
    #[arg(long, env = "SVC_STREAM", value_name = "URL", hide_env_values = true, value_parser = unchecked_secret)]
    pub stream: Option<Secret>,

    /// How long events are stored, with their deliveries and the logs of attempts. That includes deliveries that are held for a
    /// paused subscription. Pending deliveries are kept, and so are their events.
    #[arg(long, env = "SVC_RETENTION", value_name = "DURATION", default_value = "30d", value_parser = duration)]
    pub retention: Duration,

    /// Whether requests to the API are logged for their account, without bodies: the newest 1,000 of the last 24 hours.
    #[arg(long, env = "SVC_REQUEST_LOG", value_enum, default_value_t = Switch::On)]
    pub request_log: Switch,

    /// Whether the API reference is served at /docs.
    #[arg(long, env = "SVC_DOCS", value_enum, default_value_t = Switch::On)]
    pub docs: Switch,

    /// Whether the API has operations beyond its contract, with which programs of an account fetch the events and deliveries
    /// that they missed, and send them again.
    #[arg(long, env = "SVC_EXTENSIONS", value_enum, default_value_t = Switch::Off)]
    pub extensions: Switch,

    /// Whether invoices that were not paid in time become overdue by themselves, once a day after midnight in the time zone
    /// of their account. With off, run `svc invoice overdue`.
    #[arg(long, env = "SVC_OVERDUE", value_enum, default_value_t = Switch::On)]
    pub overdue: Switch,

    /// Whether the dashboard is served at /dashboard, where people of an account and operators sign in with a link of
    /// `svc dashboard link`, and members at the provider of --oidc-issuer.
    #[arg(long, env = "SVC_DASHBOARD", value_enum, default_value_t = Switch::On)]
    pub dashboard: Switch,

    /// The origin of pages that may show the dashboard in a frame, such as `https://app.example.com`. It must belong to the
    /// same site as this server, or browsers keep the cookie of the session from the frame.
    #[arg(long, env = "SVC_DASHBOARD_FRAME_ANCESTOR", value_name = "ORIGIN")]
    pub dashboard_frame_ancestor: Option<Origin>,

    /// The URL at which the world reaches this server, such as `https://api.example.com`. It names the server to apps, so it is
    /// never taken from a request. For trying, `http://127.0.0.1:8080` is fine.
    #[arg(long, env = "SVC_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<Origin>,

    /// Whether owners can let third-party apps work on their accounts (OAuth 2.0). Requires --public-url, and the
    /// dashboard, in which owners consent.
    #[arg(long, env = "SVC_OAUTH", value_enum, default_value_t = Switch::Off)]
    pub oauth: Switch,

    /// The apps that owners can connect. Requires --oauth on.
    #[arg(long, env = "SVC_OAUTH_CLIENTS", value_enum, value_name = "WHICH", default_value_t = OauthClients::Registered)]
    pub oauth_clients: OauthClients,

    /// Whether assistants find tools at /mcp, and at /mcp/readonly those that change nothing (Model Context Protocol). They need
    /// an API key, or with --oauth on the consent of an owner. Requests must be for the host of --public-url, or for localhost.
    #[arg(long, env = "SVC_MCP", value_enum, default_value_t = Switch::Off)]
    pub mcp: Switch,

    /// The issuer of an identity provider (OpenID Connect), such as `https://id.example.com`, with which members sign in to the
    /// dashboard. Requires --oidc-client-id and --oidc-client-secret. Register the address of this server followed by
    /// /dashboard/oidc/callback there.
    #[arg(long, env = "SVC_OIDC_ISSUER", value_name = "URL")]
    pub oidc_issuer: Option<String>,

    /// The client that the identity provider knows this server as.
    #[arg(long, env = "SVC_OIDC_CLIENT_ID", value_name = "ID")]
    pub oidc_client_id: Option<String>,

    /// The secret of this client. Set it in the environment, as other users can see flags.
    #[arg(long, env = "SVC_OIDC_CLIENT_SECRET", value_name = "SECRET", hide_env_values = true, value_parser = client_secret)]
    pub oidc_client_secret: Option<Secret>,

    /// PEM file with the identity provider's certificate authorities, in place of the public ones. Read at start.
    #[arg(long, env = "SVC_OIDC_CA", value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = Authorities::read)]
    pub oidc_ca: Option<Authorities>,

    /// How long requests and webhook delivery attempts in progress may take to finish after SIGTERM or SIGINT.
    #[arg(long, env = "SVC_SHUTDOWN_GRACE", value_name = "DURATION", default_value = "20s", value_parser = duration)]
    pub shutdown_grace: Duration,

    /// The format of the log on stderr.
    #[arg(long, env = "SVC_LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// A file with the TLS certificate chain in PEM, to serve https. Requires --tls-key. Both files are reloaded on SIGHUP.
    #[arg(long, env = "SVC_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// A file with the private key of the certificate in PEM. Requires --tls-cert.
    #[arg(long, env = "SVC_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// A proxy whose X-Forwarded-For header is trusted: an address, or a network such as 10.0.0.0/8. Can be repeated or
    /// separated by commas. Without any, the header is ignored.
    #[arg(long, env = "SVC_TRUSTED_PROXY", value_name = "NETWORK", value_delimiter = ',', value_parser = network)]
    pub trusted_proxy: Vec<IpNet>,

    /// An origin that browsers may call the API from (CORS), such as `https://app.example.com`. Can be repeated or separated
    /// by commas.
    #[arg(long, env = "SVC_CORS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    pub cors_origin: Vec<HeaderValue>,

    /// The highest number of open connections. When they are used up, a new one closes the oldest idle or unfinished connection
    /// of the address with the most; if there is none, it waits.
    #[arg(long, env = "SVC_MAX_CONNECTIONS", value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: u32,

    /// How long a connection stays open without a request, from 1s to 1h. It must be longer than a load balancer or proxy in
    /// front keeps idle connections: 60s by default at AWS, 600s at Google Cloud.
    #[arg(long, env = "SVC_KEEP_ALIVE", value_name = "DURATION", default_value = "75s", value_parser = keep_alive)]
    pub keep_alive: Duration,
}

/// The commands of the program besides serving.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check whether the server on this machine is healthy, and exit with 0 or 1.
    ///
    /// The check goes to the address of --ops-listen, SVC_OPS_LISTEN or the file of settings, and on loopback if it
    /// listens on all addresses. The check fails when it gets no response within four seconds; the reason is on stderr.
    Healthcheck(Healthcheck),
}

/// The options of `svc-server healthcheck`.
#[derive(Debug, Args)]
pub struct Healthcheck {
    /// Check /readyz, which needs the database, in place of /healthz, which needs the process alone.
    #[arg(long)]
    pub ready: bool,
}

/// A part of the server that can be turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "a text would be in the help of each flag")]
pub enum Switch {
    On,
    Off,
}

/// Parses a duration of at most ten years, so that no sum of durations and times overflows.
fn duration(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
    match humantime::parse_duration(text) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        Ok(_) => Err("must be at most ten years".to_owned()),
        Err(error) => Err(format!("{error}; write it with a unit, as in 10s, 24h or 30d")),
    }
}

/// Parses the timeout of an attempt. Its bound also limits the length of a lease, and so the delay after a crash.
fn attempt_timeout(text: &str) -> Result<Duration, String> {
    let timeout = duration(text)?;
    if timeout.is_zero() || timeout > Duration::from_secs(60 * 60) {
        return Err("must be more than 0s and at most 1h".to_owned());
    }
    Ok(timeout)
}

/// Parses how long a connection stays open without a request.
fn keep_alive(text: &str) -> Result<Duration, String> {
    let keep_alive = duration(text)?;
    if keep_alive < Duration::from_secs(1) || keep_alive > Duration::from_secs(60 * 60) {
        return Err("must be from 1s to 1h".to_owned());
    }
    Ok(keep_alive)
}

/// Returns a parser that reads the file of event kinds.
fn event_kinds() -> impl TypedValueParser<Value = EventKinds> {
    PathBufValueParser::new().try_map(|path| EventKinds::from_file(&path))
}

fn connections(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=1000) => Ok(count),
        _ => Err("must be a whole number from 1 to 1000".to_owned()),
    }
}

/// Takes a secret as it is. Mistakes are reported later: clap would show the secret beside.
fn unchecked_secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text))
}

fn client_secret(text: &str) -> Result<Secret, &'static str> {
    if text.is_empty() { Err("must not be empty") } else { Ok(Secret::new(text)) }
}

/// Returns the host of an origin, without the port.
fn host_of(origin: &Origin) -> Option<String> {
    origin.as_str().parse::<Uri>().ok()?.host().map(str::to_owned)
}

/// Parses the origin of this server. Tokens must not go over plain HTTP, but on one machine.
fn public_url(text: &str) -> Result<Origin, String> {
    let origin: Origin = text.strip_suffix('/').unwrap_or(text).parse()?;
    let host = origin.as_str().strip_prefix("http://").unwrap_or_default();
    let is_local = ["127.0.0.1", "[::1]", "localhost"]
        .iter()
        .any(|local| host.strip_prefix(local).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')));
    if origin.as_str().starts_with("https://") || is_local {
        Ok(origin)
    } else {
        Err("must use https; http is for 127.0.0.1, [::1] and localhost alone".to_owned())
    }
}

fn write_rate_limit(text: &str) -> Result<(CappedCollection, NonZeroU32), Issue> {
    parse_write_limit(text, parse_limit)
}

impl Config {
    /// Reads the command line, the environment and the file of settings. Ends the process if they are not valid, or after
    /// `--help` and `--version`.
    pub fn load() -> Self {
        Self::load_from(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Returns the settings that these arguments and the environment give.
    ///
    /// # Errors
    ///
    /// Returns what is not valid, or the text of `--help` or `--version`.
    pub fn load_from<A: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = A>) -> Result<Self, clap::Error> {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let mut config = Self::try_parse_from(&arguments)?;
        let mut command = Self::command();
        if let Some(path) = &config.config {
            command = file::apply(command, path)?;
            config = Self::from_arg_matches(&command.try_get_matches_from_mut(&arguments)?)?;
        }
        // Not a rule of clap, since either may stand in the file.
        if config.tls_cert.is_some() != config.tls_key.is_some() {
            let error = "--tls-cert and --tls-key are needed together";
            return Err(command.error(ErrorKind::MissingRequiredArgument, error));
        }
        if config.oauth == Switch::On && (config.public_url.is_none() || config.dashboard == Switch::Off) {
            let error = "--oauth on needs --public-url, and the dashboard";
            return Err(command.error(ErrorKind::MissingRequiredArgument, error));
        }
        if config.oauth_clients == OauthClients::Metadata && config.oauth == Switch::Off {
            let error = "--oauth-clients metadata needs --oauth on";
            return Err(command.error(ErrorKind::MissingRequiredArgument, error));
        }
        config.oidc().map_err(|error| command.error(ErrorKind::MissingRequiredArgument, error))?;
        config.egress_proxy().map_err(|error| command.error(ErrorKind::ValueValidation, error))?;
        config.stream().map_err(|error| command.error(ErrorKind::ValueValidation, error))?;
        Ok(config)
    }

    /// Returns the identity provider.
    ///
    /// # Errors
    ///
    /// Returns which flags are missing when only some are given, or what is not valid.
    fn oidc(&self) -> Result<Option<OidcSettings>, String> {
        let Self { oidc_issuer, oidc_client_id, oidc_client_secret, oidc_ca, .. } = self;
        if let (Some(issuer), Some(id), Some(secret)) = (oidc_issuer, oidc_client_id, oidc_client_secret) {
            let settings = OidcSettings::new(issuer, id, secret.clone());
            let settings = settings.map_err(|error| format!("--oidc-issuer: {error}"))?;
            return Ok(Some(match oidc_ca {
                Some(authorities) => settings.authorities(authorities.clone()),
                None => settings,
            }));
        }
        let flags = [
            ("--oidc-issuer", oidc_issuer.is_some()),
            ("--oidc-client-id", oidc_client_id.is_some()),
            ("--oidc-client-secret", oidc_client_secret.is_some()),
        ];
        let missing: Vec<&str> = flags.iter().filter(|(_, is_given)| !is_given).map(|(flag, _)| *flag).collect();
        match missing.len() {
            3 => Ok(None),
            1 => Err(format!("an identity provider needs {} as well", missing[0])),
            _ => Err(format!("an identity provider needs {} as well", missing.join(" and "))),
        }
    }

    /// Returns the proxy of deliveries.
    ///
    /// # Errors
    ///
    /// Returns what is not valid, without the URL, which may have a password.
    fn egress_proxy(&self) -> Result<Option<EgressProxy>, String> {
        let resolves = self.egress_proxy_resolves == Switch::On;
        match &self.egress_proxy {
            Some(url) => {
                let proxy = EgressProxy::parse(url.reveal()).map_err(|error| format!("--egress-proxy {error}"))?;
                Ok(Some(proxy.resolving(resolves)))
            }
            None if resolves => Err("--egress-proxy-resolves on needs --egress-proxy".to_owned()),
            None => Ok(None),
        }
    }

    /// Returns the URL of the stream.
    ///
    /// # Errors
    ///
    /// Returns what is not valid, or not in this program, without the URL, which may have a password.
    pub fn stream(&self) -> Result<Option<StreamUrl>, String> {
        let Some(url) = &self.stream else { return Ok(None) };
        let url = StreamUrl::parse(url.reveal()).map_err(|issue| format!("--stream {issue}"))?;
        streams::check(&url).map_err(|error| format!("--stream {error}"))?;
        Ok(Some(url))
    }

    /// Returns the policy of the delivery engine.
    pub fn delivery_policy(&self) -> Policy {
        Policy {
            timeout: self.webhook_timeout,
            retry: RetrySchedule::new(self.webhook_retry.clone()),
            concurrency: self.webhook_concurrency as usize,
            max_timeout: self.webhook_max_timeout,
        }
    }

    /// Returns the options of the database.
    pub fn store_options(&self) -> Options {
        Options {
            read_connections: self.database_read_connections,
            write_connections: self.database_write_connections,
            planner_settings: self.database_planner_settings.map(|switch| switch == Switch::On),
            ..Options::default()
        }
    }

    /// Returns the settings of the API.
    pub fn settings(&self) -> Settings {
        Settings {
            rate_limit: self.rate_limit,
            write_rate_limits: self.write_rate_limit.iter().copied().collect(),
            limit_rates: !self.no_rate_limit,
            idempotency_ttl: self.idempotency_ttl,
            retention: self.retention,
            request_log: self.request_log == Switch::On,
            cors: Cors::new(self.cors_origin.clone()),
            platform_webhook: self.platform_webhook.clone(),
            public_url: self.public_url.as_ref().map(ToString::to_string),
            // Checked when the flags were read.
            egress_proxy: self.egress_proxy().ok().flatten(),
            ..Settings::default()
        }
    }

    /// Returns what is served besides.
    pub fn surfaces(&self) -> Surfaces {
        let origin = self.public_url.clone().filter(|_| self.oauth == Switch::On);
        let dashboard = DashboardSettings {
            frame_ancestor: self.dashboard_frame_ancestor.clone(),
            // Checked when the flags were read.
            provider: self.oidc().ok().flatten(),
            oauth: origin.map(|origin| OauthSettings { origin, clients: self.oauth_clients }),
            ..DashboardSettings::default()
        };
        Surfaces {
            extensions: self.extensions == Switch::On,
            docs: self.docs == Switch::On,
            dashboard: (self.dashboard == Switch::On).then_some(dashboard),
            mcp: (self.mcp == Switch::On).then(|| self.public_url.iter().filter_map(host_of).collect()),
        }
    }
}

#[cfg(test)]
mod tests;
