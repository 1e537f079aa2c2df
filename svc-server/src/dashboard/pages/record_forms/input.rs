//! From the fields of a form to the JSON that the API takes, and from a record to the fields.

use serde_json::{Map, Value};
use svc_core::prelude::*;

use super::contact;
use crate::dashboard::pages::kinds::{Control, Field, FormPurpose, Kind};
use crate::dashboard::prelude::*;

/// The field with the currency of a record.
const CURRENCY: &str = "currency";

/// The typed values, as the API takes them.
pub(super) struct Body {
    members: Vec<String>,
    /// The values that could not be read. The API names the rest.
    pub(super) errors: Errors,
    /// The contacts that the typed text can mean, if it can mean several.
    pub(super) contacts: Vec<Contact>,
}

impl Body {
    /// Returns whether the form changes nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.errors.is_empty()
    }

    /// Returns the JSON object.
    pub(super) fn json(&self) -> String {
        format!("{{{}}}", self.members.join(","))
    }
}

/// Reads the form. Of a record that is edited, only what differs from the `shown` values is a change: so a time keeps the
/// seconds that the form does not show. An empty field is left out of a new record, and clears that of an edited one.
///
/// # Errors
///
/// [`Error::Store`].
pub(super) async fn read(cx: &Context<'_>, tenant: &Tenant, kind: &Kind, shown: Option<&Form>) -> Result<Body, Error> {
    let mut body = Body { members: Vec::new(), errors: Errors::default(), contacts: Vec::new() };
    let form = if shown.is_some() { FormPurpose::Edited } else { FormPurpose::New };
    let currency =
        [Some(&cx.form), shown].into_iter().flatten().find_map(|form| Currency::parse(form.text(CURRENCY)).ok());
    let decimals = currency.unwrap_or(tenant.currency).scale();
    for field in kind.fields(form) {
        let text = typed(&cx.form, field);
        if shown.is_some_and(|shown| is_unchanged(shown, &cx.form, field, &tenant.time_zone)) {
            continue;
        }
        let value = if !text.is_empty() {
            json(cx, tenant, field, &text, decimals, &mut body.contacts).await?
        } else if shown.is_some() {
            Ok("null".to_owned())
        } else {
            continue;
        };
        if let Some(value) = body.errors.take(field.name, value) {
            body.members.push(format!("\"{}\":{value}", field.name));
        }
    }
    Ok(body)
}

/// Returns what was typed into a field. Browsers send lines with CR and LF.
fn typed(form: &Form, field: &Field) -> String {
    match field.control {
        Control::Lines => form.all(field.name).next().unwrap_or_default().replace("\r\n", "\n"),
        _ => form.text(field.name).to_owned(),
    }
}

/// Returns whether a field shows what it showed before, with its choice.
fn is_unchanged(shown: &Form, sent: &Form, field: &Field, zone: &TimeZone) -> bool {
    let is_choice = match field.control {
        Control::Time => zone.offsets_of(&typed(sent, field)).is_some(),
        Control::Contact => sent.given(field.choice).is_some(),
        _ => false,
    };
    typed(shown, field) == typed(sent, field) && (!is_choice || shown.text(field.choice) == sent.text(field.choice))
}

/// Returns a value that was typed as JSON, or what is wrong with it. `contacts` gets those that it can mean.
async fn json(
    cx: &Context<'_>,
    tenant: &Tenant,
    field: &Field,
    text: &str,
    decimals: u8,
    contacts: &mut Vec<Contact>,
) -> Result<Result<String, String>, Error> {
    let string = |text: &str| Value::from(text).to_string();
    Ok(match field.control {
        Control::Line | Control::Lines | Control::Email | Control::Phone | Control::Choice(_) | Control::Day => {
            Ok(string(text))
        }
        Control::Amount => amount(text, decimals),
        Control::Time => match tenant.time_zone.time_of(text, cx.form.text(field.choice)) {
            Ok(at) => Ok(string(&at.to_string())),
            Err(issue) => Err(format!("The time {issue}.")),
        },
        Control::Contact => match contact::named(cx, tenant, text, cx.form.text(field.choice)).await? {
            Ok(id) => Ok(string(&id.to_string())),
            Err(meant) if meant.is_empty() => Err("No contact has this text.".to_owned()),
            Err(meant) => {
                *contacts = meant;
                Err("Choose the contact that you mean below.".to_owned())
            }
        },
    })
}

/// Returns an amount of money as a number of JSON, or says what is wrong with it. Groups of three digits may have commas, as pages
/// show them: `1,450.00`. Without a point, a comma could stand for it where the currency has three `decimals`.
pub(crate) fn amount(text: &str, decimals: u8) -> Result<String, String> {
    let plain = without_commas(text).filter(|_| text.contains('.') || decimals < 3);
    let text = plain.as_deref().unwrap_or(text);
    // An exponent is a slip of the finger here.
    match Decimal::parse(text) {
        Ok(_) if !text.contains(['e', 'E']) => Ok(number(text)),
        Ok(_) => Err("The amount must be a number such as 1500.95.".to_owned()),
        Err(issue) => Err(format!("The amount {issue}, with a point for the decimals.")),
    }
}

/// Returns an amount with groups of three digits without its commas.
fn without_commas(text: &str) -> Option<String> {
    let whole = text.split('.').next()?;
    let mut groups = whole.split(',');
    let is_first = groups.next().is_some_and(|first| (1..=3).contains(&first.len()));
    let is_grouped = is_first && groups.all(|group| group.len() == 3);
    is_grouped.then(|| text.replacen(whole, &whole.replace(',', ""), 1))
}

/// Returns an amount as a number of JSON, which has no zeros at its beginning.
fn number(text: &str) -> String {
    let significant = text.trim_start_matches('0');
    if significant.is_empty() || significant.starts_with('.') {
        format!("0{significant}")
    } else {
        significant.to_owned()
    }
}

/// Returns the fields of a record as its form shows them.
///
/// # Errors
///
/// [`Error::Store`].
pub(super) async fn shown(
    cx: &Context<'_>,
    tenant: &Tenant,
    kind: &Kind,
    record: &Map<String, Value>,
) -> Result<Form, Error> {
    let mut values = Vec::new();
    for field in kind.fields(FormPurpose::Edited) {
        let text = match (record.get(field.name), field.control) {
            (None | Some(Value::Null), _) => String::new(),
            (Some(Value::String(id)), Control::Contact) => {
                let (text, choice) = contact::shown(cx, tenant, id).await?;
                values.push((field.choice, choice));
                text
            }
            (Some(Value::String(at)), Control::Time) => match Timestamp::parse(at) {
                Ok(at) => {
                    let local = tenant.time_zone.date_and_time_at(at);
                    // A time that clocks show twice has its offset behind its seconds.
                    values.push((field.choice, local.get(SECONDS + 1..).unwrap_or_default().to_owned()));
                    local[..MINUTES].replace(' ', "T")
                }
                Err(_) => at.clone(),
            },
            (Some(Value::String(text)), _) => text.clone(),
            (Some(other), _) => other.to_string(),
        };
        values.push((field.name, text));
    }
    // That of an edited quote is in no field, and says how many decimals its amounts have.
    values.extend(record.get(CURRENCY).and_then(Value::as_str).map(|currency| (CURRENCY, currency.to_owned())));
    Ok(Form::from_fields(values))
}

/// The length of a date and a time of day without seconds.
const MINUTES: usize = "2026-03-14 15:09".len();
/// The length of a date and a time of day with seconds.
const SECONDS: usize = "2026-03-14 15:09:26".len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_typed_with_a_point_and_without_an_exponent() {
        assert_eq!(amount("1,450.000", 3).unwrap(), "1450.000");
        assert!(amount("1,450", 3).is_err(), "the comma can stand for a point");
        for (typed, json) in [
            ("149.50", "149.50"),
            ("007", "7"),
            ("0", "0"),
            ("00.5", "0.5"),
            ("0.25", "0.25"),
            ("1,450.00", "1450.00"),
            ("1,450", "1450"),
            ("1,234,567.5", "1234567.5"),
        ] {
            assert_eq!(amount(typed, 2).unwrap(), json);
        }
        for wrong in [
            "1,50",
            "1,4500",
            "14,50.00",
            ",450.00",
            "1,4500.00",
            "1e3",
            "$5",
            "-1",
            "1 000",
            "NaN",
            ".5",
            "5.",
            "9999999999999",
        ] {
            assert!(amount(wrong, 2).is_err(), "{wrong}");
        }
    }
}
