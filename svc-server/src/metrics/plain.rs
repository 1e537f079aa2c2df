//! The text format 0.0.4 of Prometheus, made of OpenMetrics text.
//!
//! The samples are the same. The lines that describe a family differ: a counter is described by the name of its samples, with
//! `_total`, an info is a gauge, and there are no units and no end.

/// Returns the metrics of an OpenMetrics text in the text format 0.0.4.
pub(super) fn from_openmetrics(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // The text of a family comes before its type, which decides its name.
    let mut help = None;
    for line in text.lines() {
        let Some(described) = line.strip_prefix("# ") else {
            plain.extend([line, "\n"]);
            continue;
        };
        let mut words = described.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("HELP"), Some(_), Some(text)) => help = Some(text),
            (Some("TYPE"), Some(name), Some(kind)) => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    kind => ("", kind),
                };
                if let Some(help) = help.take() {
                    plain.push_str(&format!("# HELP {name}{suffix} {help}\n"));
                }
                plain.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
            }
            _ => {}
        }
    }
    plain
}
