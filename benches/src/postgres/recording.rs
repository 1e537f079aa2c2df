//! Reads the statements of a request from PostgreSQL's log, so that the benchmark's statements cannot differ from the
//! store's.

use std::collections::HashMap;

use crate::error::Result;

/// A statement as it was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) sql: String,
    /// The values of `$1`, `$2`, …; `None` for NULL.
    pub(super) values: Vec<Option<String>>,
}

/// Returns the last transaction, from BEGIN to COMMIT, that names a table in a log written with `log_statement = 'all'`. The
/// server has transactions of its own as well, such as for the last use of a key.
pub(super) fn last_transaction(log: &str, table: &str) -> Result<Vec<Statement>> {
    let mut open: HashMap<&str, Vec<Statement>> = HashMap::new();
    let mut last = None;
    for line in log.lines() {
        // A line is "2026-03-14 15:09:26.535 UTC [123] LOG:  execute s1: SELECT …".
        let Some((head, rest)) = line.split_once("] ") else { continue };
        let Some((_, process)) = head.rsplit_once('[') else { continue };
        let statements = open.entry(process).or_default();
        if let Some(sql) = rest.strip_prefix("LOG:  statement: ") {
            match sql.split(' ').next() {
                Some("BEGIN") => *statements = vec![without_values(sql)],
                Some("COMMIT") if !statements.is_empty() => {
                    statements.push(without_values(sql));
                    let transaction = std::mem::take(statements);
                    if transaction.iter().any(|statement| statement.sql.contains(table)) {
                        last = Some(transaction);
                    }
                }
                _ => {}
            }
        } else if let Some((_, sql)) = rest.strip_prefix("LOG:  execute ").and_then(|rest| rest.split_once(": ")) {
            statements.push(without_values(sql));
        } else if let Some(values) = rest.strip_prefix("DETAIL:  parameters: ") {
            let statement = statements.last_mut().ok_or("values without a statement")?;
            statement.values = parse(values)?;
        }
    }
    last.ok_or_else(|| "the log contains no transaction".into())
}

fn without_values(sql: &str) -> Statement {
    Statement { sql: sql.to_owned(), values: Vec::new() }
}

/// Parses `$1 = 'text', $2 = NULL`; a quote within a text is doubled.
fn parse(mut list: &str) -> Result<Vec<Option<String>>> {
    let mut values = Vec::new();
    while !list.is_empty() {
        let (_, rest) = list.split_once(" = ").ok_or("a parameter without a value")?;
        let (value, rest) = match rest.strip_prefix('\'') {
            None => (None, rest.strip_prefix("NULL").ok_or("a parameter that is neither text nor NULL")?),
            Some(rest) => {
                let (text, rest) = quoted(rest).ok_or("a parameter without an end")?;
                (Some(text), rest)
            }
        };
        values.push(value);
        list = rest.trim_start_matches(", ");
    }
    Ok(values)
}

/// Returns the text up to its closing quote, and the rest of the line.
fn quoted(rest: &str) -> Option<(String, &str)> {
    let (mut text, mut rest) = (String::new(), rest);
    loop {
        let (part, after) = rest.split_once('\'')?;
        text.push_str(part);
        match after.strip_prefix('\'') {
            Some(more) => {
                text.push('\'');
                rest = more;
            }
            None => return Some((text, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_transaction_is_parsed() {
        let log = "\
2026-03-14 15:09:26.535 UTC [1] LOG:  statement: BEGIN READ ONLY
2026-03-14 15:09:26.535 UTC [1] LOG:  execute s1: SELECT 1
2026-03-14 15:09:26.535 UTC [2] LOG:  statement: BEGIN READ WRITE
2026-03-14 15:09:26.535 UTC [1] LOG:  statement: COMMIT
2026-03-14 15:09:26.535 UTC [2] LOG:  execute s7: INSERT INTO x VALUES ($1, $2, $3)
2026-03-14 15:09:26.535 UTC [2] DETAIL:  parameters: $1 = 'it''s, $2 = ''', $2 = NULL, $3 = ''
2026-03-14 15:09:26.535 UTC [3] LOG:  statement: NOTIFY svc_deliveries_due, 'x'
2026-03-14 15:09:26.535 UTC [2] LOG:  statement: COMMIT
2026-03-14 15:09:26.536 UTC [4] LOG:  statement: BEGIN
2026-03-14 15:09:26.536 UTC [4] LOG:  execute s2: UPDATE y SET z = 1
2026-03-14 15:09:26.536 UTC [4] LOG:  statement: COMMIT
";
        let values = vec![Some("it's, $2 = '".to_owned()), None, Some(String::new())];
        let insert = Statement { sql: "INSERT INTO x VALUES ($1, $2, $3)".to_owned(), values };
        assert_eq!(
            last_transaction(log, " x ").unwrap(),
            [without_values("BEGIN READ WRITE"), insert, without_values("COMMIT")]
        );
        assert!(last_transaction("nothing", "").is_err());
        assert!(parse("$1 = 'x").is_err() && parse("$1 = x").is_err());
    }
}
