//! The tokens of an app (OAuth 2.0, `docs/oauth.md`), which are refreshed when the service refuses them.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use svc_core::values::Secret;
use tokio::sync::Mutex;

use crate::error::{Error, Result, StoreError};

/// The tokens of an app for one account, as the service gave them for a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The access token, `svc_oat_…`, which lasts an hour.
    pub access_token: Secret,
    /// The refresh token, `svc_ort_…`, which lasts 90 days after its last use.
    pub refresh_token: Secret,
}

type Store = Arc<dyn Fn(Tokens) -> BoxFuture<'static, std::result::Result<(), StoreError>> + Send + Sync>;

/// Where a client has its access token from, in place of an API key. One is for one account.
///
/// When the service refuses the access token with 401, the client gets another one for the refresh token, stores the new
/// tokens, and sends the request once more. Calls that run at the same time wait for one refresh, which is attempted as often as
/// a call is, in time of its own. When the account has ended
/// the access, the call fails with the code `invalid_grant`: delete the tokens, and offer to connect again.
///
/// The refresh token of a public app is replaced each time, so the new one is stored before it is used. If that fails, the
/// call fails with [`Error::TokensNotStored`] and the tokens stay as they were: the service gives the same new ones again for
/// 30 minutes. Programs that share the tokens of a public app must share one source, as a refresh token that comes again
/// later ends the access (RFC 9700 §4.14).
///
/// # Examples
///
/// ```no_run
/// use svc_client::prelude::*;
/// use svc_client::{TokenSource, Tokens};
///
/// # async fn example(access_token: &str, refresh_token: &str, secret: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let tokens = Tokens { access_token: Secret::new(access_token), refresh_token: Secret::new(refresh_token) };
/// let source = TokenSource::new("svcapp_…", tokens, |tokens: Tokens| async move {
///     let text = format!("{}\n{}\n", tokens.access_token.reveal(), tokens.refresh_token.reveal());
///     std::fs::write("tokens", text)
/// });
/// let client = Client::builder_with_tokens("https://svc.example.com", source.client_secret(secret)).build()?;
/// println!("{}", client.contacts().list().page().await?.data.len());
/// # Ok(())
/// # }
/// ```
pub struct TokenSource {
    client_id: String,
    client_secret: Option<Secret>,
    tokens: Mutex<Tokens>,
    store: Store,
}

impl TokenSource {
    /// Returns the source of a public app, which begins with these tokens. `store` stores each new ones where the app finds
    /// them when it is started again.
    pub fn new<F, E>(client_id: &str, tokens: Tokens, store: impl Fn(Tokens) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = std::result::Result<(), E>> + Send + 'static,
        E: Into<StoreError>,
    {
        let store: Store = Arc::new(move |tokens| {
            let stored = store(tokens);
            Box::pin(async { stored.await.map_err(Into::into) })
        });
        Self { client_id: client_id.to_owned(), client_secret: None, tokens: Mutex::new(tokens), store }
    }

    /// Sets the secret of a confidential app, `svc_ocs_…`.
    #[must_use]
    pub fn client_secret(self, secret: &str) -> Self {
        Self { client_secret: Some(Secret::new(secret)), ..self }
    }

    /// Returns the access token. It waits for a refresh that runs.
    pub(crate) async fn access_token(&self) -> Secret {
        self.tokens.lock().await.access_token.clone()
    }

    /// Returns the access token after the one that was refused: that of another call which has refreshed it meanwhile, or
    /// else a new one. `ask` sends the form to the endpoint for tokens.
    pub(crate) async fn access_token_after(
        &self,
        refused: &Secret,
        ask: impl AsyncFnOnce(&[(&str, &str)]) -> Result<NewTokens>,
    ) -> Result<Secret> {
        let mut tokens = self.tokens.lock().await;
        if tokens.access_token != *refused {
            return Ok(tokens.access_token.clone());
        }
        let mut form = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", tokens.refresh_token.reveal()),
            ("client_id", &self.client_id),
        ];
        form.extend(self.client_secret.as_ref().map(|secret| ("client_secret", secret.reveal())));
        let new = ask(&form).await?;
        let new = Tokens {
            access_token: Secret::new(new.access_token),
            refresh_token: new.refresh_token.map_or_else(|| tokens.refresh_token.clone(), Secret::new),
        };
        (self.store)(new.clone()).await.map_err(Error::TokensNotStored)?;
        *tokens = new;
        Ok(tokens.access_token.clone())
    }
}

/// The response of the endpoint for tokens (RFC 6749 §5.1).
#[derive(Deserialize)]
pub(crate) struct NewTokens {
    pub(crate) access_token: String,
    refresh_token: Option<String>,
}

impl fmt::Debug for TokenSource {
    /// Shows no tokens and no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSource").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}
