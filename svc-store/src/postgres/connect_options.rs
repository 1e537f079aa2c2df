//! The connection options in a `postgres://` URL.

mod target;
mod tls_options;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use svc_core::error::StoreError;
use svc_core::store::StoreResult;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::config::{Config, Host, LoadBalanceHosts, SslMode};
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{Client, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use self::target::Target;
use self::tls_options::{TlsMode, TlsOptions};
use super::failure::cannot_connect;
use super::tls;
use crate::slow_reads::ReadTimes;

/// The longest that connecting may take, to all hosts of the URL together, unless the URL says how long each may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// After how long without traffic a TCP keepalive probe is sent, and how long to wait for its response.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// The driver's default for the first of these, which means that the URL has none.
const DRIVER_KEEPALIVE: Duration = Duration::from_secs(2 * 60 * 60);

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

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Reads of all accounts, whose statements are short.
    Read,
    /// Slow reads.
    SlowRead,
    Write,
    /// Notifications and request counts, which may be lost.
    Volatile,
}

/// The options of a connection: the servers, the database, the credentials and TLS.
#[derive(Clone)]
pub(super) struct ConnectOptions {
    /// The options, without hosts.
    config: Config,
    hosts: Vec<Target>,
    tls: MakeRustlsConnect,
    /// Whether to connect without TLS when TLS fails (`sslmode=prefer`).
    allows_plaintext: bool,
    /// Whether connections get [`PLANNER_SETTINGS`].
    pub(super) steers_plans: bool,
    /// With `load_balance_hosts=random`, how many connections were opened: each begins with another host.
    opened: Arc<AtomicUsize>,
    /// How long reads may take, if there are connections for slow ones.
    pub(super) read_times: Option<ReadTimes>,
}

/// Returns the options without the hosts and ports.
fn without_hosts(config: &Config) -> Config {
    let mut rest = Config::new();
    if let Some(user) = config.get_user() {
        rest.user(user);
    }
    if let Some(password) = config.get_password() {
        rest.password(password);
    }
    if let Some(name) = config.get_dbname() {
        rest.dbname(name);
    }
    if let Some(options) = config.get_options() {
        rest.options(options);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        rest.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        rest.keepalives_retries(retries);
    }
    rest.application_name(config.get_application_name().unwrap_or("svc"))
        .ssl_negotiation(config.get_ssl_negotiation())
        .tcp_user_timeout(config.get_tcp_user_timeout().copied().unwrap_or(KEEPALIVE * 2))
        .keepalives(config.get_keepalives())
        .keepalives_idle(
            Some(config.get_keepalives_idle()).filter(|idle| *idle != DRIVER_KEEPALIVE).unwrap_or(KEEPALIVE),
        )
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding());
    rest
}

type Connected<S> = (Client, Connection<Socket, S>);

impl ConnectOptions {
    /// Parses a URL as libpq does. The error never contains the password.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let (rest, ssl) = TlsOptions::split_off(url)?;
        check_options(&rest)?;
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            // The driver quotes the part that it cannot parse, which may contain the password.
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            format!("{error} {}", source.split(['`', '\'']).next().unwrap_or_default()).trim().to_owned()
        })?;
        let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        if config.get_keepalives_interval().is_none() {
            config.keepalives_interval(KEEPALIVE);
        }
        if config.get_keepalives_retries().is_none() {
            config.keepalives_retries(2);
        }
        let hosts = Target::all(&config)?;
        let mut options = without_hosts(&config);
        // Connections over a Unix socket never use TLS.
        options.ssl_mode(match ssl.mode {
            _ if is_local => SslMode::Disable,
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        if let Some(timeout) = config.get_connect_timeout() {
            options.connect_timeout(*timeout);
        }
        options.load_balance_hosts(config.get_load_balance_hosts());
        let verification = ssl.verification()?;
        Ok(Self {
            config: options,
            hosts,
            tls: tls::connector(verification)?,
            allows_plaintext: ssl.mode == TlsMode::Prefer && !is_local,
            steers_plans: true,
            opened: Arc::default(),
            read_times: None,
        })
    }

    /// Returns how long a statement takes at most on the connections of a role, where that is not what the URL says.
    pub(super) fn statement_timeout(&self, role: Role) -> Option<Duration> {
        let times = self.read_times?;
        match role {
            Role::Read => Some(times.shared),
            Role::SlowRead => Some(times.system),
            Role::Write | Role::Volatile => None,
        }
    }

    /// Makes the server end the statement that runs on a connection, by another connection.
    pub(super) async fn cancel(&self, client: &Client) {
        if let Err(error) = in_time(client.cancel_token().cancel_query(self.tls.clone())).await {
            tracing::debug!(%error, "a statement that nobody waits for runs to its timeout");
        }
    }

    /// Opens a connection to the first host that can be connected to, and has the role that the URL asks for. A host that does not
    /// answer, at whatever step, takes no more than its share of the time.
    pub(super) async fn connect(
        &self,
        role: Role,
    ) -> StoreResult<(Client, Connection<Socket, impl TlsStream + Unpin + Send + use<>>)> {
        let mut config = self.config.clone();
        let role_settings = match role {
            Role::Read | Role::SlowRead | Role::Write => "",
            Role::Volatile => VOLATILE_SETTINGS,
        };
        let planner_settings = if self.steers_plans { PLANNER_SETTINGS } else { "" };
        config.options(format!(
            "{TIMEOUTS} {planner_settings} {role_settings} {}",
            self.config.get_options().unwrap_or_default()
        ));
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let mut errors = Vec::new();
        for (at, host) in self.hosts_in_order().enumerate() {
            let share =
                self.config.get_connect_timeout().copied().unwrap_or_else(|| share(deadline, at, self.hosts.len()));
            match self.connect_to_host(&config, host, share).await {
                Ok(connected) => return Ok(connected),
                Err(error) => errors.push((host, error)),
            }
        }
        match errors.pop() {
            Some((_, error)) if errors.is_empty() => Err(error),
            last => {
                let all = errors.into_iter().chain(last);
                let each: Vec<String> = all.map(|(host, error)| format!("{}: {}", host.name(), bare(&error))).collect();
                Err(StoreError::Unavailable(each.join("; ")))
            }
        }
    }

    fn hosts_in_order(&self) -> impl Iterator<Item = &Target> {
        let first = match self.config.get_load_balance_hosts() {
            LoadBalanceHosts::Random => self.opened.fetch_add(1, Ordering::Relaxed) % self.hosts.len().max(1),
            _ => 0,
        };
        self.hosts.iter().cycle().skip(first).take(self.hosts.len())
    }

    /// Tries each address of a host.
    async fn connect_to_host(
        &self,
        options: &Config,
        host: &Target,
        share_of_host: Duration,
    ) -> StoreResult<Connected<impl TlsStream + Unpin + Send + use<>>> {
        let deadline = Instant::now() + share_of_host;
        let no_connection =
            |within: Duration| StoreError::Unavailable(format!("no connection within {:.1} s", within.as_secs_f64()));
        let addresses = match timeout_at(deadline, host.addresses()).await {
            Ok(found) => found.map_err(StoreError::Unavailable)?,
            Err(_) => return Err(no_connection(share_of_host)),
        };
        let mut last = no_connection(share_of_host);
        for (at, address) in addresses.iter().enumerate() {
            let config = host.config(options, *address);
            let share = share(deadline, at, addresses.len());
            match timeout(share, self.connect_to_address(config)).await {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => last = cannot_connect(&error),
                Err(_) => last = no_connection(share),
            }
        }
        Err(last)
    }

    async fn connect_to_address(
        &self,
        mut config: Config,
    ) -> Result<Connected<impl TlsStream + Unpin + Send + use<>>, tokio_postgres::Error> {
        match config.connect(self.tls.clone()).await {
            // The server may offer TLS that does not work, or refuse clients that use TLS.
            Err(error) if self.allows_plaintext && !is_unreachable(&error) => {
                config.ssl_mode(SslMode::Disable).connect(self.tls.clone()).await.map_err(|_| error)
            }
            connected => connected,
        }
    }
}

/// Returns the time that is left until a deadline for the attempt with this number, of so many.
fn share(deadline: Instant, at: usize, count: usize) -> Duration {
    let left = u32::try_from(count.saturating_sub(at)).unwrap_or(u32::MAX).max(1);
    deadline.saturating_duration_since(Instant::now()) / left
}

/// Returns the text of an error without that of its kind.
fn bare(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable(reason) => reason.clone(),
        other => other.to_string(),
    }
}

/// Bounds the time of a step of opening a connection that has been made.
pub(super) async fn in_time<T>(step: impl Future<Output = Result<T, tokio_postgres::Error>>) -> StoreResult<T> {
    match timeout(CONNECT_TIMEOUT, step).await {
        Ok(done) => done.map_err(|error| cannot_connect(&error)),
        Err(_) => Err(StoreError::Unavailable(format!("no response within {CONNECT_TIMEOUT:?}"))),
    }
}

fn is_unreachable(error: &tokio_postgres::Error) -> bool {
    error.to_string().starts_with("error connecting")
}

/// The options of the driver in the query of a URL, beside those of [`TlsOptions`].
const OPTIONS: [&str; 17] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslnegotiation",
    "target_session_attrs",
    "tcp_user_timeout",
];

/// Checks the options in the query of a URL, so that an error names the option. It never has a value.
fn check_options(url: &str) -> Result<(), String> {
    let Some((_, query)) = url.split_once('?') else { return Ok(()) };
    // Otherwise the question mark may be one of the password, and what follows it too.
    let may_show = !query.contains('@');
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        if name == "user" {
            continue;
        }
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !OPTIONS.contains(&name) {
            return Err(if may_show && is_word {
                format!("unknown option {name}; the options are user, {}, sslmode and sslrootcert", OPTIONS.join(", "))
            } else {
                "unknown option; write ? and @ in a name or password as %3F and %40".to_owned()
            });
        }
        if format!("postgres://host?{pair}").parse::<Config>().is_err() {
            return Err(format!("the value of the option {name} is not valid"));
        }
    }
    Ok(())
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
        for bad in [
            "postgres://svc:s3cret@db:s3cret/x",
            "postgres://svc:other@db/x?paswd=s3cret",
            "postgres://svc:other@db/x?connect_timeout=s3cret",
            "postgres://svc:a?s3cret@db/x",
            "postgres://svc:a?s3cret=b@db/x",
            "postgres://svc:a@b?s3cret=b@db/x",
        ] {
            let reason = ConnectOptions::parse(bad).map(drop).unwrap_err();
            assert!(!reason.contains("s3cret"), "{reason}");
        }
    }

    #[test]
    fn an_option_that_is_wrong_is_named() {
        let reason = |url: &str| ConnectOptions::parse(url).map(drop).unwrap_err();
        for name in ["schema", "pgbouncer", "gssencmode", "paswd", "sslcert"] {
            let reason = reason(&format!("postgres://svc:x@db/x?target_session_attrs=any&{name}=s3cret"));
            assert!(reason.starts_with(&format!("unknown option {name}; the options are ")), "{reason}");
        }
        for (option, name) in [
            ("connect_timeout=s3cret", "connect_timeout"),
            ("target_session_attrs=primary", "target_session_attrs"),
            ("hostaddr=db", "hostaddr"),
            ("port=70000", "port"),
            ("keepalives", "keepalives"),
        ] {
            assert_eq!(
                reason(&format!("postgres://db/x?{option}")),
                format!("the value of the option {name} is not valid")
            );
        }
        assert!(ConnectOptions::parse("postgres://db/x?user=svc@server&connect_timeout=3").is_ok());
        assert_eq!(reason("postgres:///x"), "a host is missing");
        assert_eq!(reason("postgres:///x?host=a&port=1,2"), "the numbers of hosts (1) and of ports (2) differ");
    }

    #[test]
    fn every_option_of_the_driver_is_known() {
        let values = [
            "x",
            "prefer",
            "1",
            "x",
            "h",
            "127.0.0.1",
            "1",
            "1",
            "1",
            "1",
            "random",
            "-c%20a%3Db",
            "x",
            "1",
            "direct",
            "any",
            "1",
        ];
        for (name, value) in OPTIONS.into_iter().zip(values) {
            assert_eq!(
                ConnectOptions::parse(&format!("postgres:///x?host=h&{name}={value}")).map(drop),
                Ok(()),
                "{name}"
            );
        }
    }

    #[test]
    fn the_hosts_of_a_url_keep_their_ports_and_their_order() {
        let hosts = |url: &str| {
            let options = ConnectOptions::parse(url).unwrap();
            (0..2).map(|_| options.hosts_in_order().map(Target::name).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(hosts("postgres://a:1,b,c:3/x"), ["a:1 b:5432 c:3"; 2]);
        assert_eq!(hosts("postgres:///x?host=/run/a&port=7"), ["/run/a"; 2]);
        assert_eq!(hosts("postgres://a,b/x?load_balance_hosts=random"), ["a:5432 b:5432", "b:5432 a:5432"]);
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
