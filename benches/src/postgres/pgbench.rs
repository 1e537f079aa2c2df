//! Runs pgbench and parses its output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Instant;

use super::database::Database;
use super::script::Script;
use crate::error::Result;
use crate::sample::Sample;

/// Threads, as many as the load generator has.
const THREADS: &str = "-j2";
/// The time until the first progress report, in which pgbench connects and prepares. Processor time is measured from
/// that report on.
const WARM_UP: u64 = 1;
/// Plans do not depend on the values, as on the store's connections.
const PLANS: &str = "-c plan_cache_mode=force_generic_plan";

/// Measures one round. The processor time is that of PostgreSQL.
pub(super) fn round(
    database: &Database,
    script: &Script,
    first: u64,
    connections: u32,
    seconds: u64,
) -> Result<Sample> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(script.text.as_bytes())?;
    let mut pgbench = database.program("pgbench");
    pgbench.args(["-n", "-M", "prepared", THREADS, "-P1", "-c"]).arg(connections.to_string());
    pgbench.arg(format!("-T{}", seconds + WARM_UP)).arg("-f").arg(file.path());
    for (name, value) in &script.variables {
        pgbench.arg("-D").arg(format!("{name}={value}"));
    }
    // Each round creates rows with higher numbers than the one before.
    pgbench.arg("-D").arg(format!("n={first}"));
    pgbench
        .arg(&database.url)
        .env("PGOPTIONS", PLANS)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pgbench.spawn()?;
    let reports = BufReader::new(child.stderr.take().ok_or("pgbench has no stderr")?);
    let (mut started, mut ended, mut messages) = (None, None, String::new());
    for line in reports.lines() {
        let line = line?;
        if line.starts_with("progress: ") {
            let moment = Some((Instant::now(), database.cpu()?));
            *(if started.is_none() { &mut started } else { &mut ended }) = moment;
        } else {
            messages.push_str(&line);
            messages.push('\n');
        }
    }
    let done = child.wait_with_output()?;
    match (started, ended, rate(&String::from_utf8_lossy(&done.stdout))) {
        (Some((started, before)), Some((ended, after)), Some(rate)) if done.status.success() => {
            let elapsed = ended - started;
            let sample = Sample::new(Vec::new(), elapsed, after.saturating_sub(before), 0);
            Ok(Sample { count: (rate * elapsed.as_secs_f64()) as usize, ..sample })
        }
        _ => Err(format!("pgbench failed: {messages}").into()),
    }
}

/// Parses the last `tps = 7012.3 (…)`, which excludes the time to connect.
fn rate(summary: &str) -> Option<f64> {
    let line = summary.lines().rev().find_map(|line| line.strip_prefix("tps = "))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_parsed() {
        let summary = "latency average = 9.1 ms\ntps = 7012.3 (without initial connection time)\n";
        assert_eq!(rate(summary), Some(7012.3));
        assert_eq!(rate("pgbench (15.18)"), None);
    }
}
