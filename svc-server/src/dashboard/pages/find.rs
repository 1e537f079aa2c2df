//! The search: it finds records, pages and actions, webhooks and API keys.

use svc_core::error::Error;
use svc_core::find::{self, Hit, MAX_HITS, SearchResults};
use svc_core::prelude::*;
use svc_core::requests::RequestFilter;
use svc_core::resources::kinds::collection;
use uuid::Uuid;

use crate::dashboard::pages::event_list::short_path;
use crate::dashboard::pages::{deliveries, kinds};
use crate::dashboard::prelude::*;

/// The most suggestions below the field of the search.
const SUGGESTED: usize = 8;
/// The fewest characters by which webhooks and keys are found.
const MIN_TEXT: usize = 3;

/// A link to what was found.
pub(super) struct Found {
    pub(super) path: String,
    pub(super) title: String,
    /// The difference from others with this title.
    pub(super) detail: String,
    /// The value of the choice in a form that asks for it. Empty for what no form asks for.
    pub(super) choice: String,
}

impl Found {
    fn at(path: impl Into<String>, title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), title: title.into(), detail: detail.into(), choice: String::new() }
    }

    fn record(hit: &Hit) -> Self {
        Self::at(format!("/{}/{}", collection(hit.kind), hit.id), &*hit.title, &*hit.detail)
    }

    /// Returns it as an item of a list.
    pub(super) fn item(&self, cx: &Context<'_>) -> Markup {
        html! {
            li {
                a href=(cx.url(&self.path)) data-choice=[(!self.choice.is_empty()).then_some(&self.choice)] { (self.title) }
                " " span.soft { (self.detail) }
            }
        }
    }
}

/// The results of a search in an account: groups with their headings, the one after the other.
struct Results {
    records: SearchResults,
    groups: Vec<(&'static str, Vec<Found>)>,
}

impl Results {
    async fn of(cx: &Context<'_>, tenant: &Tenant, typed: &str) -> Result<Self, Error> {
        let records = match find::parse(typed) {
            Ok(text) => cx.svc.account(tenant.id).find(text).await?,
            Err(Error::Validation(_)) => SearchResults { data: Vec::new(), is_complete: true, note: None },
            Err(error) => return Err(error),
        };
        let of_kind = |kind: &kinds::Kind| {
            let hits = records.data.iter().filter(|hit| hit.kind == kind.records);
            (kind.title, hits.map(Found::record).collect())
        };
        let mut groups: Vec<_> = kinds::ALL.into_iter().map(of_kind).collect();
        groups.insert(0, ("Pages and actions", pages(cx, typed)));
        if typed.chars().count() >= MIN_TEXT {
            groups.push(("Webhooks", webhooks(cx, tenant.id, typed).await?));
            groups.push(("API keys", keys(cx, tenant.id, typed).await?));
        }
        if let Ok(id) = typed.parse() {
            groups.push(("Log", logged(cx, tenant.id, id).await?));
        }
        groups.retain(|(_, found)| !found.is_empty());
        Ok(Self { records, groups })
    }

    fn all(&self) -> impl Iterator<Item = &Found> {
        self.groups.iter().flat_map(|(_, found)| found)
    }
}

/// Lists the results. A single one is shown at once.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let results = Results::of(cx, tenant, cx.query.text("q")).await?;
    let SearchResults { data, is_complete, .. } = &results.records;
    let mut all = results.all();
    if let (Some(only), None, true) = (all.next(), all.next(), is_complete) {
        return Ok(cx.see_other(&only.path));
    }
    let about = "Names, email addresses, phone numbers, companies, suburbs, numbers, the beginnings of ids, webhooks, keys, \
                 and pages.";
    let content = html! {
        (heading("Search", about, html! {}))
        @if !is_complete {
            p.banner.warn role="status" { "Many records changed just now. The newest of them are found in some seconds." }
        }
        @if results.groups.is_empty() {
            (empty("find", "Nothing found", "Type at least three characters of a name, an email address or a number, or a whole \
                one.", html! {}))
        }
        @for (title, found) in &results.groups {
            (section(title, html! { ul.hits { @for one in found { (one.item(cx)) } } }))
        }
        @if data.len() >= MAX_HITS {
            p.soft { "These are the first " (MAX_HITS) " records. Type more to find others." }
        }
    };
    Ok(layout::page(cx, Some(tenant), "Search", &content))
}

/// Lists the first results, for the field of the search.
pub(crate) async fn suggestions(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let results = Results::of(cx, tenant, cx.query.text("q")).await?;
    Ok(PageResponse::page(html! { ul { @for one in results.all().take(SUGGESTED) { (one.item(cx)) } } }))
}

/// Returns the pages and actions of this person whose names have words that begin with each of the typed words.
fn pages(cx: &Context<'_>, typed: &str) -> Vec<Found> {
    let typed = typed.to_lowercase();
    let wanted: Vec<&str> = typed.split_whitespace().collect();
    let is_wanted = |name: &str| {
        let name = name.to_lowercase();
        !wanted.is_empty() && wanted.iter().all(|start| name.split(' ').any(|word| word.starts_with(start)))
    };
    let mut all: Vec<(String, String)> =
        layout::pages(cx).map(|(path, name)| (path.to_owned(), name.to_owned())).collect();
    if cx.may(Role::Developer) {
        let new = |kind: &kinds::Kind| (kind.path("new"), format!("New {}", kind.one));
        all.extend(kinds::ALL.into_iter().map(new));
        all.push(("/import?kind=contacts".to_owned(), "Import contacts".to_owned()));
        all.push(("/import?kind=invoices".to_owned(), "Import invoices".to_owned()));
        all.push(("/webhooks/new".to_owned(), "New webhook endpoint".to_owned()));
    }
    if cx.may(Role::Owner) {
        all.push(("/keys/new".to_owned(), "New API key".to_owned()));
    }
    all.retain(|(_, name)| is_wanted(name));
    all.into_iter().map(|(path, name)| Found::at(path, name, "")).collect()
}

/// Returns the endpoints whose URL or description has a text.
async fn webhooks(cx: &Context<'_>, tenant: TenantId, typed: &str) -> Result<Vec<Found>, Error> {
    let endpoints = deliveries::list_endpoints(&cx.svc, tenant).await?;
    let found = endpoints.iter().filter_map(|endpoint| {
        let description = endpoint.description.as_ref().map_or("", Text::as_str);
        let is_found = has_text(&endpoint.url.to_string(), typed) || has_text(description, typed);
        is_found.then(|| Found::at(format!("/webhooks/{}", endpoint.id), endpoint.url.to_string(), description))
    });
    Ok(found.take(MAX_HITS).collect())
}

/// Returns the keys whose name or beginning has a text, the newest first.
async fn keys(cx: &Context<'_>, tenant: TenantId, typed: &str) -> Result<Vec<Found>, Error> {
    let keys = cx.svc.account(tenant).keys().list().await?;
    let found = keys.iter().rev().filter_map(|key| {
        let name = key.name.as_deref().unwrap_or_default();
        let is_found = has_text(name, typed) || has_text(key.prefix.as_str(), typed);
        is_found
            .then(|| Found::at("/keys", if name.is_empty() { key.prefix.as_str() } else { name }, key.prefix.as_str()))
    });
    Ok(found.take(MAX_HITS).collect())
}

/// Returns the delivery or the event with an id, and the request with this `X-Request-Id`.
async fn logged(cx: &Context<'_>, tenant: TenantId, id: Uuid) -> Result<Vec<Found>, Error> {
    let account = cx.svc.account(tenant);
    let mut found = Vec::new();
    if let Some(delivery) = if_found(account.deliveries().get(id.into()).await)? {
        found.push(Found::at(format!("/deliveries/{id}"), delivery.kind.as_str(), "delivery"));
    }
    if let Some(event) = if_found(account.events().get(id.into()).await)? {
        found.push(Found::at(format!("/events/{id}"), event.kind.as_str(), "event"));
    }
    let with_id = RequestFilter { request_id: Some(id.to_string()), ..RequestFilter::default() };
    for request in account.requests().list(with_id).await? {
        let name = format!("{} {}", request.method, short_path(&request.path));
        found.push(Found::at(format!("/requests/{}", request.id), name, "request"));
    }
    Ok(found)
}

fn has_text(text: &str, typed: &str) -> bool {
    text.to_lowercase().contains(&typed.to_lowercase())
}
