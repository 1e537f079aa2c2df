//! The table of all pages. It drives routing and the check of roles, and tests go through it.

use futures_util::future::BoxFuture;
use http::Method;
use http::request::Parts;
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::Tenant;
use svc_core::operation::AnyOperation;
use svc_core::platform::operations::{
    ACCEPT_QUOTE, DECLINE_QUOTE, FINISH_WEBHOOK_ROTATION, RESEND_INVOICE, REVOKE_GRANT, REVOKE_KEY, Records,
    SEND_INVOICE, VOID_INVOICE,
};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::store::CallBoxed;
use svc_core::values::Email;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::contact_file;
use super::context::Context;
use super::form::Form;
use super::page_response::{PageError, PageResponse};
use super::pages::{
    accounts, apps, attempts, audit, calendar, customer_links, deliveries, delivery, developer_apps, endpoint_forms,
    events, find, imports, keys, members, overview, payments, provider, record_actions, record_forms, records,
    reference, replays, requests, sandbox, settings, sign_in, system, traffic, webhooks,
};
use super::site::Site;
use crate::kernel::head::by_path;

type Respond<'a> = BoxFuture<'a, Result<PageResponse, PageError>>;
type AnyoneFn = for<'a> fn(&'a Site, &'a Parts, &'a Form) -> Respond<'a>;
type SignedInFn = for<'a> fn(&'a Context<'a>) -> Respond<'a>;
type MemberFn = for<'a> fn(&'a Context<'a>, &'a Email) -> Respond<'a>;

/// The function of a page of an account.
pub(super) trait AccountFn:
    for<'a> CallBoxed<&'a Context<'a>, &'a Tenant, Respond<'a>> + Send + Sync + 'static
{
}

impl<F> AccountFn for F where F: for<'a> CallBoxed<&'a Context<'a>, &'a Tenant, Respond<'a>> + Send + Sync + 'static {}

/// The function that responds, by who may call it.
pub(super) enum Handler {
    /// Everyone, without a session.
    Anyone(AnyoneFn),
    /// Everyone who tries to sign in. Attempts are limited by address.
    SignIn(AnyoneFn),
    /// Everyone who is signed in.
    SignedIn(SignedInFn),
    /// People who signed in with an email address. It gets the address.
    Member(MemberFn),
    /// People of an account who have at least this role. It gets the account. Operators who look at the account count as
    /// its viewers.
    Account(Role, Box<dyn AccountFn>),
    /// A change by people of an account who have at least this role: an operation on the record in the path with this body, and
    /// the path of the page that follows, in which `{id}` stands for the id of what was changed.
    Change(Role, &'static dyn AnyOperation, &'static str, &'static str),
    /// The same for a live list, which does not count as a use of the session.
    Stream(Role, Box<dyn AccountFn>),
    /// Operators.
    Operator(SignedInFn),
}

/// The memory that nearly every page can be made in, in records of 64 KiB: with the records that it is made of.
pub(crate) const PAGE_MEMORY: u32 = 8;

/// The memory of a page that reads all endpoints, a few at a time as each may have 220 KiB, or all 500 keys of the account.
const LONG_LIST: u32 = 32;

/// The memory of the page of an event, whose data may have 1 MiB, and of that of a request, with events.
const LARGE_EVENT: u32 = 64;

/// The memory of the page of a delivery: its event, 50 attempts with 16 KiB of a response each, and two requests with the event,
/// while the second one is made.
const DELIVERY: u32 = 104;

/// A page, or a change that a page makes.
pub(super) struct Page {
    method: Method,
    /// The path below `/dashboard`, where `{id}` stands for an id.
    path: &'static str,
    pub(super) handler: Handler,
    records: u32,
    /// Whether its form has a file.
    pub(super) takes_file: bool,
}

impl Page {
    /// Returns whether this is a change, which comes as a form.
    pub(super) fn is_change(&self) -> bool {
        self.method == Method::POST
    }

    /// Returns the memory that it needs at most while it is made, in records.
    pub(super) fn records(&self) -> u32 {
        self.records
    }

    /// Sets the memory that it needs at most while it is made, in records.
    fn reading(self, records: u32) -> Self {
        Self { records, ..self }
    }

    /// Says that its form has a file.
    fn with_file(self) -> Self {
        Self { takes_file: true, ..self }
    }
}

fn get(path: &'static str, handler: Handler) -> Page {
    Page { method: Method::GET, path, handler, records: PAGE_MEMORY, takes_file: false }
}

fn post(path: &'static str, handler: Handler) -> Page {
    Page { method: Method::POST, path, handler, records: PAGE_MEMORY, takes_file: false }
}

fn account(least: Role, respond: impl AccountFn) -> Handler {
    Handler::Account(least, Box::new(respond))
}

fn stream(respond: impl AccountFn) -> Handler {
    Handler::Stream(Role::Viewer, Box::new(respond))
}

/// Returns all pages, those about apps only with apps.
fn table(has_apps: bool) -> Vec<Page> {
    use Handler::{Anyone, Change, Member, Operator, SignIn, SignedIn};
    use Role::{Developer, Owner, Viewer};
    let mut pages = vec![
        get("/sign-in", Anyone(|site, parts, _| Box::pin(sign_in::show(site, parts)))),
        post("/sign-in", SignIn(|site, parts, form| Box::pin(sign_in::use_link(site, parts, form)))),
        post("/oidc/start", SignIn(|site, parts, _| Box::pin(provider::start(site, parts)))),
        get("/oidc/callback", SignIn(|site, parts, _| Box::pin(provider::callback(site, parts)))),
        post("/sign-out", SignedIn(|cx| Box::pin(sign_in::sign_out(cx)))),
        get("/switch", Member(|cx, email| Box::pin(members::accounts(cx, email)))),
        post("/switch/{id}", Member(|cx, email| Box::pin(members::choose(cx, email)))),
        get("/", account(Viewer, overview::show)).reading(overview::MEMORY),
        get("/traffic", account(Viewer, traffic::show)).reading(LONG_LIST),
        get("/payments", account(Viewer, payments::list)).reading(payments::MEMORY),
        get("/calendar", account(Viewer, calendar::show)).reading(calendar::MEMORY),
        post("/calendar/address", account(Owner, calendar::feed::create)),
        post("/calendar/address/revoke", account(Owner, calendar::feed::revoke)),
        // A program that has the address needs no session.
        get("/calendar.ics", Anyone(|site, parts, _| Box::pin(calendar::feed::file(site, parts))))
            .reading(calendar::feed::MEMORY),
        get("/find", account(Viewer, find::show)).reading(LONG_LIST),
        get("/find/all", account(Viewer, find::suggestions)).reading(LONG_LIST),
        get("/find/contacts", account(Viewer, record_forms::contact::suggestions)),
        get("/webhooks", account(Viewer, webhooks::list)).reading(LONG_LIST),
        get("/webhooks/new", account(Developer, endpoint_forms::new)),
        post("/webhooks/new", account(Developer, endpoint_forms::create)),
        post("/webhooks/new/try", account(Developer, endpoint_forms::try_new)),
        get("/webhooks/{id}/edit", account(Developer, endpoint_forms::edit)).reading(LONG_LIST),
        post("/webhooks/{id}/edit", account(Developer, endpoint_forms::change)),
        post("/webhooks/{id}/try", account(Developer, endpoint_forms::try_existing)),
        post(
            "/webhooks/{id}/delete",
            Change(Developer, &Records::<WebhookSubscription>::DELETE, "", "/webhooks?notice=endpoint-deleted"),
        ),
        get("/webhooks/{id}", account(Viewer, webhooks::show)).reading(LONG_LIST),
        post("/webhooks/{id}/test", account(Developer, webhooks::test)),
        post("/webhooks/{id}/rotate", account(Developer, webhooks::rotate)),
        post(
            "/webhooks/{id}/finish-rotation",
            Change(Developer, &FINISH_WEBHOOK_ROTATION, "", "/webhooks/{id}?notice=rotation-finished"),
        ),
        post(
            "/webhooks/{id}/enable",
            Change(
                Developer,
                &Records::<WebhookSubscription>::UPDATE,
                r#"{"enabled":true}"#,
                "/webhooks/{id}?notice=endpoint-enabled",
            ),
        ),
        post(
            "/webhooks/{id}/disable",
            Change(
                Developer,
                &Records::<WebhookSubscription>::UPDATE,
                r#"{"enabled":false}"#,
                "/webhooks/{id}?notice=endpoint-disabled",
            ),
        ),
        post("/webhooks/{id}/recover", account(Developer, webhooks::recover)),
        get("/replays/{id}", account(Viewer, replays::progress)).reading(LONG_LIST),
        get("/deliveries", account(Viewer, deliveries::list)).reading(audit::MEMORY),
        get("/deliveries/live", stream(deliveries::live)),
        post("/deliveries/replay", account(Developer, deliveries::replay_selected)),
        get("/deliveries/replay-matching", account(Developer, replays::confirm)).reading(LONG_LIST),
        post("/deliveries/replay-matching", account(Developer, replays::start)),
        get("/deliveries/{id}/live", stream(attempts::live)),
        get("/deliveries/{id}", account(Viewer, delivery::show)).reading(DELIVERY),
        post("/deliveries/{id}/replay", account(Developer, delivery::replay)),
        get("/events", account(Viewer, events::list)).reading(audit::MEMORY),
        get("/events/{id}", account(Viewer, events::show)).reading(LARGE_EVENT),
        get("/requests", account(Viewer, requests::list)).reading(32),
        get("/requests/live", stream(requests::live)),
        get("/requests/{id}", account(Viewer, requests::show)).reading(LARGE_EVENT),
        get("/keys", account(Viewer, keys::list)).reading(LONG_LIST),
        get("/keys/new", account(Owner, keys::new)),
        post("/keys/new", account(Owner, keys::create)),
        post("/keys/{id}/rotate", account(Owner, keys::rotate)),
        post("/keys/{id}/revoke", Change(Owner, &REVOKE_KEY, "", "/keys?notice=key-revoked")),
        get("/reference", account(Developer, reference::offer)),
        post("/reference", account(Developer, reference::open)),
        get("/settings", account(Viewer, settings::show)),
        post("/settings", account(Owner, settings::save)),
        get("/settings/sandbox", account(Developer, sandbox::show)),
        post("/settings/sandbox/create", account(Developer, sandbox::create)),
        post("/settings/sandbox/reset", account(Developer, sandbox::reset)),
        post("/settings/sandbox/delete", account(Developer, sandbox::delete)),
        post("/settings/sandbox/open", account(Developer, sandbox::open)),
        // Whoever has another role meanwhile can still leave.
        post("/settings/sandbox/leave", SignedIn(|cx| Box::pin(sandbox::leave(cx)))),
        post("/settings/members", account(Owner, settings::add_member)),
        post("/settings/members/{id}/link", account(Owner, members::link)),
        post("/settings/members/{id}/role", account(Owner, members::set_role)),
        post("/settings/members/{id}/remove", account(Owner, members::remove)),
        post("/settings/sessions/{id}/revoke", account(Owner, settings::revoke_session)),
        post("/settings/sign-out-everywhere", Member(|cx, email| Box::pin(settings::sign_out_everywhere(cx, email)))),
        get("/audit", account(Viewer, audit::list)).reading(audit::MEMORY),
        get("/accounts", Operator(|cx| Box::pin(accounts::list(cx)))),
        post("/accounts/leave", Operator(|cx| Box::pin(accounts::leave(cx)))),
        get("/accounts/{id}", Operator(|cx| Box::pin(accounts::show(cx)))),
        post("/accounts/{id}/access", Operator(|cx| Box::pin(accounts::set_access(cx)))),
        post("/accounts/{id}/limits", Operator(|cx| Box::pin(accounts::set_limits(cx)))),
        post("/accounts/{id}/view", Operator(|cx| Box::pin(accounts::view(cx)))),
        get("/system", Operator(|cx| Box::pin(system::show(cx)))),
        post("/system/sessions/{id}/revoke", Operator(|cx| Box::pin(system::revoke_session(cx)))),
    ];
    pages.extend(record_pages());
    pages.extend(import_pages());
    if has_apps {
        pages.extend(app_pages());
    }
    pages
}

/// Returns the pages of records, and the forms that change them.
fn record_pages() -> Vec<Page> {
    use Handler::Change;
    use Role::{Developer, Owner, Viewer};
    use record_forms::{create, edit, new, update};
    use records::selected;
    let booking =
        |path, body| post(path, Change(Developer, &Records::<Booking>::UPDATE, body, "/bookings/{id}?notice=saved"));
    let job = |path, body| post(path, Change(Developer, &Records::<Job>::UPDATE, body, "/jobs/{id}?notice=saved"));
    vec![
        get("/contacts", account(Viewer, records::list)).reading(records::LISTED),
        get("/contacts/selected", account(Viewer, selected::confirm)).reading(records::LISTED),
        post("/contacts/selected", account(Developer, selected::change)).reading(records::LISTED),
        get("/contacts/new", account(Developer, new)),
        post("/contacts/new", account(Developer, create)),
        get("/contacts/{id}", account(Viewer, records::show)).reading(audit::MEMORY),
        get("/contacts/{id}/edit", account(Developer, edit)),
        post("/contacts/{id}/edit", account(Developer, update)),
        get("/invoices", account(Viewer, records::list)).reading(records::LISTED),
        get("/invoices/selected", account(Viewer, selected::confirm)).reading(records::LISTED),
        post("/invoices/selected", account(Developer, selected::change)).reading(records::LISTED),
        get("/invoices/new", account(Developer, new)),
        post("/invoices/new", account(Developer, create)),
        get("/invoices/{id}", account(Viewer, records::show)).reading(audit::MEMORY + records::LISTED),
        get("/invoices/{id}/edit", account(Developer, edit)),
        post("/invoices/{id}/edit", account(Developer, update)),
        get("/invoices/{id}/print", account(Viewer, customer_links::print)),
        post("/invoices/{id}/share", account(Developer, customer_links::share)),
        post("/invoices/{id}/unshare", account(Developer, customer_links::unshare)),
        get("/quotes", account(Viewer, records::list)).reading(records::LISTED),
        get("/quotes/selected", account(Viewer, selected::confirm)).reading(records::LISTED),
        post("/quotes/selected", account(Developer, selected::change)).reading(records::LISTED),
        get("/quotes/new", account(Developer, new)),
        post("/quotes/new", account(Developer, create)),
        get("/quotes/{id}", account(Viewer, records::show)).reading(audit::MEMORY + records::LISTED),
        get("/quotes/{id}/edit", account(Developer, edit)),
        post("/quotes/{id}/edit", account(Developer, update)),
        get("/quotes/{id}/print", account(Viewer, customer_links::print)),
        post("/quotes/{id}/share", account(Developer, customer_links::share)),
        post("/quotes/{id}/unshare", account(Developer, customer_links::unshare)),
        get("/bookings", account(Viewer, records::list)).reading(records::LISTED),
        get("/bookings/selected", account(Viewer, selected::confirm)).reading(records::LISTED),
        post("/bookings/selected", account(Developer, selected::change)).reading(records::LISTED),
        get("/bookings/new", account(Developer, new)),
        post("/bookings/new", account(Developer, create)),
        get("/bookings/{id}", account(Viewer, records::show)).reading(calendar::MEMORY),
        get("/bookings/{id}/edit", account(Developer, edit)),
        post("/bookings/{id}/edit", account(Developer, update)),
        get("/jobs", account(Viewer, records::list)).reading(records::LISTED),
        get("/jobs/selected", account(Viewer, selected::confirm)).reading(records::LISTED),
        post("/jobs/selected", account(Developer, selected::change)).reading(records::LISTED),
        get("/jobs/new", account(Developer, new)),
        post("/jobs/new", account(Developer, create)),
        get("/jobs/{id}", account(Viewer, records::show)).reading(calendar::MEMORY),
        get("/jobs/{id}/edit", account(Developer, edit)),
        post("/jobs/{id}/edit", account(Developer, update)),
        post(
            "/contacts/{id}/delete",
            Change(Developer, &Records::<Contact>::DELETE, "", "/contacts?notice=contact-deleted"),
        ),
        get("/contacts/{id}/data", account(Developer, record_actions::data)).reading(contact_file::MEMORY),
        post("/contacts/{id}/erase", account(Owner, record_actions::erase)),
        post("/invoices/{id}/send", Change(Developer, &SEND_INVOICE, "", "/invoices/{id}?notice=invoice-sent")),
        post("/invoices/{id}/resend", Change(Developer, &RESEND_INVOICE, "", "/invoices/{id}?notice=invoice-resent")),
        post("/invoices/{id}/pay", account(Developer, record_actions::pay)),
        post("/invoices/{id}/refund", account(Developer, record_actions::refund)),
        post("/invoices/{id}/void", Change(Developer, &VOID_INVOICE, "", "/invoices/{id}?notice=invoice-voided")),
        post(
            "/quotes/{id}/send",
            Change(Developer, &Records::<Quote>::UPDATE, r#"{"status":"sent"}"#, "/quotes/{id}?notice=quote-sent"),
        ),
        booking("/bookings/{id}/complete", r#"{"status":"completed"}"#),
        booking("/bookings/{id}/no-show", r#"{"status":"no_show"}"#),
        booking("/bookings/{id}/cancel", r#"{"status":"cancelled"}"#),
        post("/jobs/{id}/schedule", account(Developer, record_actions::schedule)),
        job("/jobs/{id}/start", r#"{"status":"in_progress"}"#),
        job("/jobs/{id}/complete", r#"{"status":"completed"}"#),
        post("/quotes/{id}/accept", Change(Developer, &ACCEPT_QUOTE, "", "/quotes/{id}?notice=quote-accepted")),
        post("/quotes/{id}/convert", account(Developer, record_actions::make_job)),
        post("/jobs/{id}/invoice", account(Developer, record_actions::invoice_job)),
        post("/quotes/{id}/decline", Change(Developer, &DECLINE_QUOTE, "", "/quotes/{id}?notice=quote-declined")),
    ]
}

/// Returns the pages of imports.
fn import_pages() -> Vec<Page> {
    use Role::Developer;
    vec![
        get("/import", account(Developer, imports::list)),
        post("/import", account(Developer, imports::upload)).reading(imports::MEMORY).with_file(),
        get("/import/{id}", account(Developer, imports::show)).reading(imports::MEMORY),
        post("/import/{id}", account(Developer, imports::choose)).reading(imports::MEMORY),
        post("/import/{id}/check", account(Developer, imports::check)).reading(imports::MEMORY),
        post("/import/{id}/run", account(Developer, imports::run)).reading(imports::MEMORY),
        get("/import/{id}/refused", account(Developer, imports::refused)).reading(imports::MEMORY),
        post("/import/{id}/delete", account(Developer, imports::delete)),
    ]
}

/// Returns the pages about apps: those that may work on the account, and those that its people develop.
fn app_pages() -> Vec<Page> {
    use Handler::Change;
    use Role::{Owner, Viewer};
    vec![
        get("/apps", account(Viewer, apps::list)).reading(LONG_LIST),
        post("/apps/{id}/disconnect", Change(Owner, &REVOKE_GRANT, "", "/apps?notice=app-disconnected")),
        get("/developer-apps", account(Viewer, developer_apps::list)),
        get("/developer-apps/new", account(Owner, developer_apps::new)),
        post("/developer-apps/new", account(Owner, developer_apps::create)),
        get("/developer-apps/{id}", account(Viewer, developer_apps::show)),
        get("/developer-apps/{id}/edit", account(Owner, developer_apps::edit)),
        post("/developer-apps/{id}/edit", account(Owner, developer_apps::change)),
        post("/developer-apps/{id}/rotate", account(Owner, developer_apps::rotate)),
        post("/developer-apps/{id}/enable", account(Owner, developer_apps::enable)),
        post("/developer-apps/{id}/disable", account(Owner, developer_apps::disable)),
        post("/developer-apps/{id}/delete", account(Owner, developer_apps::delete)),
    ]
}

/// The people who may ask for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Everyone, without a session.
    Anyone,
    /// Everyone who is signed in.
    SignedIn,
    /// People who signed in with an email address.
    Member,
    /// People of an account who have at least this role.
    Account(Role),
    /// Operators.
    Operator,
}

/// A page, as the table lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageInfo {
    /// The method: GET for a page, POST for a change.
    pub method: Method,
    /// The path below `/dashboard`, where `{id}` stands for an id.
    pub path: &'static str,
    /// The people who may ask for it.
    pub audience: Audience,
}

/// Returns all pages, for tests that try each of them.
pub fn pages() -> Vec<PageInfo> {
    let info = |page: Page| PageInfo {
        method: page.method,
        path: page.path,
        audience: match page.handler {
            Handler::Anyone(_) | Handler::SignIn(_) => Audience::Anyone,
            Handler::SignedIn(_) => Audience::SignedIn,
            Handler::Member(_) => Audience::Member,
            Handler::Account(least, _) | Handler::Stream(least, _) | Handler::Change(least, ..) => {
                Audience::Account(least)
            }
            Handler::Operator(_) => Audience::Operator,
        },
    };
    table(true).into_iter().map(info).collect()
}

/// Finds pages by method and path.
pub(super) struct Router(matchit::Router<Vec<Page>>);

/// Returns the methods of the pages at a path, as the header `Allow` has them.
fn allowed(pages: &[Page]) -> &'static str {
    match [Method::GET, Method::POST].map(|method| pages.iter().any(|page| page.method == method)) {
        [true, true] => "GET, HEAD, POST",
        [true, false] => "GET, HEAD",
        [false, _] => "POST",
    }
}

impl Router {
    pub(super) fn new(has_apps: bool) -> Self {
        Self(by_path(table(has_apps).into_iter().map(|page| (page.path.to_owned(), page))))
    }

    /// Returns the page and the id in its path.
    pub(super) fn find<'a>(&'a self, method: &Method, path: &'a str) -> Result<(&'a Page, Option<&'a str>), PageError> {
        let matched = self.0.at(path).map_err(|_| PageError::NotFound)?;
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let page = matched.value.iter().find(|page| page.method == method);
        let page = page.ok_or_else(|| PageError::MethodNotAllowed(allowed(matched.value)))?;
        Ok((page, matched.params.get("id")))
    }

    /// Returns the page that has a form which is sent to `path`, with its path and the id in it: the one with the path of the
    /// form, or else the one with the longest path that `path` begins with.
    pub(super) fn page_of_form<'a>(
        &'a self,
        form: &Page,
        path: &'a str,
    ) -> Option<(&'a Page, &'a str, Option<&'a str>)> {
        if let Ok((page, id)) = self.find(&Method::GET, path)
            && page.path == form.path
        {
            return Some((page, path, id));
        }
        let mut ends = path.rmatch_indices('/').map(|(end, _)| end).filter(|end| *end > 0);
        ends.find_map(|end| {
            let (page, id) = self.find(&Method::GET, &path[..end]).ok()?;
            Some((page, &path[..end], id))
        })
    }
}

#[cfg(test)]
mod tests;
