//! An app on the crate `oauth2`.

use http::{Request, StatusCode};
use oauth2::basic::BasicClient;
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, HttpRequest, HttpResponse,
    PkceCodeChallenge, RedirectUrl, RevocationUrl, Scope, StandardRevocableToken, TokenResponse as _, TokenUrl,
};
use svc_core::values::Secret;

use super::Authentication::{Basic, Body, None as Public};
use super::{Running, send};

const REDIRECT_URI: &str = "https://app.example.com/callback";

/// The HTTP client of the library, which revokes over TLS alone. As behind a proxy, the server is reached without.
async fn exchange(mut request: HttpRequest) -> Result<HttpResponse, std::io::Error> {
    *request.uri_mut() = request.uri().to_string().replace("https://", "http://").parse().unwrap();
    let response = send(request.map(|body| String::from_utf8(body).unwrap())).await;
    Ok(response.map(|body| body.to_vec()))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_on_the_crate_oauth2_works_with_the_program() {
    let server = Running::start().await;
    let url = |path: &str| format!("{}{path}", server.issuer);
    for authentication in [Basic, Body, Public] {
        let new = server.register(authentication, REDIRECT_URI).await;
        let mut client = BasicClient::new(ClientId::new(new.app.client_id))
            .set_auth_uri(AuthUrl::new(url("/oauth/authorize")).unwrap())
            .set_token_uri(TokenUrl::new(url("/oauth/token")).unwrap())
            .set_redirect_uri(RedirectUrl::new(REDIRECT_URI.to_owned()).unwrap());
        if let Some(secret) = new.secret.as_ref().map(Secret::reveal) {
            client = client.set_client_secret(ClientSecret::new(secret.to_owned()));
        }
        client =
            client.set_auth_type(if authentication == Basic { AuthType::BasicAuth } else { AuthType::RequestBody });

        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let (authorize, state) = client
            .authorize_url(CsrfToken::new_random)
            .add_scope(Scope::new("read".to_owned()))
            .set_pkce_challenge(challenge)
            .url();
        let returned: url::Url = server.consent(authorize.as_str()).await.parse().unwrap();
        let value = |name: &str| returned.query_pairs().find(|(known, _)| known == name).unwrap().1.into_owned();
        assert_eq!((value("state"), value("iss")), (state.secret().clone(), server.issuer.clone()));

        let code = AuthorizationCode::new(value("code"));
        let tokens = client.exchange_code(code).set_pkce_verifier(verifier).request_async(&exchange).await.unwrap();
        assert_eq!(call(&server, tokens.access_token().secret()).await, StatusCode::OK);
        let refreshed =
            client.exchange_refresh_token(tokens.refresh_token().unwrap()).request_async(&exchange).await.unwrap();
        assert_eq!(call(&server, refreshed.access_token().secret()).await, StatusCode::OK);

        let over_tls = url("/oauth/revoke").replace("http://", "https://");
        let revocation = client.set_revocation_url(RevocationUrl::new(over_tls).unwrap());
        let token = StandardRevocableToken::from(refreshed.refresh_token().unwrap());
        revocation.revoke_token(token).unwrap().request_async(&exchange).await.unwrap();
        assert_eq!(call(&server, refreshed.access_token().secret()).await, StatusCode::UNAUTHORIZED);
        assert_eq!(server.grants().await, 0);
    }
}

async fn call(server: &Running, token: &str) -> StatusCode {
    let request = Request::get(format!("{}/api/v1/contacts", server.issuer));
    send(request.header("authorization", format!("Bearer {token}")).body(String::new()).unwrap()).await.status()
}
