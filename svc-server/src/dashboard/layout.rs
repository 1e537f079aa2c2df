//! The frame around the content: the head, the navigation and the notices.

use maud::{DOCTYPE, Markup, html};
use svc_core::accounts::sessions::Role;
use svc_core::accounts::tenants::{DeveloperAccess, Tenant};
use svc_core::find::MAX_TEXT;

use super::components::icon;
use super::context::Context;
use super::forms::{csrf, post_button};
use super::page_response::{PageError, PageResponse};
use super::site::Site;

/// A group of pages in the navigation: its heading, and the path, the icon and the name of each page.
type Group = (&'static str, &'static [(&'static str, &'static str, &'static str)]);

/// The page of the sandbox, which viewers do not have.
const SANDBOX: &str = "/settings/sandbox";

/// The list of bookings begins with those that are still to come.
const BOOKINGS: &str = "/bookings?show=upcoming";

const ACCOUNT: &[Group] = &[
    ("", &[("/", "overview", "Overview"), ("/calendar", "calendar", "Calendar")]),
    (
        "Business",
        &[
            ("/contacts", "contact", "Contacts"),
            ("/invoices", "invoice", "Invoices"),
            ("/payments", "payment", "Payments"),
            ("/quotes", "quote", "Quotes"),
            (BOOKINGS, "booking", "Bookings"),
            ("/jobs", "job", "Jobs"),
        ],
    ),
    ("Settings", &[("/settings", "settings", "General"), ("/audit", "audit", "Audit log")]),
    (
        "Developers",
        &[
            ("/webhooks", "webhook", "Webhooks"),
            ("/deliveries", "delivery", "Deliveries"),
            ("/events", "event", "Events"),
            ("/requests", "request", "Requests"),
            ("/keys", "key", "API keys"),
            (SANDBOX, "sandbox", "Sandbox"),
        ],
    ),
];

/// Follows the developers' pages where there are apps.
const APPS: &[Group] = &[("", &[("/apps", "app", "Connected apps"), ("/developer-apps", "code", "Developer apps")])];

const OPERATOR: &[Group] = &[("Operators", &[("/accounts", "account", "Accounts"), ("/system", "system", "System")])];

/// The message of the page after a change, by the query parameter `notice` of the redirect.
const NOTICES: &[(&str, &str)] = &[
    ("key-revoked", "The key was revoked. Requests with it are refused from now on."),
    ("app-disconnected", "The app was disconnected. Its requests are refused from now on."),
    ("app-enabled", "The app is enabled. Accounts can connect it, and what was granted holds again."),
    ("app-disabled", "The app is disabled. Its requests are refused, and no account can connect it."),
    ("app-deleted", "The app was deleted. Its access to all accounts has ended."),
    ("saved", "Saved."),
    ("created", "Created."),
    ("file-deleted", "The file was deleted."),
    ("selected-changed", "All that were selected are changed."),
    ("contact-deleted", "The contact was deleted."),
    ("contact-erased", "The contact was erased."),
    ("invoice-sent", "The invoice is marked as sent."),
    ("invoice-resent", "It is recorded that the invoice was sent again."),
    ("invoice-paid", "The payment was recorded."),
    ("invoice-refunded", "The refund was recorded."),
    ("invoice-voided", "The invoice was voided."),
    ("quote-sent", "The quote is marked as sent."),
    ("quote-accepted", "The quote is accepted."),
    ("quote-declined", "The quote is declined."),
    ("calendar-revoked", "The address of the calendar was revoked. Programs that have it see nothing any more."),
    ("calendar-address", "The calendar has an address now. Enter it in the program that is to show the calendar."),
    ("link-made", "The link is ready: send it to the customer below."),
    ("link-ended", "The link was ended. Its address shows nothing any more."),
    ("member-changed", "The role was changed. It holds from the person's next request on."),
    (
        "member-removed",
        "The member was removed and is signed out of this account. Renew the address of the calendar if the person has it.",
    ),
    ("sandbox-reset", "The sandbox was reset. It has its sample records again."),
    ("sandbox-deleted", "The sandbox was deleted."),
    ("session-revoked", "The session was revoked. The person is signed out with the next request."),
    ("replayed", "It is queued again, with all its retries ahead."),
    ("test-sent", "The test event is on its way, and appears below."),
    ("endpoint-enabled", "The endpoint is enabled: events are sent to it from now on. Recover what it missed below."),
    ("endpoint-disabled", "The endpoint is disabled: nothing is sent to it."),
    ("endpoint-deleted", "The endpoint was deleted. Nothing is sent to it any more."),
    ("rotation-finished", "The rotation is finished: only the new secret signs."),
];

/// Returns a page of an account, or of operators without one.
pub(super) fn page(cx: &Context<'_>, tenant: Option<&Tenant>, title: &str, content: &Markup) -> PageResponse {
    PageResponse::page(frame(cx, tenant, title, content))
}

fn frame(cx: &Context<'_>, tenant: Option<&Tenant>, title: &str, content: &Markup) -> Markup {
    let owner = match tenant {
        Some(tenant) => tenant.name.as_str(),
        None if cx.session.is_operator() => "Operators",
        None => "Accounts",
    };
    let notice = NOTICES.iter().find(|(code, _)| *code == cx.query.text("notice")).map(|(_, text)| *text);
    let body = html! {
        a.skip href="#main" { "Skip to the content" }
        div.shell {
            header.sidebar {
                div.brand {
                    span.logo aria-hidden="true" { (icon("logo")) }
                    span.account title=(owner) { (owner) }
                }
                // A narrow screen shows the pages when it is ticked.
                label.menu { input type="checkbox"; (icon("menu")) "Menu" }
                @if cx.session.account().is_some() {
                    form.find role="search" aria-label="All records" action=(cx.url("/find")) {
                        input type="search" name="q" value=(searched(cx)) placeholder="Search" aria-label="Search all records"
                            aria-keyshortcuts="/ Control+K" maxlength=(MAX_TEXT) autocomplete="off" data-find data-suggest=(cx.url("/find/all"));
                    }
                }
                nav aria-label="Pages" {
                    @if cx.session.account().is_some() {
                        (navigation(cx, ACCOUNT))
                        @if cx.site.has_apps() { (navigation(cx, APPS)) }
                    }
                    @if cx.session.is_operator() {
                        (navigation(cx, OPERATOR))
                    }
                    @if cx.site.reference.is_some() {
                        ul { li { a href={ (cx.site.mount()) "/docs/guides" } { (icon("guide")) span { "Documentation" } } } }
                    }
                }
                @if cx.session.email.is_some() {
                    nav aria-label="Accounts" {
                        ul { li { a href=(cx.url("/switch")) { (icon("account")) span { "Your accounts" } } } }
                    }
                }
                div.person {
                    span.identity title=(cx.session.identity) { (cx.session.identity) }
                    button.quiet.js type="button" data-theme-toggle aria-label="Switch between light and dark" { (icon("theme")) }
                    // The session of the application ends there.
                    @if !cx.session.id.uuid().is_nil() {
                        form method="post" action=(cx.url("/sign-out")) {
                            (csrf(cx))
                            button.quiet type="submit" aria-label="Sign out" title="Sign out" { (icon("leave")) }
                        }
                    }
                }
            }
            main id="main" tabindex="-1" {
                @if let Some(tenant) = tenant {
                    (banners(cx, tenant))
                }
                @if let Some(notice) = notice {
                    p.banner.good role="status" { (notice) }
                }
                @if let Some(reason) = cx.other_problem() {
                    p.banner.bad role="alert" { (reason) }
                }
                (content)
            }
        }
    };
    document(cx.site, &format!("{title} · {owner} · svc"), &body)
}

/// Returns what was searched for, on the page of what was found.
fn searched<'c>(cx: &'c Context<'_>) -> &'c str {
    if cx.path == "/find" { cx.query.text("q") } else { "" }
}

/// The facts about the account that the person must know on each page.
fn banners(cx: &Context<'_>, tenant: &Tenant) -> Markup {
    html! {
        @if cx.session.is_operator() {
            div.banner.warn role="status" {
                span { "You look at " b { (tenant.name) } " as an operator. You can read everything that its viewers can." }
                (post_button(cx, "/accounts/leave", "", html! {}, "Stop"))
            }
        }
        @if let Some(owner) = cx.sandbox_of.get() {
            div.banner.warn role="status" {
                span { "Sandbox of " b { (owner) } ". What happens here is a trial." }
                @if cx.session.viewed_tenant_id == Some(tenant.id) && !cx.session.is_operator() {
                    (post_button(cx, "/settings/sandbox/leave", "", html! {}, "Leave the sandbox"))
                }
            }
        }
        @if tenant.developer_access != DeveloperAccess::Approved {
            p.banner.warn role="status" {
                "Developer access of this account is " (tenant.developer_access) ", so its API keys are refused. The operator \
                 of this service approves it."
            }
        }
    }
}

fn navigation(cx: &Context<'_>, groups: &[Group]) -> Markup {
    // The page that is open is the longest path that the current one begins with.
    let paths = groups.iter().flat_map(|(_, pages)| pages.iter()).map(|(path, ..)| *path);
    let is_below = |path: &str| {
        let path = path.split('?').next().unwrap_or_default();
        path == cx.path || (path != "/" && cx.path.starts_with(&format!("{path}/")))
    };
    let current = paths.filter(|path| is_below(path)).max_by_key(|path| path.len());
    html! {
        @for (heading, pages) in groups {
            @if !heading.is_empty() {
                h2 { (heading) }
            }
            ul {
                @for (path, symbol, name) in pages.iter().filter(|(path, ..)| *path != SANDBOX || sees_sandbox(cx)) {
                    li {
                        a href=(cx.url(path)) aria-current=[(current == Some(*path)).then_some("page")] {
                            (icon(symbol)) span { (name) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the paths and the names of the pages of an account that this person has.
pub(super) fn pages(cx: &Context<'_>) -> impl Iterator<Item = (&'static str, &'static str)> {
    let apps = if cx.site.has_apps() { APPS } else { &[] };
    let all = ACCOUNT.iter().chain(apps).flat_map(|(_, pages)| pages.iter());
    let has = sees_sandbox(cx);
    all.filter(move |(path, ..)| has || *path != SANDBOX).map(|(path, _, name)| (*path, *name))
}

/// Returns whether the person has the page of the sandbox. A person who sees a sandbox alone has no part in its account.
fn sees_sandbox(cx: &Context<'_>) -> bool {
    cx.may(Role::Developer) && (cx.sandbox_of.get().is_none() || cx.session.viewed_tenant_id.is_some())
}

/// Returns a query of those parameters that are not empty.
pub(super) fn query(parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish()
}

/// Returns a page with nothing but a card, for those who are not signed in and for failures.
pub(super) fn card(site: &Site, title: &str, content: &Markup) -> Markup {
    let body = html! {
        main.alone id="main" {
            div.card {
                span.logo aria-hidden="true" { (icon("logo")) }
                h1 { (title) }
                (content)
            }
        }
    };
    document(site, &format!("{title} · svc"), &body)
}

/// Returns a page for customers, which has nothing of the dashboard, not even its name.
pub(super) fn paper(site: &Site, title: &str, body: &Markup) -> Markup {
    document(site, title, body)
}

/// Returns the page in place of one that cannot be shown.
pub(super) fn error_page(site: &Site, error: &PageError) -> PageResponse {
    let (status, title, text) = error.parts();
    let content = html! {
        p { (text) }
        @if error.is_before_sign_in() {
            (how_to_sign_in(site))
        } @else {
            div.actions {
                button.js type="button" data-back { "Back" }
                a.button href=(site.url("/")) { "Back to the dashboard" }
            }
        }
    };
    let response = PageResponse::page(card(site, title, &content)).status(status);
    match error {
        PageError::RateLimited(wait) => response.retry_after(*wait),
        PageError::MethodNotAllowed(allowed) => response.not_allowed(allowed),
        _ => response,
    }
}

/// Tells how to sign in: at the identity provider if there is one, and how to get a link.
pub(super) fn how_to_sign_in(site: &Site) -> Markup {
    html! {
        @if let Some(host) = site.provider_host() {
            form method="post" action={ (site.base) "/oidc/start" } {
                button.primary type="submit" { "Sign in with " (host) }
            }
            p { "Or ask an owner of the account for a sign-in link, which Settings makes." }
        } @else {
            p { "Ask an owner of the account for a sign-in link, which Settings makes." }
        }
        details.more {
            summary { "For the operator of the server" }
            pre { code { "svc dashboard link --account ID --role owner" } }
        }
    }
}

fn document(site: &Site, title: &str, body: &Markup) -> Markup {
    let asset = |name| site.assets.url(name);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                title { (title) }
                link rel="icon" href=(asset("icon.svg"));
                link rel="stylesheet" href=(asset("dashboard.css"));
                script src=(asset("dashboard.js")) {}
            }
            body { (body) }
        }
    }
}
