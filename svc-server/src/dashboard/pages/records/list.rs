//! The lists of records.

use http::StatusCode;
use svc_core::error::Error;
use svc_core::pages::Limit;
use svc_core::prelude::*;
use svc_core::values::RecordKind;
use uuid::Uuid;

use super::table::record_table;
use super::values::text;
use super::{FieldValues, PAGE, Selection, file, find, selected, short, worklist};
use crate::dashboard::pages::filters;
use crate::dashboard::pages::kinds::{Kind, of_path};
use crate::dashboard::pages::record_actions::new_button;
use crate::dashboard::pages::record_forms::contact;
use crate::dashboard::prelude::*;

/// The filters in the query.
const FILTERS: [&str; 6] = ["status", "contact", "search", "within", "since", "until"];

/// Lists the records, or finds some.
pub(crate) async fn list(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let (kind, search) = (of_path(cx.path)?, cx.query.text("search"));
    let path = kind.list_path();
    if let Some(name) = cx.query.given("show") {
        return worklist::show(cx, tenant, kind, name).await;
    }
    if let Ok(id) = search.parse::<Uuid>() {
        return Ok(cx.see_other(&kind.path(id)));
    }
    if !search.is_empty() && !narrows(kind, search) {
        let path = match contact_with(cx, tenant, kind, search).await? {
            Some(contact) => format!("{path}?contact={contact}"),
            None => everywhere(search),
        };
        return Ok(cx.see_other(&path));
    }
    let created = filters::period(cx, tenant)?;
    let contact = filters::value(cx, "contact")?;
    let (search, status) = (search.to_owned(), cx.query.text("status").to_owned());
    let selection = Selection { created, contact, search, status };
    if cx.query.text("format") == "csv" {
        return file::of_selection(cx, tenant, kind, selection).await;
    }
    let cursor = cx.query.given("cursor").and_then(|cursor| cursor.parse::<Uuid>().ok());
    let params = ListParams { limit: Limit::new(PAGE), cursor: cursor.map(Into::into), ..ListParams::default() };
    let found = match find(cx.svc.account(tenant.id), kind, &selection, params).await {
        Ok(found) => Ok(found),
        Err(Error::NotAllowed(reason)) => Err(reason),
        Err(Error::InvalidCursor) => Err(Error::InvalidCursor.to_string()),
        Err(other) => return Err(other.into()),
    };
    // A part of a number is found there.
    let has_none = found.as_ref().is_ok_and(|(records, _)| records.is_empty());
    if has_none && !cx.query.text("search").is_empty() && !matches!(kind.records, RecordKind::Contact) {
        return Ok(cx.see_other(&everywhere(cx.query.text("search"))));
    }
    let records = found.as_ref().map_or(&[][..], |(records, _)| records);
    let contacts = records.iter().map(|record| text(record, "contact_id")).chain([cx.query.text("contact")]);
    let values = FieldValues::new(cx, tenant, contacts).await?;
    let is_filtered = !cx.query.encoded(&FILTERS).is_empty();
    let content = html! {
        (heading(kind.title, "", new_button(cx, kind)))
        (worklist::tabs(cx, kind, None))
        div.toolbar {
            (filter_form(cx, kind, &path, &values, is_filtered))
            @if !records.is_empty() { (selected::form(cx, kind)) }
        }
        @match &found {
            Err(reason) => { p.banner.bad role="alert" { (reason) } }
            Ok((records, _)) if records.is_empty() && is_filtered => {
                (empty(kind.icon, "Nothing found", &format!("No {} matches.", kind.one),
                    html! { a.button href=(cx.url(&path)) { "Show all" } }))
            }
            Ok((records, _)) if records.is_empty() => {
                (none_yet(cx, kind))
            }
            Ok((records, next)) => {
                (record_table(cx, kind, records, &values, "", true))
                @let older = next.map(|next| next.to_string());
                @let older = older.as_deref().map(|next| ("cursor", next));
                (filters::pages(cx, &path, &FILTERS, cursor.is_some(), older))
            }
        }
    };
    let response = layout::page(cx, Some(tenant), kind.title, &content);
    Ok(if found.is_err() { response.status(StatusCode::UNPROCESSABLE_ENTITY) } else { response })
}

/// Returns whether a list has only records with a text: an email address or a number. Other texts are searched for in all records.
fn narrows(kind: &Kind, text: &str) -> bool {
    match kind.records {
        RecordKind::Contact => text.contains('@'),
        RecordKind::Invoice | RecordKind::Job => text.contains(|char: char| char.is_ascii_digit()),
        RecordKind::Quote | RecordKind::Booking => false,
    }
}

/// Returns the path of the search in all records.
fn everywhere(text: &str) -> String {
    format!("/find?{}", layout::query(&[("q", text)]))
}

/// Returns the contact whose records a search in their list means, if only one has the text.
async fn contact_with(cx: &Context<'_>, tenant: &Tenant, kind: &Kind, text: &str) -> Result<Option<ContactId>, Error> {
    if matches!(kind.records, RecordKind::Contact) {
        return Ok(None);
    }
    Ok(match contact::named(cx, tenant, text, "").await? {
        Ok(id) => Some(id),
        Err(several) => match several.as_slice() {
            [only] => Some(only.id),
            _ => None,
        },
    })
}

/// Says how the first records come.
fn none_yet(cx: &Context<'_>, kind: &Kind) -> Markup {
    let text = match kind.records {
        RecordKind::Invoice => "They are created here, and from jobs that are done.",
        RecordKind::Job => "They are created here, from accepted quotes, and by programs through the API.",
        RecordKind::Contact | RecordKind::Quote | RecordKind::Booking => {
            "They are created here, and by programs through the API, such as your website."
        }
    };
    let action = html! { @if cx.may(Role::Developer) { div.actions { (new_button(cx, kind)) } } };
    empty(kind.icon, &format!("No {} yet", kind.collection), text, action)
}

/// Returns the form of the filters. The list of a contact's records has a period alone.
fn filter_form(cx: &Context<'_>, kind: &Kind, path: &str, values: &FieldValues<'_>, is_filtered: bool) -> Markup {
    let contact = cx.query.given("contact");
    let searched = match kind.records {
        RecordKind::Contact => "Name, phone or email",
        RecordKind::Invoice | RecordKind::Job => "Number or contact",
        RecordKind::Quote | RecordKind::Booking => "Contact",
    };
    html! {
        form.filters method="get" action=(cx.url(path)) role="search" aria-label=(kind.title) {
            @if let Some(id) = contact {
                input type="hidden" name="contact" value=(id);
                p { "Of " a href=(cx.url(&format!("/contacts/{id}"))) { (short(values.contact(id).unwrap_or(id))) } }
            } @else {
                label { (searched)
                    input type="search" name="search" value=(cx.query.text("search")) autocomplete="off";
                }
                (filters::fold("Filters", is_filtered))
                (filters::statuses(cx, kind))
            }
            (filters::period_fields(cx, "Created"))
            button type="submit" { "Filter" }
            @if is_filtered { a.button href=(cx.url(path)) { "Clear" } }
        }
    }
}
