//! The parameters of TLS in a `postgres://` URL.

use super::super::tls::{Roots, Verification};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The parameters `sslmode` and `sslrootcert`, which the driver supports only in part.
pub(super) struct TlsOptions {
    pub(super) mode: TlsMode,
    root: Option<Root>,
}

/// The value of `sslrootcert`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Root {
    /// The authorities that this machine trusts (`system`).
    System,
    /// Those in a file.
    File(String),
}

impl TlsOptions {
    /// Returns a URL without the two parameters, and their values.
    pub(super) fn split_off(url: &str) -> Result<(String, Self), String> {
        let (mut mode_in_url, mut root) = (None, None);
        let Some((front, query)) = url.split_once('?') else {
            return Ok((url.to_owned(), Self { mode: TlsMode::Prefer, root }));
        };
        let mut rest = Vec::new();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslmode", mode)) => {
                    mode_in_url = Some(match mode {
                        "disable" => TlsMode::Disable,
                        "prefer" => TlsMode::Prefer,
                        "require" => TlsMode::Require,
                        "verify-ca" => TlsMode::VerifyCa,
                        "verify-full" => TlsMode::VerifyFull,
                        _ => {
                            return Err("sslmode must be disable, prefer, require, verify-ca or verify-full".to_owned());
                        }
                    });
                }
                Some(("sslrootcert", path)) => {
                    let path = percent_decoded(path).ok_or("sslrootcert is not valid percent-encoding")?;
                    root = Some(if path == "system" { Root::System } else { Root::File(path) });
                }
                _ => rest.push(pair),
            }
        }
        // As in libpq: every host on the Internet has a certificate of these authorities, so its name has to be checked.
        let default = if root == Some(Root::System) { TlsMode::VerifyFull } else { TlsMode::Prefer };
        let mode = mode_in_url.unwrap_or(default);
        if root == Some(Root::System) && mode != TlsMode::VerifyFull {
            return Err("sslrootcert=system needs sslmode=verify-full, which is its default".to_owned());
        }
        let question = if rest.is_empty() { "" } else { "?" };
        Ok((format!("{front}{question}{}", rest.join("&")), Self { mode, root }))
    }

    pub(super) fn verification(&self) -> Result<Verification<'_>, String> {
        let root = self.root.as_ref().map(|root| match root {
            Root::System => Roots::System,
            Root::File(path) => Roots::File(path),
        });
        match (self.mode, root) {
            (TlsMode::Disable | TlsMode::Prefer | TlsMode::Require, None) => Ok(Verification::None),
            (TlsMode::Disable | TlsMode::Prefer, Some(_)) => Ok(Verification::None),
            // libpq also verifies the certificate with sslmode=require if there is a root certificate.
            (TlsMode::Require | TlsMode::VerifyCa, Some(roots)) => Ok(Verification::Authority(roots)),
            (TlsMode::VerifyFull, Some(roots)) => Ok(Verification::Full(roots)),
            (TlsMode::VerifyCa, None) => Err("sslmode=verify-ca needs sslrootcert=PATH".to_owned()),
            (TlsMode::VerifyFull, None) => {
                Err("sslmode=verify-full needs sslrootcert=PATH or sslrootcert=system".to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sslmode_and_sslrootcert_select_the_verification() {
        let verification = |url: &str| {
            TlsOptions::split_off(url).and_then(|(rest, ssl)| Ok((rest, format!("{:?}", ssl.verification()?))))
        };
        for (url, rest, want) in [
            ("postgres://db/x", "postgres://db/x", "None"),
            ("postgres://db/x?sslmode=require&a=b", "postgres://db/x?a=b", "None"),
            ("postgres://db/x?sslmode=require&sslrootcert=/a%20b", "postgres://db/x", "Authority(File(\"/a b\"))"),
            ("postgres://db/x?sslrootcert=/ca&sslmode=verify-full", "postgres://db/x", "Full(File(\"/ca\"))"),
            ("postgres://db/x?sslrootcert=system", "postgres://db/x", "Full(System)"),
            ("postgres://db/x?sslmode=verify-full&sslrootcert=system", "postgres://db/x", "Full(System)"),
            ("postgres://db/x?sslrootcert=./system", "postgres://db/x", "None"),
        ] {
            assert_eq!(verification(url), Ok((rest.to_owned(), want.to_owned())));
        }
        for bad in [
            "sslmode=allow",
            "sslmode=verify-ca",
            "sslmode=verify-full",
            "sslrootcert=%f",
            "sslrootcert=system&sslmode=disable",
            "sslmode=prefer&sslrootcert=system",
            "sslmode=require&sslrootcert=system",
            "sslmode=verify-ca&sslrootcert=system",
        ] {
            assert!(verification(&format!("postgres://db/x?{bad}")).is_err(), "{bad}");
        }
    }
}
