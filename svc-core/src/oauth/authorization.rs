//! The authorization request, and what an owner answers to it (RFC 6749 §4.1).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::parameters::{self, Parameters, Repeated};
use super::published::{self, PublishedApp};
use crate::accounts::apps::App;
use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::grants::{AuthorizationCode, CODE_PREFIX, Grant};
use crate::accounts::keys::{self, Scope};
use crate::accounts::operational::{self, OperationalKind, Report};
use crate::accounts::sessions::{self, Role, Session};
use crate::accounts::tenants::{self, DeveloperAccess, Tenant};
use crate::crypto::sha256;
use crate::error::Error;
use crate::store::Tx;
use crate::values::{Secret, TenantId, TextEnum, Timestamp};

/// How long a code can be exchanged.
pub const CODE_LIFETIME: Duration = Duration::from_secs(60);
/// The longest `state` that is taken, in bytes.
const MAX_STATE: usize = 2048;

/// The properties of this service as apps see it.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// Its URL, without a slash at its end.
    pub url: String,
    /// The resources that a token can be for, as paths below the URL.
    pub resources: Vec<String>,
}

/// Whether an owner is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prompt {
    /// If the app asks for more than the account has granted.
    #[default]
    IfNeeded,
    /// In any case.
    Always,
    /// Never: without consent the answer is an error.
    Never,
}

impl Prompt {
    /// Reads a list of values with spaces between them (OpenID Connect Core §3.1.2.1).
    fn parse(text: &str) -> Result<Self, ()> {
        let mut prompt = Self::IfNeeded;
        for value in text.split(' ').filter(|value| !value.is_empty()) {
            prompt = match (value, prompt) {
                ("none", Self::IfNeeded) => Self::Never,
                ("consent" | "login" | "select_account", Self::IfNeeded | Self::Always) => Self::Always,
                _ => return Err(()),
            };
        }
        Ok(prompt)
    }
}

/// An authorization request that can be put to an owner.
#[derive(Clone, Debug)]
pub struct AuthorizationRequest {
    /// The app that asks.
    pub app: App,
    /// Where the browser returns.
    pub redirect_uri: String,
    /// The value that the app gets back.
    pub state: Option<String>,
    /// Whether it asks for the scope `write`.
    pub writes: bool,
    /// Whether an owner is asked.
    pub prompt: Prompt,
    is_uri_named: bool,
    challenge: [u8; 32],
    resource: Option<String>,
}

/// The errors that an app gets, with their codes in RFC 6749 §4.1.2.1, RFC 8707 §2 and OpenID Connect Core §3.1.2.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum AuthorizationError {
    /// A parameter is missing, repeated or malformed.
    InvalidRequest,
    /// Only `code` is a type of response.
    UnsupportedResponseType,
    /// There is no such scope, or the app may not ask for it.
    InvalidScope,
    /// There is no such resource.
    InvalidTarget,
    /// The owner said no.
    AccessDenied,
    /// Nobody is signed in who could be asked, and nobody was to be.
    LoginRequired,
    /// The account has not granted it, and nobody was to be asked.
    ConsentRequired,
    /// Something failed here.
    ServerError,
}

/// Why a request cannot be put to an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The app or its redirect URI is not known, so a page says why, as a sentence. The browser is sent nowhere.
    Page(String),
    /// The app is told.
    Return(Return),
}

/// A return to an app with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    /// Where the browser returns.
    pub redirect_uri: String,
    /// The value that the app gets back.
    pub state: Option<String>,
    /// The error.
    pub error: AuthorizationError,
    /// The mistake, as a sentence for the developer of the app.
    pub description: &'static str,
}

impl Return {
    /// Returns the URL to which the browser goes.
    pub fn url(&self, issuer: &Issuer) -> String {
        let result = [("error", self.error.as_str()), ("error_description", self.description)];
        return_url(&self.redirect_uri, &result, self.state.as_deref(), issuer)
    }
}

impl AuthorizationRequest {
    /// Returns the URL to which the browser goes with a code.
    pub fn url_with(&self, code: &Secret, issuer: &Issuer) -> String {
        return_url(&self.redirect_uri, &[("code", code.reveal())], self.state.as_deref(), issuer)
    }

    /// Returns the return with an error.
    pub fn refused(&self, error: AuthorizationError, description: &'static str) -> Return {
        Return { redirect_uri: self.redirect_uri.clone(), state: self.state.clone(), error, description }
    }

    /// Returns the scopes that are asked for.
    pub fn scopes(&self) -> Vec<Scope> {
        keys::scopes(self.writes)
    }
}

fn return_url(uri: &str, result: &[(&str, &str)], state: Option<&str>, issuer: &Issuer) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(result);
    query.extend_pairs(state.map(|state| ("state", state)));
    // Tells apps that know several servers which one answers (RFC 9207).
    query.append_pair("iss", &issuer.url);
    format!("{uri}{}{}", if uri.contains('?') { '&' } else { '?' }, query.finish())
}

/// Checks an authorization request.
///
/// # Errors
/// [`Error::Store`]. A mistake in the request is a [`Refusal`].
pub async fn check(
    tx: &mut dyn Tx,
    parameters: &Parameters,
    issuer: &Issuer,
) -> Result<Result<AuthorizationRequest, Refusal>, Error> {
    let page = |reason: &str| Ok(Err(Refusal::Page(reason.to_owned())));
    let Ok(Some(client_id)) = parameters.one("client_id") else {
        return page("The link of the app has no client_id, or more than one.");
    };
    if published::is_url(client_id) {
        return page("The client_id is a URL. This service knows only apps that were registered with its operator.");
    }
    match tx.app_by_client_id(client_id).await? {
        Some(app) => Ok(checked_for(parameters, issuer, app)),
        None => page("There is no app with this client_id."),
    }
}

/// Checks an authorization request of an app that publishes what it is.
///
/// # Errors
/// As [`check`].
pub async fn check_published(
    tx: &mut dyn Tx,
    parameters: &Parameters,
    issuer: &Issuer,
    published: &PublishedApp,
) -> Result<Result<AuthorizationRequest, Refusal>, Error> {
    let app = published.app(tx).await?;
    Ok(checked_for(parameters, issuer, app))
}

fn checked_for(parameters: &Parameters, issuer: &Issuer, app: App) -> Result<AuthorizationRequest, Refusal> {
    let page = |reason: &str| Err(Refusal::Page(reason.to_owned()));
    if app.disabled_at.is_some() {
        return page("The app is disabled.");
    }
    let Ok(redirect_uri) = parameters.one("redirect_uri") else {
        return page("The link of the app has more than one redirect_uri.");
    };
    let known = match (redirect_uri, app.redirect_uris.as_slice()) {
        (Some(uri), known) => known.iter().any(|known| known.matches(uri)).then(|| uri.to_owned()),
        (None, [only]) => Some(only.as_str().to_owned()),
        (None, _) => None,
    };
    let Some(uri) = known else {
        return page("The redirect_uri of the link is none of those that the app has registered.");
    };
    checked(parameters, issuer, app, uri, redirect_uri.is_some()).map_err(Refusal::Return)
}

/// Checks what is left once it is known where the browser can return.
fn checked(
    parameters: &Parameters,
    issuer: &Issuer,
    app: App,
    redirect_uri: String,
    is_uri_named: bool,
) -> Result<AuthorizationRequest, Return> {
    use AuthorizationError::{InvalidRequest, InvalidScope, InvalidTarget, UnsupportedResponseType};
    let state = parameters.one("state");
    let refused = |error, description| Return {
        redirect_uri: redirect_uri.clone(),
        state: state.ok().flatten().map(str::to_owned),
        error,
        description,
    };
    let one = |name| parameters.one(name).map_err(|Repeated| refused(InvalidRequest, "A parameter is repeated."));
    if one("state")?.is_some_and(|state| state.len() > MAX_STATE) {
        return Err(refused(InvalidRequest, "state has at most 2048 bytes."));
    }
    match one("response_type")? {
        Some("code") => {}
        Some(_) => return Err(refused(UnsupportedResponseType, "response_type must be code.")),
        None => return Err(refused(InvalidRequest, "response_type is missing; it must be code.")),
    }
    if one("response_mode")?.is_some_and(|mode| mode != "query") {
        return Err(refused(InvalidRequest, "response_mode must be query, or left out."));
    }
    let Some(challenge) = one("code_challenge")? else {
        return Err(refused(InvalidRequest, "code_challenge is missing; PKCE is required (RFC 7636)."));
    };
    if one("code_challenge_method")? != Some("S256") {
        return Err(refused(InvalidRequest, "code_challenge_method must be S256."));
    }
    let challenge = URL_SAFE_NO_PAD.decode(challenge).ok().and_then(|digest| <[u8; 32]>::try_from(digest).ok());
    let Some(challenge) = challenge else {
        return Err(refused(
            InvalidRequest,
            "code_challenge must be the base64url of 32 bytes, which has 43 characters.",
        ));
    };
    let Ok(writes) = parameters::asks_for_write(one("scope")?) else {
        return Err(refused(InvalidScope, "scope has read, write and offline_access, and no others."));
    };
    if writes && !app.writes() {
        return Err(refused(InvalidScope, "The app may not ask for the scope write."));
    }
    let resource = match parameters.one("resource") {
        Ok(None) => None,
        Ok(Some(resource)) => match parameters::resource_path(resource, &issuer.url, &issuer.resources) {
            Some("") => None,
            Some(path) => Some(path.to_owned()),
            None => return Err(refused(InvalidTarget, "resource must be the URL of an API of this service.")),
        },
        Err(Repeated) => return Err(refused(InvalidTarget, "A token is for one resource.")),
    };
    let Ok(prompt) = Prompt::parse(one("prompt")?.unwrap_or_default()) else {
        return Err(refused(InvalidRequest, "prompt must be none alone, or consent, login and select_account."));
    };
    // What is taken survives a sign-in in between.
    if parameters.to_kept().is_none() {
        return Err(refused(InvalidRequest, "The parameters have at most 2800 bytes in all; send a shorter state."));
    }
    let state = state.ok().flatten().map(str::to_owned);
    Ok(AuthorizationRequest { app, redirect_uri, state, writes, prompt, is_uri_named, challenge, resource })
}

/// Returns the accounts that a person may let an app work on, in the order of their names: those that the person owns, each
/// followed by its sandbox. An operator who looks at an account owns none.
///
/// # Errors
/// [`Error::Store`].
pub async fn accounts_of(tx: &mut dyn Tx, session: &Session) -> Result<Vec<Tenant>, Error> {
    let owned = match (&session.email, session.tenant_id) {
        (Some(email), _) => sessions::accounts_of(tx, email).await?,
        (None, Some(tenant)) => vec![(tenants::get(tx, tenant).await?, session.role)],
        (None, None) => Vec::new(),
    };
    let mut accounts = Vec::new();
    for (account, _) in owned.into_iter().filter(|(_, role)| *role == Role::Owner) {
        let sandbox = tenants::sandbox_of(tx, &account).await?;
        accounts.push(account);
        accounts.extend(sandbox);
    }
    Ok(accounts)
}

/// Returns whether an account has granted an app what it asks for, so that its owner need not be asked again.
///
/// # Errors
/// [`Error::Store`].
pub async fn is_granted(tx: &mut dyn Tx, tenant: TenantId, request: &AuthorizationRequest) -> Result<bool, Error> {
    let grant = tx.grant_to(tenant, request.app.id).await?;
    Ok(grant.is_some_and(|grant| !request.writes || grant.scopes.contains(&Scope::Write)))
}

/// Grants an app what it asks for, in the name of an owner, and returns the code.
///
/// # Errors
/// [`Error::NotFound`] if the person does not own the account, or the app is gone; [`Error::AccessNotApproved`].
pub async fn allow(
    tx: &mut dyn Tx,
    session: &Session,
    tenant: TenantId,
    request: &AuthorizationRequest,
) -> Result<Secret, Error> {
    if !tx.lock_tenant(tenant).await? {
        return Err(Error::NotFound);
    }
    tx.act_as(session.actor());
    let accounts = accounts_of(tx, session).await?;
    let account = accounts.iter().find(|account| account.id == tenant).ok_or(Error::NotFound)?;
    if account.developer_access != DeveloperAccess::Approved {
        return Err(Error::AccessNotApproved);
    }
    let app = match request.app.is_published() {
        true => Some(published::store(tx, &request.app).await?),
        false => tx.lock_app(request.app.id).await?,
    };
    let app = app.filter(|app| app.disabled_at.is_none()).ok_or(Error::NotFound)?;
    let now = tx.env().now();
    let grant = grant(tx, tenant, &app, &session.identity, request.writes, now).await?;
    let text = keys::new_text(tx.env(), CODE_PREFIX);
    let code = AuthorizationCode {
        id: tx.env().id(now),
        tenant_id: tenant,
        grant_id: grant.id,
        app_id: app.id,
        writes: request.writes,
        redirect_uri: request.is_uri_named.then(|| request.redirect_uri.clone()),
        challenge: request.challenge,
        resource: request.resource.clone(),
        expires_at: now.checked_add(CODE_LIFETIME).unwrap_or(now),
        is_used: false,
    };
    tx.insert_code(&code, &sha256(text.as_bytes())).await?;
    Ok(Secret::new(text))
}

/// Creates the grant, or adds what is asked for to the one that there is, in the name of the member who allows it.
async fn grant(
    tx: &mut dyn Tx,
    tenant: TenantId,
    app: &App,
    member: &str,
    writes: bool,
    now: Timestamp,
) -> Result<Grant, Error> {
    let before = tx.grant_to(tenant, app.id).await?;
    let had_write = before.as_ref().is_some_and(|grant| grant.scopes.contains(&Scope::Write));
    let has_enough = before.is_some() && (had_write || !writes);
    if let Some(before) = before.clone().filter(|before| has_enough && before.member == member) {
        return Ok(before);
    }
    let id = before.as_ref().map_or_else(|| tx.env().id(now), |grant| grant.id);
    let grant = Grant {
        id,
        tenant_id: tenant,
        app_id: app.id,
        scopes: keys::scopes(writes || had_write),
        member: member.to_owned(),
        created_at: before.as_ref().map_or(now, |grant| grant.created_at),
        last_used_at: before.as_ref().and_then(|grant| grant.last_used_at),
        requests: before.as_ref().map_or(0, |grant| grant.requests),
    };
    let action = if before.is_some() { AuditAction::Update } else { AuditAction::Create };
    match &before {
        Some(_) => tx.update_grant(&grant).await?,
        None => tx.insert_grant(&grant).await?,
    }
    audit::record(tx, tenant, action, Object { kind: "grant", id: id.uuid() }, before.as_ref(), Some(&grant)).await?;
    if has_enough {
        return Ok(grant);
    }
    let mut report = Report::default();
    report.add(OperationalKind::AppAuthorized, &super::revocation::AppAuthorized::new(&grant, app, now))?;
    operational::record(tx, tenant, report).await?;
    Ok(grant)
}
