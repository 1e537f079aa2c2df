//! The contact of another record: a text that a person types, and the choice among the contacts that have the text.
//!
//! The value of a choice is `ID TEXT`. It counts only beside its own text, so that one that was made before another text was typed
//! does not.

use svc_core::find::SearchParams;
use svc_core::operation::Listing;
use svc_core::pages::Limit;
use svc_core::platform::operations::Records;
use svc_core::prelude::*;
use svc_core::resources::BusinessRecord as _;

use crate::dashboard::pages::find::Found;
use crate::dashboard::pages::kinds::Field;
use crate::dashboard::prelude::*;

/// The most contacts that are suggested.
const SUGGESTED: u32 = 8;

/// Returns the contacts that have a text: those that it names as a whole, then those that changed last.
async fn with_text(svc: &Svc, tenant: TenantId, text: &str) -> Result<Vec<Contact>, Error> {
    let Ok(search) = Text::parse(text) else { return Ok(Vec::new()) };
    let page = ListParams { limit: Limit::new(SUGGESTED), ..ListParams::default() };
    let search = SearchParams { search: Some(search) };
    let listing = Listing { page, filter: Listing { page: search, filter: ContactFilter::default() } };
    Ok(svc.call(&Records::<Contact>::SEARCH, tenant, listing).await?.data)
}

/// Returns the contact that was chosen for a text.
fn chosen(choice: &str, text: &str) -> Option<ContactId> {
    let (id, of) = choice.split_once(' ')?;
    id.parse().ok().filter(|_| of.trim() == text)
}

/// Returns the contact that is meant by a text and the choice beside it, or those that can be.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn named(
    cx: &Context<'_>,
    tenant: &Tenant,
    text: &str,
    choice: &str,
) -> Result<Result<ContactId, Vec<Contact>>, Error> {
    if let Some(id) = chosen(choice, text).or_else(|| text.parse().ok()) {
        return match cx.svc.account(tenant.id).contacts().get(id).await {
            Ok(contact) => Ok(Ok(contact.id)),
            Err(Error::NotFound) => Ok(Err(Vec::new())),
            Err(other) => Err(other),
        };
    }
    let found = with_text(&cx.svc, tenant.id, text).await?;
    let text = text.to_lowercase();
    let is_text = |name: &str| name.to_lowercase() == text;
    let by_company = |contact: &Contact| contact.company_name.as_ref().is_some_and(|name| is_text(name.as_str()));
    // Those that the text names as a whole are the first of all that have it, but for companies.
    let by_name = |contact: &Contact| {
        is_text(&contact.display_name()) || contact.email.as_ref().is_some_and(|email| is_text(email.as_str()))
    };
    let is_all = found.len() < SUGGESTED as usize;
    let meant: Vec<ContactId> =
        found.iter().filter(|contact| by_name(contact) || by_company(contact)).map(|contact| contact.id).collect();
    match meant.as_slice() {
        [only] if is_all || found.first().is_some_and(by_name) => Ok(Ok(*only)),
        _ => Ok(Err(found)),
    }
}

/// Returns the fields of a form that show a contact: the text and the choice. Those of a contact that is not there have its id.
///
/// # Errors
///
/// [`Error::Store`].
pub(super) async fn shown(cx: &Context<'_>, tenant: &Tenant, id: &str) -> Result<(String, String), Error> {
    let Ok(parsed) = id.parse::<ContactId>() else { return Ok((id.to_owned(), String::new())) };
    match cx.svc.account(tenant.id).contacts().get(parsed).await {
        Ok(contact) => Ok((contact.display_name(), choice_of(&contact))),
        Err(Error::NotFound) => Ok((id.to_owned(), String::new())),
        Err(other) => Err(other),
    }
}

fn choice_of(contact: &Contact) -> String {
    format!("{} {}", contact.id, contact.display_name())
}

/// Returns the field of a form, with the choice among the contacts that the text can mean. A script suggests them while the person
/// types.
pub(super) fn control(
    cx: &Context<'_>,
    tenant: &Tenant,
    state: &FormState<'_>,
    field: &Field,
    meant: &[Contact],
) -> Markup {
    let Field { name, choice, label, hint, .. } = field;
    let text = state.values.text(name);
    // A choice belongs to its text.
    let options: Vec<_> = meant
        .iter()
        .map(|contact| (format!("{} {text}", contact.id), described(tenant, contact).join(" · ")))
        .collect();
    let several = (options.len() > 1).then_some(("", "Choose one"));
    let options = options.iter().map(|(value, label)| (value.as_str(), label.as_str()));
    html! {
        (state.suggested(name, label, hint, &cx.url("/find/contacts"), choice))
        @if meant.is_empty() {
            input type="hidden" name=(choice) value=(state.values.text(choice));
        } @else {
            (state.choice(choice, "Contacts with this text", "", &several.into_iter().chain(options).collect::<Vec<_>>()))
        }
    }
}

/// Returns what people call a contact, and what tells it from others with this name.
fn described(tenant: &Tenant, contact: &Contact) -> Vec<String> {
    let mut texts = vec![contact.display_name()];
    texts.extend(contact.details(&tenant.time_zone));
    texts
}

/// Lists the contacts that have a text, for a field that suggests them, and offers to create one.
pub(crate) async fn suggestions(cx: &Context<'_>, tenant: &Tenant) -> Result<PageResponse, PageError> {
    let found = with_text(&cx.svc, tenant.id, cx.query.text("q")).await?;
    let hits = found.iter().map(|contact| Found {
        path: format!("/contacts/{}", contact.id),
        title: contact.display_name(),
        detail: contact.details(&tenant.time_zone).join(" · "),
        choice: choice_of(contact),
    });
    let new = html! {
        @if cx.may(Role::Developer) { li { a href=(cx.url("/contacts/new")) data-new { "New contact" } } }
    };
    Ok(PageResponse::page(html! { ul { @for hit in hits { (hit.item(cx)) } (new) } }))
}
