//! `svc api`: a request to the platform API, and its response as it is.

mod fields;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::Args;
use hyper::body::Bytes;
use hyper::{Method, Response, StatusCode};
use svc_core::error::FieldCode;
use url::form_urlencoded;

use self::fields::Pairs;
use super::input::read_input;
use super::lookup;
use crate::document::Document;
use crate::exit::{Exit, Failure};
use crate::ids::InAccount;
use crate::output::{Outcome, plain, pretty, stream};
use crate::service::CallError;
use crate::session::Session;

/// Send a request to the platform API of a server, and print the response as it is.
///
/// The request has the platform key of --profile, or that of SVC_PLATFORM_KEY with --server. It is sent once. A path such
/// as /contacts is that of the account, /accounts/ID/contacts; one that begins with /accounts is sent as it is.
///
/// Fields make the body, or with GET and DELETE the query. The value of -f is a text. That of -F is what it looks like: true,
/// false, null and numbers are those, @FILE and @- are the text of a file or of stdin, and the rest is a text. `key[inner]=value`
/// is a member of an object, and `key[]=value` adds to a list. On a terminal, JSON is printed with a line for each member.
///
/// The exit code is 0 for a status of success. It is 2 for 400 and others that a different request mends, 3 for 404, 4 for
/// 401, 403, 409 and 412, 5 for 503, and otherwise 1.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc api GET '/contacts?limit=10' --profile production\n  \
                  svc api POST /contacts -f email=ada@example.com -f first_name=Ada\n  \
                  svc api POST /quotes -f contact_id=ID -F total=99.95\n  \
                  svc api POST /contacts --data contact.json\n  \
                  svc api -i GET /accounts")]
pub(crate) struct Api {
    /// Method of the request: GET, POST, PATCH or DELETE.
    #[arg(value_parser = parse_method, value_name = "METHOD")]
    method: Method,
    /// Path below /platform/v1, with its query. One that does not begin with /accounts is a path of the account.
    #[arg(value_parser = parse_path, value_name = "PATH")]
    path: String,
    /// File with the body, or - for stdin: JSON of at most 1 MiB.
    #[arg(long, short, value_name = "FILE|-")]
    data: Option<PathBuf>,
    /// Field with a text. Can be repeated.
    #[arg(long, short = 'f', value_parser = parse_pair, value_name = "KEY=VALUE", conflicts_with = "data")]
    raw_field: Vec<(String, String)>,
    /// Field with a value of the type that it looks like. Can be repeated.
    #[arg(long, short = 'F', value_parser = parse_pair, value_name = "KEY=VALUE", conflicts_with = "data")]
    field: Vec<(String, String)>,
    /// Print the status and the headers of the response before its body.
    #[arg(long, short)]
    include: bool,
    #[command(flatten)]
    account: InAccount,
}

/// Parses the method of a request, in any case.
fn parse_method(text: &str) -> Result<Method, &'static str> {
    let method = text.to_ascii_uppercase().parse().ok();
    let known = [Method::GET, Method::POST, Method::PATCH, Method::DELETE];
    method.filter(|method| known.contains(method)).ok_or("must be GET, POST, PATCH or DELETE")
}

/// Parses the path of a request, whose first slash can be omitted.
fn parse_path(text: &str) -> Result<String, &'static str> {
    let path = text.strip_prefix("/platform/v1").filter(|rest| rest.starts_with('/')).unwrap_or(text);
    let path = path.strip_prefix('/').unwrap_or(path);
    let (segments, _) = path.split_once('?').unwrap_or((path, ""));
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic()) && !path.contains(['#', '\\']);
    if !is_plain || segments.contains("//") || segments.split('/').any(|segment| [".", ".."].contains(&segment)) {
        return Err("must be a path below /platform/v1, such as /contacts?limit=10 or /accounts");
    }
    Ok(format!("/{path}"))
}

/// The first segments of paths that are not those of an account.
const OF_NO_ACCOUNT: [&str; 5] = ["accounts", "apps", "find-accounts", "operator-links", "openapi.json"];

pub(crate) async fn run(session: &Session, options: Api) -> Result<Outcome, Failure> {
    session.refuse_csv("`svc api`, which prints the response as it is; omit it")?;
    let service = &session.service().await?;
    let platform = service.platform("svc api")?;
    let Api { method, path, data, raw_field, field, include, account } = options;
    let has_texts = !raw_field.is_empty();
    let is_query = [Method::GET, Method::DELETE].contains(&method);
    let (body, path) = match (data, raw_field.is_empty() && field.is_empty()) {
        (Some(file), _) => (Some(read_input(&file)?), path),
        (None, true) => (None, path),
        (None, false) if is_query => (None, with_query(path, raw_field, field)?),
        (None, false) => (Some(fields::to_body(raw_field, field)?), path),
    };
    let path = if names_account(&path) {
        let account = lookup::account(service, &account).await?.id;
        format!("/accounts/{account}{path}")
    } else {
        path
    };
    let response = platform.send_path(method, &path, body).await.map_err(CallError::from)?;
    write(&response, include)?;
    let is_of_type = String::from_utf8_lossy(response.body()).contains(FieldCode::InvalidType.as_str());
    let hint = "Values of -f are texts; give numbers, true, false and null with -F.";
    let failure = failure(response.status()).map(|failure| match has_texts && is_of_type {
        true => Failure::new(failure.exit(), format!("{} {hint}", failure.message())),
        false => failure,
    });
    Ok(Outcome::nothing().with_failure(failure))
}

/// Parses a field: its name, and its value after the first equals sign.
fn parse_pair(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Returns a path with fields in its query.
fn with_query(path: String, texts: Pairs, typed: Pairs) -> Result<String, Failure> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(texts);
    for (key, value) in typed {
        query.append_pair(&key, &String::from_utf8_lossy(&fields::content(&value)?));
    }
    let separator = if path.contains('?') { '&' } else { '?' };
    Ok(format!("{path}{separator}{}", query.finish()))
}

/// Returns whether a path is one of an account.
fn names_account(path: &str) -> bool {
    let first = path.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default();
    !OF_NO_ACCOUNT.contains(&first)
}

/// Writes a response to stdout. On a terminal, JSON has a line for each member, and control characters are escaped.
fn write(response: &Response<Bytes>, include: bool) -> Result<(), Failure> {
    let mut text = Vec::new();
    if include {
        text.extend(format!("{}\n", response.status()).into_bytes());
        for (name, value) in response.headers() {
            text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\n"].concat());
        }
        text.push(b'\n');
    }
    let is_terminal = io::stdout().is_terminal();
    match Document::parse(response.body()) {
        document @ Document::Json(_) if is_terminal => text.extend(pretty(&document).into_bytes()),
        _ => text.extend_from_slice(response.body()),
    }
    if is_terminal {
        text = format!("{}\n", plain(&String::from_utf8_lossy(&text)).trim_end()).into_bytes();
    }
    let mut out = stream();
    match out.write_all(&text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Returns the failure that a status stands for, if it does not stand for success.
fn failure(status: StatusCode) -> Option<Failure> {
    let exit = match status.as_u16() {
        ..=399 => return None,
        404 => Exit::NotFound,
        401 | 403 | 409 | 412 => Exit::Refused,
        503 => Exit::Unreachable,
        429 | 500.. => Exit::Failed,
        _ => Exit::Usage,
    };
    Some(Failure::new(exit, format!("The server responded with {status}.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_the_platform_api_is_one_of_an_account_or_listed() {
        let document = svc_server::api::openapi::text("platform-v1").unwrap();
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        let paths = document["paths"].as_object().unwrap();
        assert!(paths.len() > 40);
        for path in paths.keys() {
            assert!(!names_account(path), "{path}");
        }
        for path in ["/contacts", "/contacts?limit=1", "/webhooks/0195a3c8-0000-7000-8000-000000000001", "/find-ids"] {
            assert!(names_account(path), "{path}");
            let below = format!("/accounts/{{account_id}}{}", path.split(['?', '0']).next().unwrap());
            let below = below.trim_end_matches('/');
            assert!(paths.contains_key(below), "{below}");
        }
    }

    #[test]
    fn a_status_is_an_exit_code() {
        let exit = |status: u16| failure(StatusCode::from_u16(status).unwrap()).map(|failure| failure.exit());
        assert_eq!([200, 204, 304].map(exit), [None; 3]);
        assert_eq!([400, 405, 413, 422].map(exit), [Some(Exit::Usage); 4]);
        assert_eq!(exit(404), Some(Exit::NotFound));
        assert_eq!([401, 403, 409, 412].map(exit), [Some(Exit::Refused); 4]);
        assert_eq!(exit(503), Some(Exit::Unreachable));
        assert_eq!([429, 500, 502].map(exit), [Some(Exit::Failed); 3]);
    }

    #[test]
    fn a_path_is_below_the_platform_api() {
        assert_eq!(parse_path("contacts?limit=1").as_deref(), Ok("/contacts?limit=1"));
        assert_eq!(parse_path("/platform/v1/accounts").as_deref(), Ok("/accounts"));
        assert!(parse_path("https://example.com").is_err());
        assert!(parse_path("/accounts/../../metrics").is_err());
    }
}
