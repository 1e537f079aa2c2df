//! The texts of the operations that every resource has.

use crate::operation::{Profile, Texts};

fn texts(summary: String, description: String, success: String) -> Texts {
    Texts { summary: summary.into(), description: description.into(), success: success.into() }
}

pub(super) fn list(profile: &Profile) -> Texts {
    let Profile { plural, list, .. } = profile;
    let specific = list.text;
    texts(
        format!("List {plural}"),
        format!(
            "Returns a page of {plural}, the newest first. {specific}\n\n\
             To get the next page, repeat the request with the `next_cursor` of the response as `cursor`. With \
             `updated_since` the list contains only the {plural} that changed at or after that time, the oldest change first, \
             so that you can keep a copy in sync. A record that exists while you read all pages is returned \
             exactly once; with `updated_since`, a record that changes in the meantime is returned again."
        ),
        format!("A page of {plural}."),
    )
}

pub(super) fn list_of_contact(profile: &Profile) -> Texts {
    let Profile { plural, .. } = profile;
    texts(
        format!("List {plural}"),
        format!("Returns a page of {plural}, the newest first: all, or those of one contact."),
        format!("A page of {plural}."),
    )
}

pub(super) fn get(profile: &Profile) -> Texts {
    let Profile { with_article, singular, .. } = profile;
    texts(
        format!("Retrieve {with_article}"),
        format!(
            "Returns the {singular} with this id.\n\n\
             If you send the `ETag` of an earlier response as `If-None-Match` and the \
             {singular} has not changed, the response is 304 without a body, which does not count against the rate limit."
        ),
        format!("The {singular} with this id."),
    )
}

pub(super) fn create(profile: &Profile) -> Texts {
    let Profile { with_article, singular, create, .. } = profile;
    let specific = create.text;
    texts(
        format!("Create {with_article}"),
        format!(
            "{specific}\n\n\
             To retry safely, send an `Idempotency-Key`. A repeat with the same key within 24 hours returns the stored \
             response with `Idempotent-Replayed: true` and does not create a second {singular}."
        ),
        format!("The created {singular}."),
    )
}

pub(super) fn update(profile: &Profile) -> Texts {
    let Profile { with_article, singular, update, .. } = profile;
    let specific = update.text;
    texts(
        format!("Update {with_article}"),
        format!(
            "Changes the fields that you send and leaves the others as they are (JSON Merge Patch, RFC 7396). Null clears \
             a field that can be null. {specific}\n\n\
             A request that changes nothing succeeds, keeps `updated_at` and fires no event. If you send the `ETag` \
             of the {singular} as `If-Match`, the change is made only if the {singular} has not changed since."
        ),
        format!("The {singular} after the change."),
    )
}

pub(super) fn delete(profile: &Profile) -> Texts {
    let Profile { with_article, singular, delete, .. } = profile;
    let specific = delete.text;
    texts(
        format!("Delete {with_article}"),
        format!(
            "{specific}\n\n\
             Later requests for the {singular} get 404, including a second DELETE. If you send the `ETag` of the {singular} as \
             `If-Match`, it is deleted only if it has not changed since."
        ),
        format!("The {singular} was deleted. The response has no body."),
    )
}
