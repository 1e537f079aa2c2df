//! The dashboard: pages in the browser for the people of an account, and for operators.
//!
//! It is served at `/dashboard` beside the API, when [`Surfaces::dashboard`](crate::Surfaces::dashboard) is set. Pages are
//! rendered here and work without JavaScript; nothing is loaded from another host.
//!
//! One request goes through these modules:
//!
//! 1. [`routes`] has the table of all pages: method, path, who may ask for it, and the function that responds or the operation
//!    that a button runs.
//! 2. `Dashboard::admit` finds the page, checks for a change that it comes from a page of this dashboard, looks the session
//!    up and counts the request, all by its head. Then `Dashboard::respond` reads the form, and checks the role and, for a
//!    change, the token that only pages of this session contain.
//! 3. The page, in `pages`, reads through the facade [`Svc`], which acts as the person who is signed in, and renders with
//!    `layout`, `components` and `forms`. A form changes through `submissions`: once, however often it is sent, and only what
//!    the page showed.
//!
//! `site` is what all pages share, and `context` what a page knows of its request. Neither imports a page, and only `routes`
//! knows all of them.
//!
//! Where the rules refuse a change, the page that has its form is shown again, with the reason beside the form
//! (`Router::page_of_form` and `forms::problem`).
//!
//! People sign in by a link that works once (`svc dashboard link`, or [`Svc::dashboard`]), or at an identity provider (`oidc`).
//! The browser then has a cookie with the token of a [session](svc_core::accounts::sessions). An application may say who asks
//! in place of that ([`Identity`]).
//!
//! The token of forms is an HMAC under the secret of the session, or the one that the application gives, and depends on the
//! account that is shown. So a form that was open before a person changed to another account, or between an account and its
//! sandbox, changes nothing.
//!
//! `share` answers at the secret addresses that customers have, and `paper` renders an invoice or a quote for them and for print.
//!
//! The policy of the pages forbids inline scripts and styles, so charts are SVG whose colours are classes. A new page is a line
//! in the table, and a line in the table of `tests/dashboard/roles.rs`, which tries it in each role, without its token, and
//! with the ids of another account.

mod assets;
mod chart;
mod components;
mod consent;
mod contact_file;
mod context;
mod cookies;
mod csv;
mod failures;
mod form;
mod forms;
mod identity;
mod json;
mod layout;
mod live;
mod oidc;
mod page_response;
mod pages;
mod paper;
mod prelude;
mod published;
pub mod routes;
mod share;
mod site;
mod submissions;
mod trials;

pub use self::identity::{Identify, Identity};
pub use self::oidc::{Authorities, OidcSettings};
pub(crate) use self::site::ReferencePage;

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response};
use svc_core::Svc;
use svc_core::accounts::sessions::Session;
use svc_core::accounts::{shared_links, uploads};
use svc_core::oauth::authorization::Issuer;

use self::assets::Assets;
use self::context::{Context, FormProblem};
use self::form::Form;
use self::identity::People;
use self::live::Live;
use self::page_response::{PageError, PageResponse};
use self::published::PublishedApps;
use self::routes::{Handler, Page, Router};
use self::site::{PATH, Site};
use self::submissions::change;
use self::trials::Trials;
use crate::kernel::Kernel;
use crate::kernel::access::logged_path;
use crate::kernel::apps::OauthSettings;
use crate::kernel::body::MAX_FORM;
use crate::kernel::listener::{Arrived, Kind, Route, Surface};
use crate::kernel::origin::Origin;
use crate::kernel::problem::Problem;
use crate::kernel::response::{Outcome, ResponseBody};
use crate::kernel::response_memory::Holder;

/// Allows what the pages consist of: our own style, script and images, and forms that go to this server. The origins that may
/// show them in a frame follow.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
     form-action 'self'; base-uri 'none'; frame-ancestors ";
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// With `no-referrer`, browsers would send the origin of a form as `null`.
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// The settings of the dashboard.
#[derive(Clone, Default)]
pub struct DashboardSettings {
    /// The origin whose pages may show the dashboard in a frame. None by default.
    pub frame_ancestor: Option<Origin>,
    /// Tells who asks for a page, in an application that signs people in itself; see
    /// [`Builder::dashboard_identity`](crate::Builder::dashboard_identity).
    pub identity: Option<Identify>,
    /// The identity provider with which members sign in. None by default.
    pub provider: Option<OidcSettings>,
    /// The settings of the authorization server for apps (OAuth 2.0), to which owners consent in the dashboard. None by
    /// default: then there are no apps.
    pub oauth: Option<OauthSettings>,
}

/// The pages over a store.
pub(crate) struct Dashboard {
    site: Site,
    router: Router,
    policy: HeaderValue,
}

/// The admission of a request of the dashboard.
enum Admission<'a> {
    /// A file that never changes, such as the style.
    File(Response<ResponseBody>),
    /// A page, or a change that a page makes.
    Page(PageRequest<'a>),
}

/// A page that someone may ask for, before the body of the request is read; or why there is none.
struct PageRequest<'a>(Result<PageMatch<'a>, PageError>);

struct PageMatch<'a> {
    page: &'a Page,
    /// The path below [`PATH`].
    path: &'a str,
    /// The id in the path.
    id: Option<&'a str>,
    /// The session and the secret of its forms, where the page is for people who are signed in.
    person: Option<(Session, String)>,
}

impl PageRequest<'_> {
    /// Returns whether the body of the request is to be read.
    fn takes_form(&self) -> bool {
        self.0.as_ref().is_ok_and(|found| found.page.is_change())
    }

    /// Returns whose share of the memory of responses the page is made in.
    fn holder(&self) -> Holder {
        let session = self.0.as_ref().ok().and_then(|found| found.person.as_ref());
        session.map_or(Holder::Strangers, |(session, _)| Holder::of(session.account().map(|(tenant, _)| tenant)))
    }

    /// Returns the memory that the page needs at most while it is made, in records.
    fn records(&self) -> u32 {
        self.0.as_ref().map_or(routes::PAGE_MEMORY, |found| found.page.records())
    }

    /// Returns whether its form has a file.
    fn takes_file(&self) -> bool {
        self.0.as_ref().is_ok_and(|found| found.page.takes_file)
    }

    /// Returns the page that says that the form was too large.
    fn too_large(&self) -> Self {
        Self(Err(if self.takes_file() { PageError::FileTooLarge } else { PageError::FormTooLarge }))
    }
}

impl Dashboard {
    /// Creates the pages.
    pub(crate) fn new(kernel: Arc<Kernel>, settings: DashboardSettings, reference: Option<ReferencePage>) -> Self {
        let base = format!("{}{PATH}", kernel.settings.mount);
        let ancestor = settings.frame_ancestor.as_ref().map_or("'none'", Origin::as_str);
        #[expect(clippy::expect_used, reason = "an origin consists of ASCII")]
        let policy = format!("{POLICY}{ancestor}").parse().expect("a header");
        let svc = Svc::new(Arc::clone(&kernel.store));
        let people = Arc::new(People::new(svc.clone(), settings.identity));
        let live = Live::new(svc.clone(), Arc::clone(&people), &base);
        let client = kernel.settings.webhook_client.clone();
        let takes_published = kernel.apps.as_ref().is_some_and(|apps| apps.takes_published);
        let resolver = Arc::clone(&kernel.settings.resolver);
        let router = Router::new(kernel.apps.is_some());
        let site = Site {
            svc,
            assets: Assets::new(&base),
            people,
            live,
            published: client.clone().filter(|_| takes_published).map(PublishedApps::new),
            trials: client.map(Trials::new),
            reference,
            provider: settings.provider.map(|provider| oidc::Provider::new(provider, &base, resolver)),
            base,
            kernel,
        };
        Self { site, router, policy }
    }

    /// Ends the streams of live lists whose session has ended, or whose member was removed or has another role.
    pub(crate) fn check_sessions(&self) {
        self.site.check_sessions();
    }

    /// Returns whether a path is below that of the dashboard.
    fn serves(path: &str) -> bool {
        path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Responds to a request of the dashboard: finds out who asks, from where and how often, before a byte of the form is read.
    async fn respond(&self, request: Arrived<'_>) -> Result<Outcome, Problem> {
        let Arrived { parts, body, peer, .. } = request;
        let responses = &self.site.kernel.responses;
        let mut page = match self.admit(parts, peer).await {
            Admission::File(file) => return Ok(Outcome::Http(file)),
            Admission::Page(page) => page,
        };
        let mut form = Bytes::new();
        if page.takes_form() {
            let max = if page.takes_file() { MAX_FORM + uploads::MAX_SIZE } else { MAX_FORM };
            match body.read(max).await {
                Ok(received) => form = received,
                Err(Problem::BodyTooLarge) => page = page.too_large(),
                Err(problem) => return Err(problem),
            }
        } else {
            drop(body);
        }
        let (holder, records) = (page.holder(), page.records());
        let memory = match responses.try_acquire(holder, records) {
            Some(memory) => memory,
            // A form has memory of its own, and nobody waits with it. What follows on a change is a redirect or a form.
            None if !form.is_empty() => responses.nothing(holder),
            None => responses.acquire(holder, records).await?,
        };
        let page = self.respond_to(parts, page, form).await;
        Ok(Outcome::Http(page.map(|body| body.within(responses, memory, parts.extensions.get()))))
    }

    /// Responds at the authorization endpoint of apps.
    async fn consent(&self, issuer: &Issuer, request: Arrived<'_>) -> Result<Outcome, Problem> {
        let Arrived { parts, body, peer, .. } = request;
        let form = match parts.method {
            Method::POST => body.read(MAX_FORM).await?,
            _ => Bytes::new(),
        };
        let responses = &self.site.kernel.responses;
        let mut page = self.finish(parts, consent::respond(&self.site, issuer, parts, form, peer).await);
        consent::protect(parts, &mut page);
        // It is small, and made at once.
        let memory = responses.nothing(Holder::Strangers);
        Ok(Outcome::Http(page.map(|body| body.within(responses, memory, parts.extensions.get()))))
    }

    /// Responds at a shared link, whose secret this is.
    async fn share(&self, secret: &str, request: Arrived<'_>) -> Result<Outcome, Problem> {
        let Arrived { parts, body, peer, .. } = request;
        let page = match share::refused(&self.site, secret, peer).await {
            Some(refused) => refused,
            None if parts.method != Method::POST => share::respond(&self.site, parts, secret, Bytes::new()).await,
            None => match body.read(MAX_FORM).await {
                Ok(form) => share::respond(&self.site, parts, secret, form).await,
                Err(Problem::BodyTooLarge) => share::too_large(&self.site),
                Err(problem) => return Err(problem),
            },
        };
        let responses = &self.site.kernel.responses;
        let mut page = self.finish(parts, Ok(page));
        share::protect(&mut page);
        // It is small, and made at once.
        let memory = responses.nothing(Holder::Strangers);
        Ok(Outcome::Http(page.map(|body| body.within(responses, memory, parts.extensions.get()))))
    }

    /// Finds the page that is asked for, and who asks, by the head of the request alone: a stranger's form is not read where
    /// only people who are signed in may send one.
    async fn admit<'a>(&'a self, parts: &'a Parts, peer: IpAddr) -> Admission<'a> {
        let path = parts.uri.path().strip_prefix(PATH).unwrap_or_default();
        let path = if path.is_empty() { "/" } else { path };
        match self.site.assets.find(path) {
            Some(file) => Admission::File(self.finish(parts, Ok(file))),
            None => Admission::Page(PageRequest(self.find_page(parts, path, peer).await)),
        }
    }

    async fn find_page<'a>(&'a self, parts: &Parts, path: &'a str, peer: IpAddr) -> Result<PageMatch<'a>, PageError> {
        let (limits, now) = (&self.site.kernel.limits, self.site.kernel.now());
        let count = async |key| match limits.count(key, now).await {
            Ok(_) => Ok(()),
            Err(limited) => Err(PageError::RateLimited(limited.retry_after)),
        };
        let found = self.router.find(&parts.method, path).and_then(|found| {
            if found.0.is_change() {
                context::check_origin(&parts.headers)?;
            }
            Ok(found)
        });
        let (page, id) = match found {
            Ok(found) => found,
            Err(error) => return count(limits.pages_of_peer(peer)).await.and(Err(error)),
        };
        let person = match page.handler {
            Handler::Anyone(_) => {
                count(limits.pages_of_peer(peer)).await?;
                None
            }
            Handler::SignIn(_) => {
                count(limits.key_of_peer(peer)).await?;
                None
            }
            _ => {
                let is_use = !matches!(page.handler, Handler::Stream(..));
                let Some((session, secret)) = self.site.people.find(parts, is_use).await? else {
                    count(limits.pages_of_peer(peer)).await?;
                    return Err(PageError::SignedOut);
                };
                count(limits.pages_of_session(&secret)).await?;
                Some((session, secret))
            }
        };
        Ok(PageMatch { page, path, id, person })
    }

    /// Responds with the page that was admitted. `form` is the body of the request, empty where none was read.
    async fn respond_to(&self, parts: &Parts, admitted: PageRequest<'_>, form: Bytes) -> Response<ResponseBody> {
        let result = match admitted.0 {
            Ok(found) => self.page(parts, found, form).await,
            Err(error) => Err(error),
        };
        self.finish(parts, result)
    }

    /// Returns a response with the headers that all of them have.
    fn finish(&self, parts: &Parts, result: Result<PageResponse, PageError>) -> Response<ResponseBody> {
        if let Err(PageError::Internal(error)) = &result {
            tracing::error!(path = logged_path(parts), %error, "the store failed a page of the dashboard");
        }
        let mut response = result.unwrap_or_else(|error| layout::error_page(&self.site, &error)).into_response();
        let headers = response.headers_mut();
        headers.entry(CONTENT_SECURITY_POLICY).or_insert_with(|| self.policy.clone());
        headers.insert(REFERRER_POLICY, SAME_ORIGIN);
        headers.insert(OPENER_POLICY, SAME_ORIGIN);
        headers.entry(CACHE_CONTROL).or_insert(NO_STORE);
        response
    }

    async fn page(&self, parts: &Parts, found: PageMatch<'_>, form: Bytes) -> Result<PageResponse, PageError> {
        let PageMatch { page, path, id, person } = found;
        let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let form = match page.takes_file && content_type.starts_with("multipart/form-data") {
            true => Form::read_multipart(content_type, form).await?,
            false => Form::read(form).await?,
        };
        let (session, secret) = match (&page.handler, person) {
            (Handler::Anyone(run) | Handler::SignIn(run), _) => return run(&self.site, parts, &form).await,
            (_, person) => person.ok_or(PageError::SignedOut)?,
        };
        // An operator has the same forms, whichever account they look at.
        let shown = session.own_account();
        if page.is_change() {
            context::check_csrf(&secret, shown, form.text("csrf"))?;
        }
        let mut cx = Context {
            site: &self.site,
            svc: self.site.svc.acting_as(session.actor()),
            session: &session,
            parts,
            csrf: context::csrf_token(&secret, shown),
            query: Form::of(parts.uri.query().unwrap_or_default().as_bytes()),
            form,
            path,
            id,
            now: self.site.svc.store().env().now(),
            problem: None,
            sandbox_of: OnceLock::new(),
        };
        let error = match run(&cx, page).await {
            Err(error @ (PageError::Refused(_) | PageError::Invalid(_))) if page.is_change() => error,
            result => return result,
        };
        // The page that has the form says what was wrong with it.
        let Some((page, shown, id)) = self.router.page_of_form(page, path) else { return Err(error) };
        let (status, _, reason) = error.parts();
        cx.problem = Some(FormProblem { path, reason: reason.to_owned(), is_shown: AtomicBool::new(false) });
        (cx.path, cx.id) = (shown, id);
        match run(&cx, page).await {
            Ok(response) => Ok(response.status(status)),
            Err(_) => Err(error),
        }
    }
}

impl Surface for Dashboard {
    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        if let Some(secret) = parts.uri.path().strip_prefix(shared_links::PAGES) {
            return Some(Route::new(Kind::Page, move |request| self.share(secret, request)));
        }
        match (parts.uri.path(), self.site.issuer()) {
            (path, _) if Self::serves(path) => Some(Route::new(Kind::Page, |request| self.respond(request))),
            ("/oauth/authorize", Some(issuer)) => Some(Route::new(Kind::Page, |request| self.consent(issuer, request))),
            _ => None,
        }
    }

    /// Ends the streams of live lists.
    fn stop(&self) {
        self.site.live.stop();
    }
}

/// Responds with a page, if the person may ask for it.
async fn run(cx: &Context<'_>, page: &Page) -> Result<PageResponse, PageError> {
    let session = cx.session;
    match &page.handler {
        Handler::Anyone(_) | Handler::SignIn(_) => Err(PageError::NotFound),
        Handler::SignedIn(run) => run(cx).await,
        Handler::Member(run) => match &session.email {
            Some(email) => run(cx, email).await,
            None => Err(PageError::NotFound),
        },
        Handler::Operator(run) if session.is_operator() => run(cx).await,
        // Others cannot tell which pages operators have.
        Handler::Operator(_) => Err(PageError::NotFound),
        Handler::Account(least, _) | Handler::Stream(least, _) | Handler::Change(least, ..) => {
            let Some((tenant, role)) = session.account() else {
                let accounts = if session.is_operator() { "/accounts" } else { "/switch" };
                return Ok(PageResponse::see_other(&cx.url(accounts)));
            };
            if role < *least {
                let needed = format!("It needs the role {least}. Ask an owner of this account for it.");
                return Err(PageError::Forbidden(needed));
            }
            let tenant = cx.svc.account(tenant).settings().await?;
            if let Some(owner) = tenant.sandbox_of {
                let _ = cx.sandbox_of.set(cx.svc.accounts().get(owner).await?.name);
            }
            match &page.handler {
                Handler::Account(_, run) | Handler::Stream(_, run) => run.call_boxed(cx, &tenant).await,
                Handler::Change(_, operation, body, next) => change(cx, tenant.id, *operation, body, next).await,
                _ => Err(PageError::NotFound),
            }
        }
    }
}
