//! `svc db check`.

use serde_json::{Value, json};
use svc_store::{CheckReport, Finding};

use crate::exit::{Exit, Failure};
use crate::output::{Outcome, Table, or_dash, plain};

pub(super) async fn run(url: &str) -> Result<Outcome, Failure> {
    let report = svc_store::check(url).await?;
    let views: Vec<Value> = report.findings.iter().map(view).collect();
    let failure = match report.findings.len() {
        0 => None,
        1 => Some(Failure::new(Exit::Failed, "The database has 1 problem.")),
        many => Some(Failure::new(Exit::Failed, format!("The database has {many} problems."))),
    };
    Ok(Outcome::new(&views, text(&report))?.with_failure(failure))
}

fn text(report: &CheckReport) -> String {
    if report.findings.is_empty() {
        return format!("The database has no problems. {} rows were checked.", report.rows);
    }
    let table = Table::new(["TABLE", "ID", "PROBLEM"], &report.findings, |finding| {
        [finding.table.to_owned(), plain(&or_dash(finding.id.as_ref())), plain(&finding.problem)]
    });
    table.to_text()
}

fn view(finding: &Finding) -> Value {
    json!({ "table": finding.table, "id": finding.id, "problem": finding.problem })
}
