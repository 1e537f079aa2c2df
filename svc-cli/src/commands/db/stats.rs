//! `svc db stats`.

use serde_json::{Map, Value, json};
use svc_store::DbStats;

use crate::exit::Failure;
use crate::output::{Outcome, Table, fields};
use crate::times::moment_or_dash;

pub(super) async fn run(url: &str) -> Result<Outcome, Failure> {
    let stats = svc_store::stats(url).await?;
    Outcome::new(&view(&stats), text(&stats))
}

fn text(stats: &DbStats) -> String {
    let statuses: Vec<String> = stats.deliveries.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let about = fields([
        ("database", stats.kind.to_owned()),
        ("schema", stats.schema.clone()),
        ("size", size(stats.bytes)),
        ("deliveries", if statuses.is_empty() { "none".to_owned() } else { statuses.join(", ") }),
        ("oldest pending", moment_or_dash(stats.oldest_pending)),
    ]);
    let table = Table::new(["TABLE", "ROWS"], &stats.tables, |(name, rows)| [(*name).to_owned(), rows.to_string()]);
    format!("{about}\n{}", table.to_text())
}

/// Formats a size in bytes with at most four digits where the units allow it.
fn size(bytes: u64) -> String {
    let mut units = ["KiB", "MiB", "GiB"].into_iter();
    let mut unit = "B";
    let mut amount = bytes;
    while amount >= 10_000
        && let Some(next) = units.next()
    {
        amount /= 1024;
        unit = next;
    }
    format!("{amount} {unit}")
}

fn view(stats: &DbStats) -> Value {
    let count = |counts: Vec<(String, u64)>| -> Map<String, Value> {
        counts.into_iter().map(|(name, rows)| (name, json!(rows))).collect()
    };
    json!({
        "database": stats.kind,
        "schema": stats.schema,
        "bytes": stats.bytes,
        "deliveries": count(stats.deliveries.clone()),
        "oldest_pending": stats.oldest_pending,
        "tables": count(stats.tables.iter().map(|(name, rows)| ((*name).to_owned(), *rows)).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_formatted_in_units() {
        assert_eq!(
            [0, 9999, 10_000, 1 << 30, 1 << 50].map(size),
            ["0 B", "9999 B", "9 KiB", "1024 MiB", "1048576 GiB"]
        );
    }
}
