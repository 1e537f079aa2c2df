//! A progress bar, shown if stderr is a terminal.

use std::time::Duration;

use indicatif::ProgressBar;

use crate::output::progress_bar;

/// The progress of an import, measured in bytes of its file.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Creates a bar for a file of this size.
    pub(super) fn new(size: u64) -> Self {
        Self(progress_bar(Some(size), "{bar:40} {percent:>3} %  {msg}, {eta} left"))
    }

    pub(super) fn show(&self, rows: u64, bytes: u64) {
        let elapsed = self.0.elapsed().max(Duration::from_millis(1)).as_millis();
        let rate = u128::from(rows) * 1000 / elapsed;
        self.0.set_message(format!("{rows} rows, {rate}/s"));
        self.0.set_position(bytes);
    }

    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
