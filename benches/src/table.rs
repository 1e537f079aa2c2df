//! The table, and everything else that is printed.

use std::fmt::Display;
use std::io::{self, Write as _};

use crate::error::Result;
use crate::options::Options;
use crate::sample::{Sample, median};

/// A contender.
pub(crate) struct Row<'a> {
    pub(crate) subject: &'a str,
    pub(crate) contender: &'a str,
    pub(crate) rounds: &'a [Sample],
    pub(crate) ratio: Ratio<'a>,
}

/// What a contender is compared with.
pub(crate) enum Ratio<'a> {
    /// The others are compared with this one.
    Baseline,
    /// Compared with these samples, round by round.
    To(&'a [Sample]),
    /// Not compared, because its load is given.
    None,
}

/// Prints what is measured, and the header of the table.
pub(crate) fn print_header(options: &Options) -> Result<()> {
    let Options { contacts, tenants, connections, seconds, rounds, .. } = options;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut out = io::stdout().lock();
    writeln!(out, "{contacts} contacts of {tenants} tenants")?;
    writeln!(out, "{connections} connections; medians of {rounds} measuring rounds of {seconds} s; {cores} cores\n")?;
    writeln!(
        out,
        "{:<16} {:<18} {:>9} {:>6} {:>8} {:>8} {:>7} {:>5}",
        "", "", "per s", "ratio", "p50 µs", "p99 µs", "CPU µs", "MB"
    )?;
    Ok(out.flush()?)
}

/// Prints the medians of each contender.
pub(crate) fn print_rows(rows: &[Row<'_>]) -> Result<()> {
    let mut out = io::stdout().lock();
    for Row { subject, contender, rounds, ratio } in rows {
        let middle = |of: fn(&Sample) -> f64| median(rounds.iter().map(of));
        let ratio = match ratio {
            Ratio::Baseline => "1".to_owned(),
            Ratio::None => String::new(),
            Ratio::To(others) => {
                let each = rounds.iter().zip(*others).map(|(round, other)| round.rate() / other.rate());
                format!("{:.3}", median(each))
            }
        };
        let cpu = middle(Sample::cpu_each);
        writeln!(
            out,
            "{subject:<16} {contender:<18} {:>9.0} {ratio:>6} {:>8} {:>8} {cpu:>7.1} {:>5}",
            middle(Sample::rate),
            figure(middle(|sample| f64::from(sample.p50))),
            figure(middle(|sample| f64::from(sample.p99))),
            figure(middle(|sample| sample.memory as f64 / 1e6)),
        )?;
    }
    Ok(out.flush()?)
}

/// Formats a whole number; empty if nothing was measured.
fn figure(figure: f64) -> String {
    if figure == 0.0 { String::new() } else { format!("{figure:.0}") }
}

/// Prints a line outside the table.
pub(crate) fn print_line(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Prints the error that ended the run.
pub(crate) fn print_error(error: &dyn Display) {
    let _ = writeln!(io::stderr(), "svc-benches: {error}");
}
