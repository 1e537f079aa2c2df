//! Runs pgbench and reads its progress.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Duration;

use super::database::Database;
use super::script::Script;
use crate::Result;
use crate::sample::Sample;

/// Threads, as many as our load generator has.
const THREADS: &str = "-j2";
/// Seconds before and after what counts: connecting and preparing, and the last report, which pgbench owes us.
const AROUND: u64 = 2;
/// PostgreSQL's plans do not depend on the values, as on the store's connections.
const PLANS: &str = "-c plan_cache_mode=force_generic_plan";

/// One round. The processor time is that of PostgreSQL.
pub(super) fn round(
    database: &Database,
    url: &str,
    script: &Script,
    first: u64,
    connections: u32,
    seconds: u64,
) -> Result<Sample> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(script.text.as_bytes())?;
    let mut pgbench = database.program("pgbench");
    pgbench.args(["-n", "-M", "prepared", THREADS, "-P1", "-c"]).arg(connections.to_string());
    pgbench.arg(format!("-T{}", seconds + AROUND)).arg("-f").arg(file.path());
    for (name, value) in &script.variables {
        pgbench.arg("-D").arg(format!("{name}={value}"));
    }
    // New rows of each round come behind those of the round before.
    pgbench.arg("-D").arg(format!("n={first}"));
    pgbench.arg(url).env("PGOPTIONS", PLANS).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = pgbench.spawn()?;
    let reports = BufReader::new(child.stderr.take().ok_or("a child without a stderr")?);
    let (mut begun, mut ended, mut last, mut said) = (None, None, 0.0, String::new());
    let mut count = 0.0;
    for line in reports.lines() {
        let line = line?;
        let Some((at, rate)) = progress(&line) else {
            said.push_str(&line);
            said.push('\n');
            continue;
        };
        match begun {
            None => begun = Some((at, database.cpu()?)),
            Some((start, _)) if ended.is_none() => {
                count += rate * (at - last);
                // Reports come a few milliseconds late now and then.
                if at - start > seconds as f64 - 0.5 {
                    ended = Some((at, database.cpu()?));
                }
            }
            Some(_) => {}
        }
        last = at;
    }
    let done = child.wait()?;
    match (begun, ended) {
        (Some((start, cpu)), Some((end, after))) if done.success() => {
            let elapsed = Duration::from_secs_f64(end - start);
            let sample = Sample::new(Vec::new(), elapsed, after.saturating_sub(cpu), 0);
            Ok(Sample { count: count.round() as usize, ..sample })
        }
        _ => Err(format!("pgbench failed: {said}").into()),
    }
}

/// The time and the rate in `progress: 1.0 s, 7012.3 tps, lat …`.
fn progress(line: &str) -> Option<(f64, f64)> {
    let (at, rest) = line.strip_prefix("progress: ")?.split_once(" s, ")?;
    let (rate, _) = rest.split_once(" tps")?;
    Some((at.parse().ok()?, rate.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read() {
        let line = "progress: 2.0 s, 7012.3 tps, lat 9.1 ms stddev 2.1, 0 failed";
        assert_eq!(progress(line), Some((2.0, 7012.3)));
        assert_eq!(progress("pgbench (15.18)"), None);
    }
}
