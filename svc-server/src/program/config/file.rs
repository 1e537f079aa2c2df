//! The file of settings that `--config` names: TOML, with the names of the flags.
//!
//! ```toml
//! listen = ":8080"
//! webhook-retry = ["1m", "10m"]
//! log-format = "json"
//! ```
//!
//! A value in the file becomes the default of its flag. So flags and environment variables win over it, and every value is
//! read by the parser of its flag.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, Error};
use serde_json::{Map, Value};

/// The flags that a file cannot set.
const FLAGS_ALONE: [&str; 3] = ["config", "help", "version"];

/// Returns the command with the settings of a file as defaults.
///
/// # Errors
///
/// Returns a usage error, which names the file, if the file cannot be read, names something that is no flag, or has a value
/// that the flag does not take.
pub(super) fn apply(mut command: Command, path: &Path) -> Result<Command, Error> {
    let settings = std::fs::read_to_string(path)
        .map_err(|error| error.to_string())
        .and_then(|text| basic_toml::from_str::<Map<String, Value>>(&text).map_err(|error| error.to_string()));
    let fail = |command: &mut Command, error: &str| {
        command.error(ErrorKind::ValueValidation, format!("{}: {error}", path.display()))
    };
    let settings = settings.map_err(|error| fail(&mut command, &error))?;
    for (name, value) in settings {
        let values = values(&command, &name, &value).map_err(|error| fail(&mut command, &error))?;
        command = command.mut_args(|arg| if arg.get_long() == Some(&name) { arg.default_values(&values) } else { arg });
    }
    Ok(command)
}

/// Returns the values of a setting as the command line would have them, after its flag has taken them.
fn values(command: &Command, name: &str, value: &Value) -> Result<Vec<String>, String> {
    let flag = find(command, name)?;
    let values = match value {
        Value::Array(values) => values.iter().map(text).collect::<Option<Vec<_>>>(),
        single => text(single).map(|text| vec![text]),
    };
    let values = values
        .filter(|values| !values.is_empty())
        .ok_or_else(|| format!("{name} must be a text, a number, true, false, or a list of these"))?;
    if matches!(flag.get_action(), ArgAction::SetTrue) {
        return if value.is_boolean() { Ok(values) } else { Err(format!("{name} must be true or false")) };
    }
    let arguments = values.iter().map(|value| format!("--{name}={value}"));
    let alone = Command::new(command.get_name().to_owned()).no_binary_name(true).arg(flag.clone());
    alone.try_get_matches_from(arguments).map_err(|error| first_paragraph(&error))?;
    Ok(values)
}

/// Returns the flag with this name, or an error with the name that it resembles.
fn find<'c>(command: &'c Command, name: &str) -> Result<&'c Arg, String> {
    let flag = command.get_opts().find(|arg| arg.get_long() == Some(name) && !FLAGS_ALONE.contains(&name));
    flag.ok_or_else(|| {
        let unknown = command.clone().no_binary_name(true).try_get_matches_from([format!("--{name}")]);
        match unknown.as_ref().err().and_then(|error| error.get(ContextKind::SuggestedArg)) {
            Some(ContextValue::String(similar)) => {
                format!("there is no setting {name:?}; did you mean {:?}?", similar.trim_start_matches('-'))
            }
            _ => format!("there is no setting {name:?}; the settings are the flags that --help lists"),
        }
    })
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_set) => Some(is_set.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns what clap says of an error, without the hint at `--help`.
fn first_paragraph(error: &Error) -> String {
    let text = error.to_string();
    let text = text.split("\n\n").next().unwrap_or_default();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Config;

    fn load(text: &str, flags: &[&str]) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("svc.toml");
        std::fs::write(&path, text).unwrap();
        let config = ["svc-server", "--config", path.to_str().unwrap()];
        Config::load_from([&config[..], flags].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_have_the_names_and_the_values_of_flags() {
        let text = "
            # All kinds of values.
            listen = 'localhost:9000'
            demo = true
            rate-limit = 600
            webhook-retry = ['1s', '2s']
            write-rate-limit = 'quotes=5,jobs=6'
            log-format = 'json'
            tls-cert = 'cert.pem'
            tls-key = 'key.pem'
        ";
        let config = load(text, &[]).unwrap();
        assert_eq!((config.listen.to_string().as_str(), config.demo, config.rate_limit), ("localhost:9000", true, 600));
        assert_eq!(config.webhook_retry, [Duration::from_secs(1), Duration::from_secs(2)]);
        assert_eq!((config.write_rate_limit.len(), config.tls_key.is_some()), (2, true));
        assert_eq!(config.log_format, crate::telemetry::LogFormat::Json);
        // A flag wins.
        let config = load(text, &["--listen", ":1", "--webhook-retry", "3s", "--tls-cert", "other.pem"]).unwrap();
        assert_eq!((config.listen.to_string().as_str(), config.webhook_retry.len()), (":1", 1));
        assert!(!load("demo = false", &[]).unwrap().demo);
    }

    #[test]
    fn a_file_that_is_wrong_is_refused_with_its_name_and_a_reason() {
        for (text, reason) in [
            ("listen = ", "svc.toml: "),
            ("lisen = ':80'", "there is no setting \"lisen\"; did you mean \"listen\"?"),
            ("webhook_retry = '1s'", "did you mean \"webhook-retry\"?"),
            ("config = 'other.toml'", "there is no setting \"config\""),
            ("zzzzz = 1", "there is no setting \"zzzzz\"; the settings are the flags that --help lists"),
            ("listen = 'nowhere'", "svc.toml: invalid value 'nowhere' for '--listen <ADDRESS>': \"nowhere\" is not"),
            ("listen = [':1', ':2']", "cannot be used multiple times"),
            ("log-format = 'xml'", "[possible values: text, json]"),
            ("rate-limit = 0", "0 is not in 1.."),
            ("demo = 'yes'", "demo must be true or false"),
            ("webhook-retry = []", "webhook-retry must be a text"),
            ("[listen]\nport = 1", "listen must be a text"),
            ("tls-cert = 'cert.pem'", "--tls-cert and --tls-key"),
        ] {
            let error = load(text, &[]).map(drop).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let error = Config::load_from(["svc-server", "--config", "no/such/svc.toml"]).map(drop).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("no/such/svc.toml: No such file"), "{error}");
    }
}
