//! The checks of an ID token: its signature (RFC 7515, RFC 7518) and its claims (OpenID Connect Core, 3.1.3.7).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;
use serde_json::Value;
use svc_core::crypto::sha256;
use svc_core::values::Timestamp;

/// How far the clock of the provider may be ahead of that of this server.
const MAX_AHEAD: Duration = Duration::from_secs(5 * 60);

/// A reason for which an ID token is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("no key of the provider has its id and suits its algorithm")]
    UnknownKey,
    #[error("{0}")]
    Invalid(&'static str),
}

use TokenError::Invalid;

/// The properties that an ID token must have.
pub(super) struct Expectations<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    /// The algorithms that the provider announces.
    pub(super) algorithms: &'a [String],
    pub(super) keys: &'a [Key],
    pub(super) now: Timestamp,
}

#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    iss: String,
    pub(super) sub: String,
    aud: Audience,
    azp: Option<String>,
    exp: f64,
    iat: f64,
    nonce: Option<String>,
    #[serde(flatten)]
    pub(super) email: EmailClaims,
}

/// The claims of the scope `email`.
#[derive(Debug, Deserialize)]
pub(super) struct EmailClaims {
    pub(super) email: Option<String>,
    pub(super) email_verified: Option<Flag>,
}

/// A claim that is true or false. Some providers send it as a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Value")]
pub(super) struct Flag(pub(super) bool);

impl From<Value> for Flag {
    fn from(value: Value) -> Self {
        Self(value == Value::Bool(true) || value.as_str() == Some("true"))
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
    cty: Option<String>,
    kid: Option<String>,
    crit: Option<Value>,
}

impl Expectations<'_> {
    /// Returns the claims of a token that is signed by the provider for this attempt.
    pub(super) fn verify(&self, token: &str) -> Result<Claims, TokenError> {
        let (message, signature) = token.rsplit_once('.').ok_or(Invalid("it is no JWT"))?;
        let (header, claims) = message.split_once('.').ok_or(Invalid("it is no JWT"))?;
        let header: Header = decode_json(header)?;
        self.verify_signature(&header, message, signature)?;
        let claims: Claims = decode_json(claims)?;
        self.verify_claims(&claims)?;
        Ok(claims)
    }

    fn verify_signature(&self, header: &Header, message: &str, signature: &str) -> Result<(), TokenError> {
        let is_jwt =
            |typ: &String| ["jwt", "jose", "application/jwt", "application/jose"].contains(&&*typ.to_lowercase());
        if !header.typ.as_ref().is_none_or(is_jwt) || header.cty.is_some() || header.crit.is_some() {
            return Err(Invalid("its header says more than that it is a signed JWT"));
        }
        let announced = self.algorithms.contains(&header.alg);
        let algorithm = Algorithm::named(&header.alg).filter(|_| announced);
        let algorithm =
            algorithm.ok_or(Invalid("its algorithm is not among those of the provider that are accepted"))?;
        // The id in the header narrows the choice; which keys are trusted depends on nothing in the token.
        let is_named = |key: &&Key| header.kid.is_none() || header.kid == key.kid;
        let mut suitable = self.keys.iter().filter(is_named).filter(|key| key.suits(&header.alg, algorithm));
        let key = suitable.next().ok_or(TokenError::UnknownKey)?;
        if suitable.next().is_some() {
            return Err(Invalid("more than one key of the provider may have signed it"));
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Invalid("its signature is not base64url"))?;
        key.verify(algorithm, message.as_bytes(), &signature).ok_or(Invalid("its signature is wrong"))
    }

    fn verify_claims(&self, claims: &Claims) -> Result<(), TokenError> {
        if claims.iss != self.issuer {
            return Err(Invalid("another issuer made it"));
        }
        // A further audience could sign in here with its copy of the token.
        let is_for_client = match &claims.aud {
            Audience::One(audience) => audience == self.client_id,
            Audience::Many(all) => !all.is_empty() && all.iter().all(|audience| audience == self.client_id),
        };
        if !is_for_client || claims.azp.as_ref().is_some_and(|party| party != self.client_id) {
            return Err(Invalid("it is for another client"));
        }
        if self.now.as_micros() as f64 >= claims.exp * 1e6 {
            return Err(Invalid("it has expired"));
        }
        // As `exp`, it is compared with the clock of this server, which may be a little behind.
        if claims.iat * 1e6 > self.now.as_micros() as f64 + MAX_AHEAD.as_micros() as f64 {
            return Err(Invalid("it was made in the future by the clock of this server"));
        }
        // Digests are compared, so that the time of the comparison tells nothing.
        let nonce = claims.nonce.as_ref().map(|nonce| sha256(nonce.as_bytes()));
        if nonce != Some(sha256(self.nonce.as_bytes())) {
            return Err(Invalid("its nonce is that of another attempt"));
        }
        Ok(())
    }
}

/// Decodes a part of a token.
fn decode_json<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, TokenError> {
    let json = URL_SAFE_NO_PAD.decode(part).map_err(|_| Invalid("one of its parts is not base64url"))?;
    serde_json::from_slice(&json).map_err(|_| Invalid("one of its parts lacks what an ID token has"))
}

/// A signature algorithm whose key only the provider has. A signature that everyone with the secret of the client can make (HS256),
/// or nothing (none), proves nothing.
#[derive(Clone, Copy)]
enum Algorithm {
    Rsa(&'static RsaParameters),
    /// The type and the curve of the keys.
    Curve(&'static str, &'static str, &'static dyn VerificationAlgorithm),
}

impl Algorithm {
    /// Returns the algorithm with a name of RFC 7518 or RFC 8037.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            "RS384" => Self::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            "RS512" => Self::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            "PS256" => Self::Rsa(&RSA_PSS_2048_8192_SHA256),
            "PS384" => Self::Rsa(&RSA_PSS_2048_8192_SHA384),
            "PS512" => Self::Rsa(&RSA_PSS_2048_8192_SHA512),
            "ES256" => Self::Curve("EC", "P-256", &ECDSA_P256_SHA256_FIXED),
            "ES384" => Self::Curve("EC", "P-384", &ECDSA_P384_SHA384_FIXED),
            "EdDSA" => Self::Curve("OKP", "Ed25519", &ED25519),
            _ => return None,
        })
    }
}

/// A key of the provider (RFC 7517).
#[derive(Debug, Deserialize)]
pub(super) struct Key {
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Key {
    fn suits(&self, name: &str, algorithm: Algorithm) -> bool {
        let has_type = match algorithm {
            Algorithm::Rsa(_) => self.kty == "RSA",
            Algorithm::Curve(kty, curve, _) => self.kty == kty && self.crv.as_deref() == Some(curve),
        };
        let is_for = |allowed: &Option<String>, purpose: &str| allowed.as_ref().is_none_or(|it| it == purpose);
        has_type && is_for(&self.usage, "sig") && is_for(&self.alg, name)
    }

    /// Returns `None` for a signature that this key has not made.
    fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> Option<()> {
        let decoded = |number: &Option<String>| URL_SAFE_NO_PAD.decode(number.as_ref()?).ok();
        let verified = match algorithm {
            Algorithm::Rsa(parameters) => {
                let (n, e) = (decoded(&self.n)?, decoded(&self.e)?);
                // Some providers write zeros before the modulus, which ring refuses.
                let n = &n[n.iter().take_while(|byte| **byte == 0).count()..];
                RsaPublicKeyComponents { n, e: &e[..] }.verify(parameters, message, signature)
            }
            Algorithm::Curve(kty, _, algorithm) => {
                let x = decoded(&self.x)?;
                let point = if kty == "EC" { [&[4][..], &x, &decoded(&self.y)?].concat() } else { x };
                UnparsedPublicKey::new(algorithm, point).verify(message, signature)
            }
        };
        verified.ok()
    }
}

#[cfg(test)]
mod tests;
