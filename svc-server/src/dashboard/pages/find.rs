//! The results of a search, by kind.

use svc_core::error::Error;
use svc_core::find::{self, Hit, MAX_HITS, SearchResults};
use svc_core::resources::kinds::collection;

use crate::dashboard::pages::kinds;
use crate::dashboard::prelude::*;

/// Lists the results. A single one is shown at once.
pub(crate) async fn show(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let typed = cx.query.text("q");
    let found = match find::parse(typed) {
        Ok(text) => cx.svc.account(tenant.id).find(text).await?,
        Err(Error::Validation(_)) => SearchResults { data: Vec::new(), is_complete: true, note: None },
        Err(error) => return Err(error.into()),
    };
    if let ([only], true) = (&found.data[..], found.is_complete) {
        return Ok(cx.see_other(&path(only)));
    }
    let about = "Names, email addresses, phone numbers, companies, suburbs, numbers, and the beginnings of ids.";
    let content = html! {
        (heading("Search", about, html! {}))
        @if !found.is_complete {
            p.banner.warn role="status" { "Many records changed just now. The newest of them are found in some seconds." }
        }
        @if found.data.is_empty() {
            (empty("find", "Nothing found", "Type at least three characters of a name, an email address or a number, or a whole \
                one.", html! {}))
        }
        @for kind in kinds::ALL {
            @let hits: Vec<&Hit> = found.data.iter().filter(|hit| hit.kind == kind.records).collect();
            @if !hits.is_empty() { (section(kind.title, list(cx, &hits))) }
        }
        @if found.data.len() >= MAX_HITS {
            p.soft { "These are the first " (MAX_HITS) ". Type more to find others." }
        }
    };
    Ok(layout::page(cx, Some(tenant), "Search", &content))
}

fn list(cx: &Context<'_>, hits: &[&Hit]) -> Markup {
    html! {
        ul.hits {
            @for hit in hits {
                li { a href=(cx.url(&path(hit))) { (hit.title) } " " span.soft { (hit.detail) } }
            }
        }
    }
}

/// Returns the path of the page of a record.
fn path(hit: &Hit) -> String {
    format!("/{}/{}", collection(hit.kind), hit.id)
}
