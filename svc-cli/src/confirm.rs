//! Prompts for confirmation before what cannot be undone, unless there is no terminal: a script is never asked.
//!
//! A question names what the command is about to change, so the command has looked it up: an id that nothing has is an error,
//! not a question.

use std::io::{self, BufRead, IsTerminal as _, Write};

use crate::exit::{Exit, Failure};
use crate::output::plain_line;

/// Returns whether a person can be asked.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question on the terminal.
///
/// # Errors
/// The person declined, or the response could not be read.
pub(crate) fn ask(question: &str) -> Result<(), Failure> {
    match prompt(&plain_line(question), &mut io::stdin().lock(), &mut io::stderr().lock()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::new(Exit::Failed, "Cancelled: nothing was changed.")),
        Err(error) => {
            Err(Failure::new(Exit::Failed, format!("The confirmation cannot be read: {error}. Use --yes to skip it.")))
        }
    }
}

/// Asks the question and returns whether the person confirmed it.
fn prompt(question: &str, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<bool> {
    write!(output, "{question} [y/N] ")?;
    output.flush()?;
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_y_and_yes_confirm() {
        for (typed, want) in
            [("y\n", true), ("YES\n", true), ("n\n", false), ("\n", false), ("", false), ("yep\n", false)]
        {
            let mut shown = Vec::new();
            assert_eq!(prompt("Sure?", &mut typed.as_bytes(), &mut shown).unwrap(), want, "{typed:?}");
            assert_eq!(shown, b"Sure? [y/N] ");
        }
    }
}
