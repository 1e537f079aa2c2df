//! The parts of forms.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use maud::{Markup, html};

use super::context::Context;
use super::form::Form;
use super::page_response::PageError;

/// The name of the field with the key of a form.
pub(super) const KEY: &str = "key";
/// The name of the field that says which version of a record the page showed.
pub(super) const VERSION: &str = "version";

/// Returns the hidden field that each form of a session needs.
pub(super) fn csrf(cx: &Context<'_>) -> Markup {
    html! { input type="hidden" name="csrf" value=(cx.csrf); }
}

/// Returns a new random key for a form.
fn new_key(cx: &Context<'_>) -> String {
    hex::encode(cx.svc.store().env().bytes::<16>())
}

/// Returns the field with a new key for a form.
pub(super) fn key_field(cx: &Context<'_>) -> Markup {
    html! { input type="hidden" name=(KEY) value=(new_key(cx)); }
}

/// Returns the field with the version of what a form changes, so that it changes nothing else.
pub(super) fn version_field(version: impl Display) -> Markup {
    html! { input type="hidden" name=(VERSION) value=(version); }
}

/// Returns the hidden fields of a form that changes something: the token of the session, a key by which a form that is sent twice
/// changes once, and the version of what it changes, if it has one. One that was sent with these values and is shown again keeps
/// its key and its version.
pub(super) fn hidden(cx: &Context<'_>, values: &Form, version: &str) -> Markup {
    let key = values.given(KEY).map_or_else(|| new_key(cx), str::to_owned);
    let version = values.given(VERSION).unwrap_or(version);
    html! {
        (csrf(cx))
        input type="hidden" name=(KEY) value=(key);
        @if !version.is_empty() { (version_field(version)) }
    }
}

/// A form that fills a card.
pub(super) struct EditForm<'a> {
    pub(super) path: &'a str,
    /// The content above the fields.
    pub(super) top: Markup,
    /// The version of what it changes. Empty for something new.
    pub(super) version: &'a str,
    pub(super) fields: Markup,
    /// The text of the button that sends it.
    pub(super) action: &'a str,
    /// The other buttons.
    pub(super) others: Markup,
}

/// Returns a form in this state. The server checks it, which finds all that is wrong at once.
pub(super) fn edit_form(cx: &Context<'_>, state: &FormState<'_>, form: EditForm<'_>) -> Markup {
    html! {
        form.card.fields method="post" action=(cx.url(form.path)) novalidate {
            (form.top)
            (state.legend())
            (hidden(cx, state.values, form.version))
            (form.fields)
            div.actions {
                button.primary type="submit" { (form.action) }
                (form.others)
            }
        }
    }
}

/// Returns why the form that was sent to `path` was refused, if it was.
pub(super) fn problem(cx: &Context<'_>, path: &str) -> Markup {
    html! {
        @if let Some(reason) = cx.problem_at(path) { p.error role="alert" { (reason) } }
    }
}

/// Returns a button that sends a form to `path`. The class `primary` marks what a person most likely
/// wants; an empty one is the plain button.
pub(super) fn post_button(cx: &Context<'_>, path: &str, class: &str, fields: Markup, action: &str) -> Markup {
    html! {
        form method="post" action=(cx.url(path)) {
            (csrf(cx))
            (problem(cx, path))
            (key_field(cx))
            (fields)
            button class=[(!class.is_empty()).then_some(class)] type="submit" { (action) }
        }
    }
}

/// How long an old key or secret goes on beside the new one: the values of the form in hours, and their texts.
const OVERLAPS: [(&str, &str); 4] = [("0", "Not at all"), ("1", "1 hour"), ("24", "1 day"), ("168", "7 days")];

/// Returns the choice of an overlap. `label` says of what.
pub(super) fn overlap_choice(label: &str) -> Markup {
    html! {
        select name="overlap" aria-label=(label) {
            @for (hours, text) in OVERLAPS {
                option value=(hours) selected[hours == "24"] { (text) }
            }
        }
    }
}

/// Returns the overlap that was chosen. `refusal` says what to choose.
pub(super) fn chosen_overlap(form: &Form, refusal: &str) -> Result<Duration, PageError> {
    let chosen = OVERLAPS.iter().find(|(value, _)| *value == form.text("overlap"));
    let hours = chosen.and_then(|(value, _)| value.parse::<u32>().ok());
    let hours = hours.ok_or_else(|| PageError::Invalid(refusal.to_owned()))?;
    Ok(Duration::from_secs(60 * 60) * hours)
}

/// Returns a button that sends a form to `path`. The person confirms first: the button opens what it says and the button
/// that does it.
pub(super) fn confirmed(
    cx: &Context<'_>,
    label: &str,
    question: &str,
    path: &str,
    fields: Markup,
    action: &str,
) -> Markup {
    let problem = cx.problem_at(path);
    html! {
        details.confirm open[problem.is_some()] {
            summary.button { (label) }
            form method="post" action=(cx.url(path)) {
                (csrf(cx))
                @if let Some(reason) = problem { p.error role="alert" { (reason) } }
                p { (question) }
                (key_field(cx))
                (fields)
                button.danger type="submit" { (action) }
            }
        }
    }
}

/// The errors of a form, by the name of the field.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<(&'static str, String)>);

impl Errors {
    /// Adds an error of a field, as a sentence without its name.
    pub(super) fn add(&mut self, field: &'static str, error: impl Into<String>) {
        self.0.push((field, error.into()));
    }

    /// Keeps the value of a field that could be read, or adds its error.
    pub(super) fn take<T>(&mut self, field: &'static str, result: Result<T, impl Display>) -> Option<T> {
        result.map_err(|error| self.add(field, error.to_string())).ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the error of a field.
    pub(super) fn of(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == field).map(|(_, error)| error.as_str())
    }
}

/// The state of a form: the values to show in it, and their errors.
pub(super) struct FormState<'a> {
    pub(super) values: &'a Form,
    pub(super) errors: &'a Errors,
    /// The names of the fields that must not be empty.
    required: Vec<&'static str>,
    /// Whether a field with an error was rendered: the first one has the focus.
    has_focus: AtomicBool,
}

/// The attributes that tie the control of a field to its label, its description and its error.
struct ControlAttributes<'a> {
    id: &'a str,
    /// The id of the description.
    about: &'a str,
    invalid: Option<&'static str>,
    required: Option<&'static str>,
    has_focus: bool,
}

/// The errors of a form that is shown for the first time.
static NO_ERRORS: Errors = Errors(Vec::new());

impl<'a> FormState<'a> {
    /// Returns the state of a form that shows these values for the first time.
    pub(super) fn new(values: &'a Form) -> Self {
        Self::refused(values, &NO_ERRORS)
    }

    /// Returns the state of a form that was sent with these values and refused.
    pub(super) fn refused(values: &'a Form, errors: &'a Errors) -> Self {
        Self { values, errors, required: Vec::new(), has_focus: AtomicBool::new(false) }
    }

    /// Marks these fields as required.
    pub(super) fn requiring(self, fields: impl IntoIterator<Item = &'static str>) -> Self {
        Self { required: fields.into_iter().collect(), ..self }
    }

    /// Says what the mark of required fields means, which the style sheet puts behind their labels. Nothing where there are none.
    fn legend(&self) -> Markup {
        html! {
            @if !self.required.is_empty() { p.hint { "Fields with " span.mark-required { "*" } " are required." } }
        }
    }

    /// Returns a field with its label, a hint and its error. `control` gets the attributes that tie it to them.
    fn field(&self, name: &str, label: &str, hint: &str, control: impl Fn(&ControlAttributes<'_>) -> Markup) -> Markup {
        let (error, is_required) = (self.errors.of(name), self.required.contains(&name));
        let (id, about) = (format!("field-{name}"), format!("about-{name}"));
        let attributes = ControlAttributes {
            id: &id,
            about: &about,
            invalid: error.map(|_| "true"),
            required: is_required.then_some("true"),
            has_focus: error.is_some() && !self.has_focus.swap(true, Ordering::Relaxed),
        };
        html! {
            div.field {
                label class=[is_required.then_some("required")] for=(id) { (label) }
                (control(&attributes))
                div id=(about) {
                    @if let Some(error) = error {
                        p.error { (error) }
                    }
                    @if !hint.is_empty() {
                        p.hint { (hint) }
                    }
                }
            }
        }
    }

    /// Returns a field for a line of text.
    pub(super) fn text(&self, name: &str, label: &str, hint: &str) -> Markup {
        self.typed("text", name, label, hint)
    }

    /// Returns a field for a value of a type that browsers know, such as `date`.
    pub(super) fn typed(&self, kind: &str, name: &str, label: &str, hint: &str) -> Markup {
        self.input(kind, None, name, label, hint)
    }

    /// Returns a field for an amount of money. Phones show the keys for digits.
    pub(super) fn amount(&self, name: &str, label: &str, hint: &str) -> Markup {
        self.input("text", Some("decimal"), name, label, hint)
    }

    fn input(&self, kind: &str, keys: Option<&str>, name: &str, label: &str, hint: &str) -> Markup {
        self.field(name, label, hint, |control| {
            html! {
                input id=(control.id) name=(name) type=(kind) inputmode=[keys] value=(self.values.text(name)) autocomplete="off"
                    aria-describedby=(control.about) aria-invalid=[control.invalid] aria-required=[control.required]
                    autofocus[control.has_focus];
            }
        })
    }

    /// Returns a field for a text that names a record. A script asks for suggestions at `url`, and puts the chosen one into the
    /// field `choice`.
    pub(super) fn suggested(&self, name: &str, label: &str, hint: &str, url: &str, choice: &str) -> Markup {
        self.field(name, label, hint, |control| {
            html! {
                input id=(control.id) name=(name) type="text" value=(self.values.text(name)) autocomplete="off"
                    aria-describedby=(control.about) aria-invalid=[control.invalid] aria-required=[control.required]
                    autofocus[control.has_focus] data-suggest=(url) data-choice=(choice);
            }
        })
    }

    /// Returns a field for several lines of text.
    pub(super) fn lines(&self, name: &str, label: &str, hint: &str) -> Markup {
        self.field(name, label, hint, |control| {
            html! {
                textarea id=(control.id) name=(name) rows="5" aria-describedby=(control.about) aria-invalid=[control.invalid]
                    aria-required=[control.required] autofocus[control.has_focus] {
                    // Browsers drop the first line break.
                    "\n" (self.values.all(name).next().unwrap_or_default())
                }
            }
        })
    }

    /// Returns a field with one of a few values.
    pub(super) fn choice(&self, name: &str, label: &str, hint: &str, options: &[(&str, &str)]) -> Markup {
        let chosen = self.values.text(name);
        self.field(name, label, hint, |control| {
            html! {
                select id=(control.id) name=(name) aria-describedby=(control.about) aria-invalid=[control.invalid]
                    aria-required=[control.required] autofocus[control.has_focus] {
                    @for (value, text) in options {
                        option value=(value) selected[*value == chosen] { (text) }
                    }
                }
            }
        })
    }

    /// Returns a checkbox.
    pub(super) fn checkbox(&self, name: &str, label: &str, hint: &str) -> Markup {
        html! {
            div.field.checkbox {
                input id={ "field-" (name) } name=(name) type="checkbox" value="on" checked[self.values.text(name) == "on"]
                    aria-describedby={ "about-" (name) };
                label for={ "field-" (name) } { (label) }
                p.hint id={ "about-" (name) } { (hint) }
            }
        }
    }
}
