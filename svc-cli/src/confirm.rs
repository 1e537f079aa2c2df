//! Prompts: for confirmation before what cannot be undone, and for what a command needs, unless there is no terminal: a script
//! is never asked.
//!
//! A question names what the command is about to change, so the command has looked it up: an id that nothing has is an error,
//! not a question.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal as _, Write};

use svc_core::error::Issue;

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

/// Asks for a value on the terminal, until it is one. An empty line, and the end of the input, stand for the default.
///
/// # Errors
/// The response could not be read.
pub(crate) fn ask_for<T: Display>(
    question: &str,
    default: T,
    parse: impl Fn(&str) -> Result<T, Issue>,
) -> Result<T, Failure> {
    prompt_for(question, default, parse, &mut io::stdin().lock(), &mut io::stderr().lock()).map_err(|error| {
        Failure::new(Exit::Failed, format!("The answer cannot be read: {error}. Use --yes to skip it."))
    })
}

fn prompt_for<T: Display>(
    question: &str,
    default: T,
    parse: impl Fn(&str) -> Result<T, Issue>,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> io::Result<T> {
    loop {
        write!(output, "{question} [{default}]: ")?;
        output.flush()?;
        let mut line = String::new();
        input.read_line(&mut line)?;
        match line.trim() {
            "" => return Ok(default),
            answer => match parse(answer) {
                Ok(value) => return Ok(value),
                Err(issue) => writeln!(output, "It {}.", plain_line(&issue.message))?,
            },
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
    use svc_core::values::Currency;

    use super::*;

    #[test]
    fn a_value_is_asked_for_until_it_is_one() {
        let ask = |typed: &str| {
            let mut shown = Vec::new();
            let answer =
                prompt_for("Currency", "AUD".parse().unwrap(), Currency::parse, &mut typed.as_bytes(), &mut shown);
            (answer.unwrap().to_string(), String::from_utf8(shown).unwrap())
        };
        assert_eq!(ask("NZD\n"), ("NZD".to_owned(), "Currency [AUD]: ".to_owned()));
        assert_eq!(ask("\n").0, "AUD");
        assert_eq!(ask("").0, "AUD", "the input ended");
        let (answer, shown) = ask("dollars\n EUR \n");
        assert_eq!(answer, "EUR");
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.len() == 2 && lines[0].starts_with("Currency [AUD]: It must be "), "{shown}");
    }

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
