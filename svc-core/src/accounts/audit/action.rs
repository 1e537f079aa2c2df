//! The actions of the audit log: the words that it stores, and those that people read.

use crate::values::TextEnum;

/// The kind of a changed tenant.
pub(crate) const TENANT: &str = "tenant";
/// The kind of a changed shared link.
pub(crate) const SHARED_LINK: &str = "shared_link";

/// The action on an object that has an entry of its own. Changes of records are named by their events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum AuditAction {
    /// The object was created.
    Create,
    /// The object was changed.
    Update,
    /// The object was deleted.
    Delete,
    /// The object was made invalid for good.
    Revoke,
    /// The secret of the object was replaced.
    Rotate,
    /// The overlap of two secrets ended.
    FinishRotation,
    /// The delivery engine paused a webhook.
    Pause,
    /// A delivery, or many of one webhook, are sent again.
    Replay,
    /// Records were imported without events.
    Import,
    /// A test event was sent to a webhook.
    Test,
    /// An operator looked at an account.
    View,
    /// The personal fields of a contact were emptied.
    Erase,
    /// A sandbox was emptied and got its samples again.
    Reset,
    /// The clock of an account was set back.
    RepairClock,
    /// The code of an app was used a second time, which ended its tokens.
    CodeReused,
}

impl AuditAction {
    /// Returns the action in the past, as far as it stands before the object.
    const fn past(self) -> &'static str {
        match self {
            Self::Create => "created",
            Self::Update => "updated",
            Self::Delete => "deleted",
            Self::Revoke => "revoked",
            Self::Rotate => "rotated",
            Self::FinishRotation => "ended rotation of",
            Self::Pause => "paused",
            Self::Replay => "replayed",
            Self::Import => "imported",
            Self::Test => "tested",
            Self::View => "viewed",
            Self::Erase => "erased",
            Self::Reset => "reset",
            Self::RepairClock => "repaired clock of",
            Self::CodeReused => "reused code of",
        }
    }
}

/// Returns the word for the kind of a changed object in texts for people, who read `account` for `tenant`.
pub fn object_word(kind: &str) -> &str {
    if kind == TENANT { "account" } else { kind }
}

/// Returns what was done to an object in the words of people: `created invoice`, `revoked key`.
///
/// The arguments are the `object_kind` and the `action` of an [`AuditEntry`](super::AuditEntry).
///
/// ```
/// use svc_core::accounts::audit::summary;
/// assert_eq!(summary("key", "revoke"), "revoked key");
/// assert_eq!(summary("payment", "succeeded"), "received payment");
/// ```
pub fn summary(object_kind: &str, action: &str) -> String {
    let object = object_word(object_kind).replace('_', " ");
    let done = match (object_kind, action) {
        ("payment", "succeeded") => "received".to_owned(),
        ("stay", "no_show") => "marked as no-show".to_owned(),
        ("cohort", "sessions_generated") => "generated sessions of".to_owned(),
        // The rest are events, which are named in the past.
        _ => AuditAction::from_text(action).map_or_else(|| action.replace('_', " "), |action| action.past().to_owned()),
    };
    format!("{done} {object}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::EventKind;

    /// Returns whether a summary begins with a verb in the past.
    fn is_past(summary: &str) -> bool {
        let verb = summary.split(' ').next().unwrap_or_default();
        verb.ends_with("ed") || ["paid", "sent", "resent", "reset"].contains(&verb)
    }

    #[test]
    fn every_action_of_the_log_is_told_in_the_past() {
        for action in AuditAction::ALL {
            let summary = summary("webhook", action.as_str());
            assert!(is_past(&summary) && summary.ends_with(" webhook"), "{summary}");
        }
        for kind in EventKind::BUILT_IN {
            let (object, action) = kind.as_str().split_once('.').unwrap();
            let summary = summary(object, action);
            assert!(is_past(&summary) && summary.ends_with(&format!(" {object}")), "{summary}");
        }
    }

    #[test]
    fn a_summary_has_words_in_place_of_names() {
        assert_eq!(summary("tenant", "update"), "updated account");
        assert_eq!(summary("tenant", "repair_clock"), "repaired clock of account");
        assert_eq!(summary("dashboard_link", "create"), "created dashboard link");
        assert_eq!(summary("stay", "checked_in"), "checked in stay");
        // One of the application that embeds the service.
        assert_eq!(summary("order", "shipped_in_part"), "shipped in part order");
    }
}
