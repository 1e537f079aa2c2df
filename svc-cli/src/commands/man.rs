//! `svc man`.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use serde_json::json;

use crate::cli::Cli;
use crate::exit::{Exit, Failure};
use crate::output::Outcome;

/// A page: the name of its file, and its roff.
type Page = (String, Vec<u8>);

pub(super) fn run(directory: Option<&Path>) -> Result<Outcome, Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Failed, format!("The manual page cannot be made: {error}."));
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let Some(directory) = directory else {
        let (name, page) = page(&root).map_err(failed)?;
        let page = String::from_utf8_lossy(&page).into_owned();
        return Outcome::new(&json!({ "name": name, "page": page }), page);
    };
    let mut pages = Vec::new();
    collect(&root, &mut pages).map_err(failed)?;
    write(directory, &pages).map_err(|error| {
        Failure::new(Exit::Failed, format!("The manual pages cannot be written to {}: {error}.", directory.display()))
    })?;
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    let text = format!("Wrote {} manual pages to {}.", pages.len(), directory.display());
    Outcome::new(&json!({ "directory": directory, "pages": names }), text)
}

fn write(directory: &Path, pages: &[Page]) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    pages.iter().try_for_each(|(name, page)| {
        let path = directory.join(name);
        // Half a page is worse than none.
        fs::write(&path, page).inspect_err(|_| drop(fs::remove_file(&path)))
    })
}

fn collect(command: &Command, pages: &mut Vec<Page>) -> io::Result<()> {
    pages.push(page(command)?);
    command.get_subcommands().try_for_each(|inner| collect(inner, pages))
}

/// The page of one command: what clap knows of it, and the sections that end its help under headings of their own.
fn page(command: &Command) -> io::Result<Page> {
    let man = Man::new(command.clone()).source(format!("svc {}", env!("CARGO_PKG_VERSION"))).manual("svc");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    let help = command.get_after_long_help().or_else(|| command.get_after_help());
    ending(&help.map(ToString::to_string).unwrap_or_default(), command.get_name() == "svc").to_writer(&mut page)?;
    Ok((man.get_filename(), page))
}

/// A line with a colon at its end is a heading; what is below it keeps its lines.
fn ending(help: &str, is_root: bool) -> Roff {
    let mut roff = Roff::new();
    for section in help.split("\n\n") {
        let (heading, body) = section.split_once(":\n").unwrap_or(("Notes", section));
        roff.control("SH", [heading.to_uppercase().as_str()]);
        roff.control("nf", []);
        for line in body.lines() {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []);
    }
    if !is_root {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([roman("svc(1) has the environment variables and the exit codes.")]);
    }
    roff
}
