//! How options are named and marked: after the fields of the API, and as required.

use clap::Command;

/// The mark of an option that must be given.
const REQUIRED: &str = " [required]";

/// Returns the name of the option for a field.
pub(crate) fn option_name(field: &str) -> String {
    match field {
        // An option has one header, URI or limit.
        "headers" => return "header".to_owned(),
        "redirect_uris" => return "redirect-uri".to_owned(),
        "write_rate_limits" => return "write-rate-limit".to_owned(),
        "statuses" => return "status".to_owned(),
        "authentication" => return "auth".to_owned(),
        // It can be a time as well.
        "expires_in" => return "expires".to_owned(),
        _ => {}
    }
    field.strip_suffix("_id").unwrap_or(field).replace('_', "-")
}

/// Returns a message with options in place of these fields: `--start-time` for `start_time`. A field whose name is a word stays,
/// and so does a value, such as `"order.created_at"`.
pub(crate) fn with_options(message: &str, fields: &[String]) -> String {
    let is_name = |char: char| char.is_ascii_lowercase() || char == '_';
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '.' | '"' | '-' | '/' | '=');
    let (mut worded, mut rest) = (String::with_capacity(message.len()), message);
    while let Some(start) = rest.find(is_name) {
        let (before, after) = rest.split_at(start);
        let (name, next) = after.split_at(after.find(|char| !is_name(char)).unwrap_or(after.len()));
        worded.push_str(before);
        // A sentence can end with it.
        let is_end = match next.strip_prefix('.') {
            Some(more) => !more.starts_with(char::is_alphanumeric),
            None => !next.starts_with(is_part),
        };
        let is_field = name.contains('_') && fields.iter().any(|field| field == name);
        if is_field && is_end && !worded.ends_with(is_part) {
            worded.push_str("--");
            worded.push_str(&option_name(name));
        } else {
            worded.push_str(name);
        }
        rest = next;
    }
    worded + rest
}

/// Returns the help of an option that must be given, which says so.
pub(crate) fn required(help: &impl ToString) -> String {
    format!("{}{REQUIRED}", help.to_string())
}

/// Returns a help without the mark of what must be given, and the mark, if it has one.
pub(crate) fn split_mark(help: &str) -> (&str, &'static str) {
    help.strip_suffix(REQUIRED).map_or((help, ""), |help| (help, REQUIRED))
}

/// Returns a command whose required options are marked in its help. The usage has the other required arguments.
pub(crate) fn with_marks(command: Command) -> Command {
    command.mut_args(|arg| {
        if !arg.is_required_set() || arg.is_positional() {
            return arg;
        }
        let [short, long] = [arg.get_help(), arg.get_long_help()].map(|help| help.map(required));
        let arg = if let Some(short) = short { arg.help(short) } else { arg };
        if let Some(long) = long { arg.long_help(long) } else { arg }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_named_like_its_field() {
        assert_eq!(option_name("contact_id"), "contact");
        assert_eq!(option_name("first_name"), "first-name");
        assert_eq!(option_name("id"), "id");
    }

    #[test]
    fn a_message_names_options_in_place_of_fields() {
        let fields = ["start_time", "end_time", "scheduled_start", "created_at", "total"].map(str::to_owned);
        for (message, want) in [
            ("must be after start_time", "must be after --start-time"),
            ("must be after start_time.", "must be after --start-time."),
            ("`start_time` does not move `end_time`;", "`--start-time` does not move `--end-time`;"),
            ("must not be before scheduled_start, see", "must not be before --scheduled-start, see"),
            // Values and other words stay.
            ("has the value \"start_time\" or data.start_time", "has the value \"start_time\" or data.start_time"),
            (
                "the status in_progress and line_items of the total",
                "the status in_progress and line_items of the total",
            ),
            ("must not be empty", "must not be empty"),
        ] {
            assert_eq!(with_options(message, &fields), want, "{message}");
        }
    }
}
