//! `svc man`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, Args, Command};
use clap_mangen::Man as Manual;
use clap_mangen::roff::{Roff, roman};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::options::with_marks;
use crate::output::Outcome;

/// Print the manual page of `svc`, or write one page per command.
///
/// The pages contain the text of --help.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc man | man -l -\n  \
                  svc man --directory ~/.local/share/man/man1 && man svc-account-create")]
pub(crate) struct Man {
    /// Write svc.1 and one page per command to this directory, which is created when it does not exist.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// A manual page.
struct Page {
    /// The name of its file, such as `svc-account-create.1`.
    name: String,
    /// Its text, in roff.
    roff: Vec<u8>,
}

pub(crate) fn run(root: Command, Man { directory }: &Man) -> Result<Outcome, Failure> {
    let failed =
        |error: io::Error| Failure::new(Exit::Failed, format!("The manual page cannot be generated: {error}."));
    let mut root = root.disable_help_subcommand(true);
    root.build();
    let Some(directory) = directory else {
        let Page { name, roff } = page(&root).map_err(failed)?;
        let page = String::from_utf8_lossy(&roff).into_owned();
        return Outcome::new(&json!({ "name": name, "page": page }), page);
    };
    let mut pages = Vec::new();
    collect(&root, &mut pages).map_err(failed)?;
    write(directory, &pages).map_err(|error| {
        Failure::new(Exit::Failed, format!("The manual pages cannot be written to {}: {error}.", directory.display()))
    })?;
    let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
    let text = format!("Wrote {} manual pages to {}.", pages.len(), directory.display());
    Outcome::new(&json!({ "directory": directory, "pages": names }), text)
}

/// Writes all pages, and creates the directory if it does not exist.
fn write(directory: &Path, pages: &[Page]) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    pages.iter().try_for_each(|page| {
        let path = directory.join(&page.name);
        // An incomplete page is worse than none.
        fs::write(&path, &page.roff).inspect_err(|_| drop(fs::remove_file(&path)))
    })
}

/// Generates the pages of a command and all of its subcommands.
fn collect(command: &Command, pages: &mut Vec<Page>) -> io::Result<()> {
    pages.push(page(&without_global_options(command))?);
    command.get_subcommands().try_for_each(|inner| collect(inner, pages))
}

/// Returns a command without the options that all commands have. `svc` itself keeps them.
fn without_global_options(command: &Command) -> Command {
    let is_hidden = |arg: &Arg| arg.is_global_set() && command.get_name() != "svc";
    command.clone().mut_args(|arg| if is_hidden(&arg) { arg.hide(true) } else { arg })
}

/// Generates the page of one command: the sections of clap_mangen, and the text that ends its help as further sections.
fn page(command: &Command) -> io::Result<Page> {
    let man =
        Manual::new(with_marks(command.clone())).source(format!("svc {}", env!("CARGO_PKG_VERSION"))).manual("svc");
    let mut roff = Vec::new();
    man.render_title(&mut roff)?;
    // Long options cannot be broken, so lines are not stretched to the right margin.
    let mut left_aligned = Roff::new();
    left_aligned.control("ad", ["l"]);
    left_aligned.to_writer(&mut roff)?;
    man.render_name_section(&mut roff)?;
    // A synopsis has words of a whole line, which cannot be justified.
    roff.extend_from_slice(b".ad l\n");
    man.render_synopsis_section(&mut roff)?;
    roff.extend_from_slice(b".ad\n");
    man.render_description_section(&mut roff)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut roff)?;
    }
    man.render_options_section(&mut roff)?;
    let help = command.get_after_long_help().or_else(|| command.get_after_help());
    closing_sections(&help.map(ToString::to_string).unwrap_or_default(), command.get_name() == "svc")
        .to_writer(&mut roff)?;
    Ok(Page { name: man.get_filename(), roff })
}

/// Formats the text that ends a help as sections. A line that ends with a colon is the heading of the lines below it.
fn closing_sections(help: &str, is_root: bool) -> Roff {
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
        roff.text([roman("svc(1) lists the global options, the environment variables and the exit codes.")]);
    }
    roff
}
