//! The contact of another record, as people name it.

use svc_core::find::{self, MAX_HITS};
use svc_core::prelude::*;
use svc_core::values::RecordKind;

use crate::dashboard::prelude::*;

/// Finds the contact with this id, email address or name, or says why there is no such one.
///
/// # Errors
///
/// [`Error::Store`].
pub(super) async fn named(account: Account<'_>, text: &str) -> Result<Result<ContactId, String>, Error> {
    if let Ok(id) = text.parse::<ContactId>() {
        return Ok(match account.contacts().get(id).await {
            Ok(contact) => Ok(contact.id),
            Err(Error::NotFound) => Err("This account has no contact with this id.".to_owned()),
            Err(other) => return Err(other),
        });
    }
    if let Ok(email) = Email::parse(text) {
        let filter = ContactFilter { email: Some(email), ..ContactFilter::default() };
        let found = account.contacts().list(filter, ListParams::default()).await?.data;
        return Ok(only(&found, "email address"));
    }
    with_name(account, text).await
}

/// Finds the contact with this name, which the search of all records knows from three characters on.
async fn with_name(account: Account<'_>, text: &str) -> Result<Result<ContactId, String>, Error> {
    let Ok(input) = find::parse(text) else { return Ok(only(&[], "name")) };
    let found = account.find(input).await?;
    let (wanted, mut named) = (text.to_lowercase(), Vec::new());
    for hit in found.data.iter().filter(|hit| hit.kind == RecordKind::Contact) {
        match account.contacts().get(hit.id.into()).await {
            Ok(contact) if names(&contact).any(|name| name.to_lowercase() == wanted) => named.push(contact),
            Ok(_) | Err(Error::NotFound) => {}
            Err(other) => return Err(other),
        }
    }
    let may_lack_some = !found.is_complete || found.data.len() >= MAX_HITS;
    if may_lack_some && named.len() < 2 {
        let reason =
            "Type the email address or the id of the contact: too many records have this text to tell by the name.";
        return Ok(Err(reason.to_owned()));
    }
    Ok(only(&named, "name"))
}

/// Returns the names of a contact: its own and that of its company.
fn names(contact: &Contact) -> impl Iterator<Item = String> {
    let own: Vec<&str> = [&contact.first_name, &contact.last_name].into_iter().flatten().map(Text::as_str).collect();
    let company = contact.company_name.as_ref().map(ToString::to_string);
    [Some(own.join(" ")), company].into_iter().flatten().filter(|name| !name.is_empty())
}

/// Returns the only contact, or says what to type in place of `what`.
fn only(found: &[Contact], what: &str) -> Result<ContactId, String> {
    match found {
        [] => Err(format!("This account has no contact with this {what}.")),
        [only] => Ok(only.id),
        several => {
            let ids: Vec<String> = several.iter().take(3).map(|contact| contact.id.to_string()).collect();
            Err(format!("Several contacts have this {what}. Type the id of the one that you mean: {}.", ids.join(", ")))
        }
    }
}

/// Returns what a form shows for a contact: the email address where it names one contact alone, and the id otherwise.
///
/// # Errors
///
/// [`Error::Store`].
pub(super) async fn shown(cx: &Context<'_>, tenant: &Tenant, id: &str) -> Result<String, Error> {
    let Ok(parsed) = id.parse::<ContactId>() else { return Ok(id.to_owned()) };
    match cx.svc.account(tenant.id).contacts().get(parsed).await {
        Ok(Contact { email: Some(email), .. }) if tenant.unique_contact_email => Ok(email.to_string()),
        Ok(_) | Err(Error::NotFound) => Ok(id.to_owned()),
        Err(other) => Err(other),
    }
}
