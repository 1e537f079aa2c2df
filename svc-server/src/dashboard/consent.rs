//! The page on which an owner lets an app work on an account (RFC 6749 §4.1.1).
//!
//! It is the authorization endpoint itself, at `/oauth/authorize`. A person who is not signed in is sent to the sign-in page, and a
//! cookie keeps the request for ten minutes, so that signing in leads back to it by whatever way. The form is sent to the same
//! URL, so the request is checked again when it is answered.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::{CONTENT_SECURITY_POLICY, SET_COOKIE, X_FRAME_OPTIONS};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use maud::{Markup, html};
use std::net::IpAddr;
use std::time::Duration;
use svc_core::accounts::apps::App;
use svc_core::accounts::sessions::Session;
use svc_core::accounts::tenants::{DeveloperAccess, Tenant};
use svc_core::error::{Error, StoreError};
use svc_core::oauth::authorization::{
    self, AuthorizationError, AuthorizationRequest, Issuer, Prompt, Refusal, accounts_of, is_granted,
};
use svc_core::oauth::{Parameters, published};
use svc_core::values::{RedirectUri, TenantId};

use super::components::{icon, isolated};
use super::context;
use super::cookies;
use super::form::Form;
use super::layout;
use super::page_response::{PageError, PageResponse};
use super::pages::apps::origin_of;
use super::site::Site;
use crate::kernel::response::ResponseBody;

/// The name of the cookie that keeps a request while its owner signs in.
const COOKIE: &str = "svc_authorize";
const COOKIE_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// As for the other pages, but nobody may show this one in a frame, and its form leads to the app.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; base-uri 'none'; \
     frame-ancestors 'none'",
);

/// Adds to a response what those of the authorization endpoint have.
pub(super) fn protect(parts: &Parts, response: &mut Response<ResponseBody>) {
    // A request that came before this one, and waits for a sign-in, is over: its app must not be put to a person who came from
    // another one.
    if !response.headers().contains_key(SET_COOKIE) && cookies::read_cookie(parts, COOKIE).is_some() {
        for cookie in cookies::expired(COOKIE) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    // Also those that say what went wrong.
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    response.headers_mut().insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
}

/// Responds at the authorization endpoint. `form` is the body of a POST.
pub(super) async fn respond(
    site: &Site,
    issuer: &Issuer,
    parts: &Parts,
    form: Bytes,
    peer: IpAddr,
) -> Result<PageResponse, PageError> {
    let store = site.svc.store();
    let (limits, now) = (&site.kernel.limits, store.env().now());
    let person = site.people.find(parts, true).await?;
    let window =
        person.as_ref().map_or_else(|| limits.pages_of_peer(peer), |(_, secret)| limits.pages_of_session(secret));
    limits.count(window, now).await.map_err(|limited| PageError::RateLimited(limited.retry_after))?;
    if !matches!(parts.method, Method::GET | Method::POST) {
        return Err(PageError::MethodNotAllowed("GET, HEAD, POST"));
    }
    let query = parts.uri.query().unwrap_or_default();
    let parameters = Parameters::of(query.as_bytes());
    let mut published = None;
    if let (Some(apps), Ok(Some(client_id))) = (&site.published, parameters.one("client_id"))
        && published::is_url(client_id)
    {
        // Nobody but a person who is signed in makes this server send a request.
        let Some((session, _)) = &person else {
            return match parameters.one("prompt") {
                // Only the document says where the browser can return.
                Ok(Some("none")) => Ok(refused(site, "Nobody is signed in, and nobody was to be asked.")),
                _ => Ok(sign_in_first(site, parts, &parameters)),
            };
        };
        published = match apps.of(client_id, session).await {
            Ok(app) => Some(app),
            Err(reason) => return Ok(refused(site, &reason)),
        };
    }
    let input = (parameters.clone(), issuer.clone(), published);
    let checked = store.read("oauth.check", input, async |tx, (parameters, issuer, published)| match published {
        Some(published) => authorization::check_published(tx, parameters, issuer, published).await,
        None => authorization::check(tx, parameters, issuer).await,
    });
    let request = match checked.await? {
        Ok(request) => request,
        Err(Refusal::Page(reason)) => return Ok(refused(site, &reason)),
        Err(Refusal::Return(back)) => return Ok(PageResponse::see_other(&back.url(issuer))),
    };
    let back = |error, description| Ok(PageResponse::see_other(&request.refused(error, description).url(issuer)));
    let Some((session, secret)) = person else {
        return match request.prompt {
            Prompt::Never => back(AuthorizationError::LoginRequired, "Nobody is signed in."),
            _ => Ok(sign_in_first(site, parts, &parameters)),
        };
    };
    let accounts = store.read("oauth.accounts", session.clone(), async |tx, session| accounts_of(tx, session).await);
    let page =
        ConsentPage { site, request: &request, session: &session, secret: &secret, query, accounts: accounts.await? };
    if parts.method == Method::POST {
        context::check_origin(&parts.headers)?;
        let form = Form::read(form).await?;
        context::check_csrf(&secret, session.own_account(), form.text("csrf"))?;
        return match form.text("decision") {
            "allow" => page.allow(issuer, form.text("account")).await,
            "deny" => back(AuthorizationError::AccessDenied, "The owner of the account said no."),
            _ => Err(PageError::Invalid("The form says neither allow nor deny.".to_owned())),
        };
    }
    // Anybody can say that they are an app whose document is public, so its owner is asked each time.
    if request.prompt != Prompt::Always
        && !request.app.is_published()
        && let Some(account) = page.account_in_view()
    {
        let input = (account, request.clone());
        let granted =
            store.read("oauth.granted", input, async |tx, (tenant, request)| is_granted(tx, *tenant, request).await);
        if granted.await? {
            return page.code(issuer, account).await;
        }
    }
    if request.prompt == Prompt::Never {
        return back(AuthorizationError::ConsentRequired, "An owner has to be asked.");
    }
    Ok(page.show(None))
}

/// Sends the browser to the sign-in page, and keeps the request until it comes back.
fn sign_in_first(site: &Site, parts: &Parts, parameters: &Parameters) -> PageResponse {
    let kept = parameters.to_kept().map(|kept| URL_SAFE_NO_PAD.encode(kept));
    let cookie = kept.and_then(|kept| cookies::cookie(COOKIE, &kept, cookies::is_secure(parts), COOKIE_LIFETIME));
    match cookie {
        Some(cookie) => PageResponse::see_other(&site.url("/sign-in")).cookie(cookie),
        None => refused(site, "The link of the app is too long, or has a parameter twice."),
    }
}

/// Returns where a person goes who has signed in: back to the request of an app, if one waits. It is forgotten then.
pub(super) fn after_sign_in(site: &Site, parts: &Parts, page: &str) -> PageResponse {
    let kept = waiting_request(parts).filter(|_| site.has_apps());
    match kept {
        Some(request) => {
            let response = PageResponse::see_other(&format!("{}/oauth/authorize?{}", site.mount(), request.to_query()));
            cookies::expired(COOKIE).into_iter().fold(response, PageResponse::cookie)
        }
        None => PageResponse::see_other(&site.url(page)),
    }
}

/// Returns the request that waits until its owner has signed in. The cookie of a plain connection may come from anywhere.
fn waiting_request(parts: &Parts) -> Option<Parameters> {
    let (kept, _) = cookies::read_cookie(parts, COOKIE)?;
    Parameters::from_kept(&URL_SAFE_NO_PAD.decode(kept).ok()?)
}

/// Returns the app whose request waits until its owner has signed in, if there is one that could be put to an owner.
pub(super) async fn waiting_app(site: &Site, parts: &Parts) -> Result<Option<App>, PageError> {
    let (Some(issuer), Some(request)) = (site.issuer(), waiting_request(parts)) else { return Ok(None) };
    let input = (request, issuer.clone());
    let checked = site.svc.store().read("oauth.check", input, async |tx, (parameters, issuer)| {
        authorization::check(tx, parameters, issuer).await
    });
    Ok(checked.await?.ok().map(|request| request.app))
}

fn is_approved(account: &Tenant) -> bool {
    account.developer_access == DeveloperAccess::Approved
}

fn refused(site: &Site, reason: &str) -> PageResponse {
    let content = html! {
        p { (reason) }
        p { "The app that sent you here has to be corrected by whoever makes it. Nothing was granted." }
    };
    let page = layout::card(site, "This app cannot be connected", &content);
    PageResponse::page(page).status(StatusCode::BAD_REQUEST)
}

struct ConsentPage<'a> {
    site: &'a Site,
    request: &'a AuthorizationRequest,
    session: &'a Session,
    /// The secret of the session's forms.
    secret: &'a str,
    /// The query of the request, to which the form is sent.
    query: &'a str,
    /// The accounts that the person owns.
    accounts: Vec<Tenant>,
}

impl ConsentPage<'_> {
    /// Returns the account that the person has in view, if they own it, or the only one that they own.
    fn account_in_view(&self) -> Option<TenantId> {
        let in_view = self.accounts.iter().find(|account| Some(account.id) == self.session.own_account());
        let account = match (in_view, self.accounts.as_slice()) {
            (None, [only]) => Some(only),
            (in_view, _) => in_view,
        };
        account.filter(|account| is_approved(account)).map(|account| account.id)
    }

    async fn allow(&self, issuer: &Issuer, account: &str) -> Result<PageResponse, PageError> {
        let chosen = self.accounts.iter().find(|known| known.id.to_string() == account).map(|known| known.id);
        match chosen {
            Some(account) => self.code(issuer, account).await,
            None => Ok(self.show(Some("Choose an account that you own.")).status(StatusCode::UNPROCESSABLE_ENTITY)),
        }
    }

    /// Grants the access and returns to the app with a code.
    async fn code(&self, issuer: &Issuer, account: TenantId) -> Result<PageResponse, PageError> {
        let allow = || {
            let input = (self.session.clone(), account, self.request.clone());
            self.site.svc.store().write("oauth.allow", input, async |tx, (session, account, request)| {
                authorization::allow(tx, session, *account, request).await
            })
        };
        let allowed = match allow().await {
            // Somebody else has stored what the app publishes at the same time.
            Err(Error::Store(StoreError::Conflict { .. })) => allow().await,
            allowed => allowed,
        };
        match allowed {
            Ok(code) => Ok(PageResponse::see_other(&self.request.url_with(&code, issuer))),
            Err(Error::AccessNotApproved) => {
                let reason =
                    "Developer access of this account is not approved. Ask the operator of this service for it.";
                Ok(self.show(Some(reason)).status(StatusCode::CONFLICT))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn show(&self, problem: Option<&str>) -> PageResponse {
        let (title, content) = match self.accounts.iter().any(is_approved) {
            true => ("Connect an app", self.form(problem)),
            false => ("You cannot connect this app", self.nothing_to_grant()),
        };
        PageResponse::page(layout::card(self.site, title, &content))
    }

    /// Names the app with the host of its website, which tells it from another with the same name.
    fn app(&self) -> Markup {
        let app = &self.request.app;
        html! {
            div.app {
                strong { (isolated(app.name.as_str())) }
                (origin_of(app))
            }
            @if let Some(host) = app.published_host() {
                p.hint {
                    "Nobody has checked who makes this app. It describes itself at " b { (host) } "; allow it only if you know that "
                    "this is where it comes from."
                }
            }
        }
    }

    fn nothing_to_grant(&self) -> Markup {
        html! {
            (self.app())
            @if self.session.is_operator() {
                p { "It asks for access to an account. You are signed in as an operator, and only an owner of an account can connect \
                    an app." }
            } @else if self.accounts.is_empty() {
                p { "It asks for access to an account. Only an owner can connect an app, and " (isolated(&self.session.identity))
                    " owns no account here. Ask an owner to open the link of the app, or sign in as one." }
            } @else {
                @for account in &self.accounts {
                    p { "Developer access of " b { (account.name) } " is " (account.developer_access) ", so no app can work on it." }
                }
                p { "The operator of this service approves it. Open the link of the app again after that." }
            }
            form method="post" action=(self.action()) {
                (self.csrf())
                button type="submit" name="decision" value="deny" { "Back to the app" }
            }
        }
    }

    fn form(&self, problem: Option<&str>) -> Markup {
        html! {
            (self.app())
            @if let Some(problem) = problem {
                p.banner.bad role="alert" { (problem) }
            }
            p {
                "It asks for access to "
                @match self.accounts.as_slice() {
                    [only] => { b { (only.name) } }
                    _ => { "one of your accounts" }
                }
                ". You are signed in as " (isolated(&self.session.identity)) "."
            }
            form.consent method="post" action=(self.action()) {
                (self.csrf())
                (self.account_choice())
                div {
                    h2 { "Allowing lets it" }
                    ul.can {
                        li { (icon("done")) span { "See all contacts, invoices, quotes, bookings and jobs" } }
                        @if self.request.writes {
                            li { (icon("done")) span { "Create them, send invoices, and record payments" } }
                            li { (icon("done")) span { "Change contacts, quotes, bookings and jobs, and delete contacts" } }
                            li { (icon("done")) span { "Get what happens to them by webhooks of its own" } }
                        }
                    }
                }
                div {
                    h2 { "Allowing does not let it" }
                    ul.can {
                        @if !self.request.writes { li { (icon("not")) span { "Change anything" } } }
                        li { (icon("not")) span { "See API keys, members, settings, or webhooks that are not its own" } }
                    }
                }
                // None of them has the focus, and no field is one in which Enter sends the form.
                div.actions {
                    button.primary type="submit" name="decision" value="allow" { "Allow" }
                    button type="submit" name="decision" value="deny" formnovalidate { "Deny" }
                }
            }
            p.hint { (self.destination()) }
            p.hint { "An owner can end the access at any time, in Settings under Connected apps." }
        }
    }

    /// Tells where the browser goes from here. The developer chose the app's name, but this cannot lie.
    fn destination(&self) -> Markup {
        let request = self.request;
        let uri = request.app.redirect_uris.iter().find(|uri| uri.matches(&request.redirect_uri));
        let destination = uri.map(RedirectUri::destination).unwrap_or_default();
        html! {
            @if uri.is_some_and(RedirectUri::has_own_scheme) {
                "You return to the program on this device that opens " b { (destination) } " links."
            } @else {
                "You return to " b { (destination) } "."
            }
            " Go on only if you came from there."
        }
    }

    /// Returns the choice of an account, with none chosen for a person who has several and none in view.
    fn account_choice(&self) -> Markup {
        let is_chosen = |account: &Tenant| Some(account.id) == self.account_in_view();
        html! {
            @match self.accounts.as_slice() {
                [only] => input type="hidden" name="account" value=(only.id);,
                several => {
                    div.field {
                        label for="account" { "Account" }
                        select id="account" name="account" required {
                            @if !several.iter().any(is_chosen) { option value="" { "Choose an account" } }
                            @for account in several {
                                option value=(account.id) selected[is_chosen(account)] disabled[!is_approved(account)] {
                                    (account.name)
                                    @if !is_approved(account) { " (developer access is " (account.developer_access) ")" }
                                }
                            }
                        }
                        @if !several.iter().all(is_approved) {
                            p.hint { "The operator of this service approves developer access." }
                        }
                    }
                }
            }
        }
    }

    fn action(&self) -> String {
        format!("{}/oauth/authorize?{}", self.site.mount(), self.query)
    }

    fn csrf(&self) -> Markup {
        let token = context::csrf_token(self.secret, self.session.own_account());
        html! { input type="hidden" name="csrf" value=(token); }
    }
}
