//! Tests of the flags.

use super::*;

#[test]
fn the_flags_are_consistent() {
    use clap::CommandFactory as _;
    Config::command().debug_assert();
}

#[test]
fn the_help_names_the_database_urls_and_their_settings() {
    use clap::CommandFactory as _;
    let help = Config::command().render_long_help().to_string();
    for text in ["sqlite://PATH", "postgres://USER", "--database-read-connections", "SVC_SECRET_KEY"] {
        assert!(help.contains(text), "{text}: {help}");
    }
    let options = Config::parse_from(["svc-server"]).store_options();
    let defaults = Options::default();
    assert_eq!(options.read_connections, defaults.read_connections);
    assert_eq!(options.write_connections, defaults.write_connections);
}

/// The tables of the page about settings have each flag once, with its default.
#[test]
fn each_flag_is_in_the_tables_of_settings_with_its_default() {
    use std::collections::BTreeMap;

    use clap::CommandFactory as _;

    // Defaults that depend on other settings, which `resolve` and the store choose.
    const CHOSEN: [(&str, &str); 3] =
        [("database-url", "sqlite://svc.db"), ("ops-listen", "127.0.0.1:9464"), ("database-planner-settings", "on")];
    let quoted = |cell: &'static str| cell.split('`').skip(1).step_by(2);
    let mut listed = BTreeMap::new();
    for row in include_str!("../../../docs/operations/configure.md").lines().filter(|line| line.starts_with("| `--")) {
        let mut cells = row.split('|').skip(1);
        let (flags, default) = (cells.next().unwrap(), cells.next().unwrap());
        for flag in quoted(flags) {
            let default = quoted(default).next().unwrap_or_default();
            assert_eq!(listed.insert(flag.trim_start_matches("--"), default), None, "{flag} is listed twice");
        }
    }
    let command = Config::command();
    let flags = command.get_opts().filter_map(|arg| Some((arg.get_long()?, arg)));
    let expected = flags.map(|(flag, arg)| {
        let default: Vec<&str> = arg.get_default_values().iter().filter_map(|value| value.to_str()).collect();
        let chosen = CHOSEN.iter().find(|(name, _)| *name == flag).map(|(_, value)| (*value).to_owned());
        // A flag without a value is off, which needs no value in the table.
        let is_switch = matches!(arg.get_action(), clap::ArgAction::SetTrue);
        (flag, if is_switch { String::new() } else { chosen.unwrap_or(default.join(",")) })
    });
    let expected: BTreeMap<&str, String> = expected.collect();
    let listed: BTreeMap<&str, String> = listed.into_iter().map(|(flag, default)| (flag, default.to_owned())).collect();
    assert_eq!(listed, expected);
}

/// The files that the Debian package has of the server. When the flags have changed, the test fails once and writes them.
#[test]
fn the_manual_pages_and_the_completions_are_up_to_date() {
    use clap_complete::Shell;
    let mut command = Config::command();
    command.build();
    let healthcheck = command.find_subcommand("healthcheck").unwrap().clone();
    let mut files = Vec::new();
    for (name, command) in [("svc-server.1", Config::command()), ("svc-server-healthcheck.1", healthcheck)] {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).unwrap();
        files.push((name, String::from_utf8(page).unwrap()));
    }
    for (name, shell) in
        [("svc-server.bash", Shell::Bash), ("svc-server.zsh", Shell::Zsh), ("svc-server.fish", Shell::Fish)]
    {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Config::command(), "svc-server", &mut script);
        // clap_complete 4.6 takes the hyphen for the beginning of a subcommand, and no options of `healthcheck` are found.
        let script =
            String::from_utf8(script).unwrap().replace("svc__subcmd__server__subcmd__", "svc__server__subcmd__");
        files.push((name, script));
    }
    let changed = files.into_iter().filter(|(name, content)| {
        let path = format!("{}/../ops/debian/{name}", env!("CARGO_MANIFEST_DIR"));
        let is_changed = std::fs::read_to_string(&path).ok().as_ref() != Some(content);
        if is_changed {
            std::fs::write(path, content).unwrap();
        }
        is_changed
    });
    assert_eq!(changed.map(|(name, _)| name).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_health_check_has_the_address_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("svc.toml");
    std::fs::write(&file, "ops-listen = ':9001'\nrate-limit = 600").unwrap();
    let file = format!("--config={}", file.display());
    for (arguments, address, is_ready) in [
        (&["healthcheck"][..], None, false),
        (&["healthcheck", "--ready", "--ops-listen=:9002"], Some(":9002"), true),
        (&["--ops-listen=:9002", "healthcheck"], Some(":9002"), false),
        (&["healthcheck", &file], Some(":9001"), false),
        (&[&file, "--rate-limit=5", "healthcheck", "--ops-listen=:9002"], Some(":9002"), false),
    ] {
        let config = Config::load_from([&["svc-server"], arguments].concat()).unwrap();
        let found = config.ops_listen.as_ref().map(ToString::to_string);
        let Some(Command::Healthcheck(options)) = &config.command else { unreachable!("{arguments:?}") };
        assert_eq!((found.as_deref(), options.ready), (address, is_ready), "{arguments:?}");
    }
}

#[test]
fn numbers_and_durations_are_bounded() {
    assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
    assert_eq!(attempt_timeout("500ms"), Ok(Duration::from_millis(500)));
    for bad in ["", "10", "x", "11years", "600000000000y"] {
        assert!(duration(bad).is_err(), "{bad}");
    }
    for bad in ["0s", "61m"] {
        assert!(attempt_timeout(bad).is_err(), "{bad}");
    }
    for (text, seconds) in [("1s", 1), ("75s", 75), ("1h", 60 * 60)] {
        assert_eq!(keep_alive(text), Ok(Duration::from_secs(seconds)));
    }
    for bad in ["0s", "999ms", "3601s", "2h"] {
        assert_eq!(keep_alive(bad), Err("must be from 1s to 1h".to_owned()), "{bad}");
    }
    assert!(keep_alive("75").is_err(), "a time has a unit");
    for bad in ["0", "-1", "many", "1001"] {
        assert!(connections(bad).is_err(), "{bad}");
    }
}

#[test]
fn an_account_can_be_allowed_1000_webhooks_at_most() {
    let limit = |flags: &[&str]| {
        Config::try_parse_from([&["svc-server"], flags].concat()).ok().map(|config| config.max_webhooks)
    };
    assert_eq!((limit(&[]), limit(&["--max-webhooks", "1000"])), (Some(100), Some(1000)));
    for bad in ["0", "1001", "-1", "many"] {
        assert_eq!(limit(&["--max-webhooks", bad]), None, "{bad}");
    }
}

#[test]
fn a_frame_is_allowed_for_an_origin_alone() {
    let flag = |origin| Config::try_parse_from(["svc-server", "--dashboard-frame-ancestor", origin]);
    let dashboard = flag("https://app.example.com").unwrap().surfaces().dashboard.unwrap();
    assert_eq!(dashboard.frame_ancestor.unwrap().as_str(), "https://app.example.com");
    let refused = flag("https://app.example.com/page").unwrap_err().to_string();
    assert!(refused.contains("must be an origin such as https://app.example.com, without a path"), "{refused}");
}

#[test]
fn an_identity_provider_needs_all_three_flags() {
    let flags = ["--oidc-issuer=https://id.example.com", "--oidc-client-id=svc", "--oidc-client-secret=hidden"];
    let load = |given: &[&str]| Config::load_from([&["svc-server"], given].concat());
    assert!(load(&flags).unwrap().surfaces().dashboard.unwrap().provider.is_some());
    assert!(load(&[]).unwrap().surfaces().dashboard.unwrap().provider.is_none());
    for (given, missing) in [
        (&flags[..2], "needs --oidc-client-secret as well"),
        (&flags[1..], "needs --oidc-issuer as well"),
        (&flags[..1], "needs --oidc-client-id and --oidc-client-secret as well"),
        (&["--oidc-issuer=http://id.example.com", flags[1], flags[2]], "must be a URL of https"),
    ] {
        let error = load(given).unwrap_err();
        assert!(error.to_string().contains(missing), "{error}");
    }
    assert!(!format!("{:?}", load(&flags).unwrap()).contains("hidden"));
}

#[test]
fn a_proxy_is_checked_and_its_password_is_not_shown() {
    let load = |given: &[&str]| Config::load_from([&["svc-server"], given].concat());
    let flag = "--egress-proxy=http://svc:hidden@proxy.internal:3128";
    let config = load(&[flag, "--egress-proxy-resolves=on"]).unwrap();
    let proxy = config.settings().egress_proxy.unwrap();
    assert!(proxy.resolves());
    assert_eq!(format!("{proxy:?}"), "EgressProxy(proxy.internal:3128)");
    assert!(!format!("{config:?}").contains("hidden"));
    assert!(!load(&[flag]).unwrap().settings().egress_proxy.unwrap().resolves());
    assert!(load(&[]).unwrap().settings().egress_proxy.is_none());
    for (given, reason) in [
        ("--egress-proxy=proxy.internal:3128", "must be a URL such as http://"),
        ("--egress-proxy=https://svc:hidden@proxy.internal", "TLS to the proxy itself is not supported"),
        ("--egress-proxy=socks5://svc:hidden@proxy.internal", "must be a URL such as http://"),
        ("--egress-proxy=http://svc:hidden@proxy.internal/path", "nothing after the port"),
        ("--egress-proxy=http://svc:hidden@", "must be a URL such as http://"),
        ("--egress-proxy=svc:hidden", "must be a URL such as http://"),
        ("--egress-proxy-resolves=on", "needs --egress-proxy"),
    ] {
        let error = load(&[given]).unwrap_err().to_string();
        assert!(error.contains(reason) && !error.contains("hidden"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("svc.toml");
    std::fs::write(&file, "egress-proxy = \"http://svc:hidden@proxy.internal:3128\"").unwrap();
    let file = format!("--config={}", file.display());
    assert!(load(&[&file]).unwrap().settings().egress_proxy.is_some());
}

#[test]
fn a_stream_is_checked_and_its_password_is_not_shown() {
    let load = |given: &str| Config::load_from(["svc-server", given]);
    assert!(Config::load_from(["svc-server"]).unwrap().stream().unwrap().is_none());
    for url in ["https://svc:hidden@nats.internal", "nats", "nats://svc:hidden@nats.internal/a/b?create=c"] {
        let error = load(&format!("--stream={url}")).unwrap_err().to_string();
        assert!(error.contains("--stream") && !error.contains("hidden"), "{error}");
    }
    for (url, is_built, feature) in [
        ("nats://svc:hidden@nats.internal/svc", cfg!(feature = "nats"), "nats"),
        ("amqps://svc:hidden@rabbit.internal/%2F/events", cfg!(feature = "amqp"), "amqp"),
        ("kafka+ssl://svc:hidden@kafka.internal/events", cfg!(feature = "kafka"), "kafka"),
    ] {
        match load(&format!("--stream={url}")) {
            Ok(config) => assert!(is_built && !format!("{config:?}").contains("hidden"), "{url}"),
            Err(error) => {
                let (reason, error) = (format!("build svc-server with the feature `{feature}`"), error.to_string());
                assert!(!is_built && error.contains(&reason) && !error.contains("hidden"), "{error}");
            }
        }
    }
}

#[test]
fn apps_need_the_public_url_and_the_dashboard() {
    let load = |given: &[&str]| Config::load_from([&["svc-server"], given].concat());
    let on = ["--oauth=on", "--public-url=https://api.example.com/"];
    assert_eq!(
        load(&on).unwrap().surfaces().dashboard.unwrap().oauth.unwrap().origin.as_str(),
        "https://api.example.com"
    );
    assert!(load(&on[1..]).unwrap().surfaces().dashboard.unwrap().oauth.is_none());
    for url in ["http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost"] {
        assert!(load(&[on[0], &format!("--public-url={url}")]).is_ok(), "{url}");
    }
    for given in [
        &on[..1],
        &[on[0], on[1], "--dashboard=off"],
        &[on[0], "--public-url=http://api.example.com"],
        &[on[0], "--public-url=http://127.0.0.1.example.com"],
        &[on[0], "--public-url=https://api.example.com/path"],
    ] {
        assert!(load(given).is_err(), "{given:?}");
    }
}

#[test]
fn write_limits_can_be_separated_by_commas_or_repeated() {
    let flags = ["svc-server", "--write-rate-limit", "quotes=5,jobs=6", "--write-rate-limit", "quotes=7"];
    let limits = Config::parse_from(flags).settings().write_rate_limits;
    let of = |collection| limits.of(collection).map(u32::from);
    assert_eq!((of(CappedCollection::Quotes), of(CappedCollection::Jobs)), (Some(7), Some(6)));
    assert_eq!(of(CappedCollection::Contacts), None);
    assert!(Config::try_parse_from(["svc-server", "--write-rate-limit", "quotes=0"]).is_err());
}
