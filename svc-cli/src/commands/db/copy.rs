//! `svc db copy`. Shows a progress bar for each table if stderr is a terminal.

use indicatif::ProgressBar;
use serde_json::{Value, json};
use svc_store::{Comparison, CopyReport, Phase, Progress};

use crate::exit::{Exit, Failure};
use crate::output::{Outcome, Table, progress_bar, verdict};

pub(super) async fn run(from: &str, to: &str, resume: bool) -> Result<Outcome, Failure> {
    let mut bar = Bar::new();
    let copied = svc_store::copy(from, to, resume, &mut |progress| bar.show(progress)).await;
    bar.clear();
    let report = copied?;
    let differ: Vec<&str> = report.tables.iter().filter(|table| !table.is_equal()).map(|table| table.table).collect();
    let failure = (!differ.is_empty()).then(|| {
        let reason = format!(
            "The databases differ in {}: one of them was changed during the copy. Stop the servers and copy into an \
             empty database.",
            differ.join(", ")
        );
        Failure::new(Exit::Failed, reason)
    });
    Ok(Outcome::new(&view(&report), text(&report))?.with_failure(failure))
}

fn text(report: &CopyReport) -> String {
    let table = Table::new(["TABLE", "ROWS", "CHECKSUM", "COMPARED"], &report.tables, |table| {
        let (rows, checksum) = (table.source.rows.to_string(), table.source.checksum());
        [table.table.to_owned(), rows, checksum, compared(table)]
    });
    let rows = match report.copied {
        1 => "1 row".to_owned(),
        many => format!("{many} rows"),
    };
    format!("{}\nCopied {rows}.\n", table.to_text())
}

/// Formats the result of the comparison of one table.
fn compared(table: &Comparison) -> String {
    if table.is_equal() {
        return verdict(true, "equal");
    }
    verdict(false, &format!("differs: {} rows, {}", table.target.rows, table.target.checksum()))
}

fn view(report: &CopyReport) -> Value {
    let tables: Vec<Value> = report
        .tables
        .iter()
        .map(|table| {
            json!({
                "table": table.table,
                "equal": table.is_equal(),
                "source": { "rows": table.source.rows, "checksum": table.source.checksum() },
                "target": { "rows": table.target.rows, "checksum": table.target.checksum() },
            })
        })
        .collect();
    json!({ "copied": report.copied, "equal": report.is_equal(), "tables": tables })
}

/// A progress bar that starts over with each table.
struct Bar {
    bar: ProgressBar,
    shown: Option<(Phase, &'static str)>,
}

impl Bar {
    fn new() -> Self {
        Self { bar: progress_bar(None, "{msg:28} {bar:40} {human_pos}/{human_len} rows"), shown: None }
    }

    fn show(&mut self, progress: Progress) {
        if self.shown != Some((progress.phase, progress.table)) {
            self.shown = Some((progress.phase, progress.table));
            let word = match progress.phase {
                Phase::Copy => "copy",
                Phase::Compare => "compare",
            };
            self.bar.set_message(format!("{word} {}", progress.table));
            self.bar.set_length(progress.total);
        }
        self.bar.set_position(progress.done);
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
