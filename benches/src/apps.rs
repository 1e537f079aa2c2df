//! Access tokens of an app, as the flow of OAuth 2.0 gives them.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::Svc;
use svc_core::accounts::apps::AppCreate;
use svc_core::accounts::dashboard_links::DashboardLinkCreate;
use svc_core::accounts::sessions::Role;
use svc_core::crypto::sha256;
use svc_core::env::Env;
use svc_core::oauth::Parameters;
use svc_core::oauth::authorization::{self, Issuer};
use svc_core::oauth::tokens::{self, ClientCredentials};
use svc_core::values::{RedirectUri, TenantId, Text};
use svc_store::SqliteStore;

use crate::error::Result;
use crate::seed::Tenant;

/// The URL of the measured server as an authorization server.
pub(crate) const ISSUER: &str = "http://127.0.0.1:8080";
const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters";

/// Returns the tenants with an access token in place of the key.
pub(crate) fn with_tokens(file: &Path, tenants: &Arc<[Tenant]>) -> Result<Arc<[Tenant]>> {
    let svc = Svc::new(SqliteStore::open(file, Env::system())?);
    let with_tokens = crate::child::runtime()?.block_on(async {
        let client_id = create(&svc).await?;
        let all = svc.accounts().list(None, u32::try_from(tenants.len()).unwrap_or(u32::MAX)).await?;
        let mut made = Vec::new();
        // Both are in the order of their ids.
        for (account, tenant) in all.iter().zip(tenants.iter()) {
            let token = token(&svc, account.id, &client_id).await?;
            made.push(Tenant { key: token, contacts: tenant.contacts.clone() });
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(made)
    })?;
    Ok(with_tokens.into())
}

/// Creates an app, and returns its client id.
pub(crate) async fn create(svc: &Svc) -> Result<String> {
    let uris = vec![RedirectUri::from_stored("http://127.0.0.1/callback")];
    let input = AppCreate { public: true, ..AppCreate::new(Text::from_stored("Bench"), uris) };
    Ok(svc.apps().create(input).await?.app.client_id)
}

/// Returns the path with the query of an authorization request.
pub(crate) fn authorization_path(client_id: &str) -> String {
    let challenge = URL_SAFE_NO_PAD.encode(sha256(VERIFIER.as_bytes()));
    format!(
        "/oauth/authorize?response_type=code&client_id={client_id}&code_challenge={challenge}&code_challenge_method=S256"
    )
}

async fn token(svc: &Svc, tenant: TenantId, client_id: &str) -> Result<String> {
    let link = svc.dashboard().create_link(DashboardLinkCreate::to(tenant, Role::Owner)).await?;
    let session = svc.dashboard().sign_in(link.token.reveal()).await?.session;
    let issuer = Issuer { url: ISSUER.to_owned(), resources: Vec::new() };
    let path = authorization_path(client_id);
    let ask = path.split_once('?').map_or("", |(_, query)| query);
    let input = (session, tenant, Parameters::of(ask.as_bytes()), issuer.clone());
    let code =
        svc.store().write("bench.allow", input, async |tx, (session, tenant, ask, issuer)| match authorization::check(
            tx, ask, issuer,
        )
        .await?
        {
            Ok(request) => authorization::allow(tx, session, *tenant, &request).await.map(Some),
            Err(_) => Ok(None),
        });
    let code = code.await?.ok_or("the request of the app is refused")?;
    let exchange = format!("grant_type=authorization_code&code={}&code_verifier={VERIFIER}", code.reveal());
    let client = ClientCredentials { client_id: client_id.to_owned(), secret: None };
    let input = (client, Parameters::of(exchange.as_bytes()), issuer);
    let tokens = svc.store().write("bench.token", input, async |tx, (client, exchange, issuer)| {
        tokens::request(tx, client, exchange, issuer).await
    });
    Ok(tokens.await?.map_err(|refused| refused.to_string())?.access_token.reveal().to_owned())
}
