//! `svc find`.

use clap::Args;
use svc_core::error::Issue;
use svc_core::find::{FindText, MAX_TEXT};
use svc_core::values::Text;

use super::InAccount;

/// `svc find`
#[derive(Args, Clone, Debug)]
pub struct Find {
    /// What to look for: a whole name, number or email address, at least three characters of any text, or a word of one or two.
    /// Case, accents, and what stands between the digits of a phone number make no difference.
    #[arg(value_parser = text, value_name = "TEXT")]
    pub text: FindText,
    /// The account.
    #[command(flatten)]
    pub account: InAccount,
}

fn text(text: &str) -> Result<FindText, Issue> {
    Text::<MAX_TEXT>::parse(text).map(|text| FindText { text })
}
