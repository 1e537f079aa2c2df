//! Writes a recorded transaction as a pgbench script: the same statements with the same parameters, except for the
//! values that must differ between transactions.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::database::CONTACT_ID;
use super::recording::Statement;
use crate::error::Result;

/// What is known about the data of the recorded transaction.
pub(super) struct Dataset {
    pub(super) tenants: u32,
    pub(super) contacts: u32,
    /// The tenant of the recorded request.
    pub(super) tenant: Uuid,
    pub(super) subscription: Uuid,
    /// Whether unknown ids are those of new rows.
    pub(super) creates: bool,
}

/// A script and the values of its variables, except `n`, the first number of new rows.
#[derive(Default)]
pub(super) struct Script {
    pub(super) text: String,
    pub(super) variables: Vec<(String, String)>,
}

/// Each client chooses a tenant at its start, and keeps what it reads in variables.
const BEGIN: &str = "\
\\if :ready
\\else
\\set number :client_id % :tenants
SELECT k.key_hash AS key, k.tenant_id AS tenant, s.id AS subscription FROM api_keys k \
JOIN subscriptions s ON s.tenant_id = k.tenant_id ORDER BY k.tenant_id OFFSET :number LIMIT 1 \\gset
\\set ready 1
\\endif
";
/// Each client counts its new rows, so that their ids increase like those of the store.
const COUNT: &str = "\\set n :n + 1\n\\set r random(0, 999999999999999)\n";
/// The beginning of the statement that reads the clock of a tenant. A change happens a microsecond later.
const CLOCK: &str = "SELECT clock FROM tenants";

/// Writes the script. `transaction` decides whether it contains BEGIN and COMMIT.
pub(super) fn write(recorded: &[Statement], dataset: &Dataset, transaction: bool) -> Result<Script> {
    let mut script = Script { text: BEGIN.to_owned(), ..Script::default() };
    let share = dataset.contacts / dataset.tenants;
    script.text.push_str(&match dataset.creates {
        true => COUNT.to_owned(),
        false => format!("\\set n random(0, {}) * :tenants + :number\n", share - 1),
    });
    let mut names = Names { dataset, script: &mut script, ids: BTreeMap::new(), has_clock: false };
    let mut lines = String::new();
    for Statement { sql, values } in recorded {
        if values.is_empty() && !transaction && (sql.starts_with("BEGIN") || sql == "COMMIT") {
            continue;
        }
        let mut line = sql.clone();
        // From the last parameter to the first, because $1 is a prefix of $12.
        for (index, value) in values.iter().enumerate().rev() {
            line = line.replace(&format!("${}", index + 1), &names.name(value.as_deref())?);
        }
        let returns_clock = sql.starts_with(CLOCK);
        names.has_clock |= returns_clock;
        lines.push_str(&line);
        lines.push_str(if returns_clock { " \\gset\n" } else { ";\n" });
    }
    script.text.push_str(&lines);
    for (name, value) in [("ready", 0), ("tenants", dataset.tenants)] {
        script.variables.push((name.to_owned(), value.to_string()));
    }
    Ok(script)
}

/// Replaces recorded values by variables.
struct Names<'a> {
    dataset: &'a Dataset,
    script: &'a mut Script,
    /// Ids of new rows, in the order of their first use.
    ids: BTreeMap<Uuid, usize>,
    has_clock: bool,
}

impl Names<'_> {
    fn name(&mut self, value: Option<&str>) -> Result<String> {
        let Some(value) = value else { return Ok("NULL".to_owned()) };
        // A hash of 32 bytes is that of the API key.
        if value.starts_with("\\x") && value.len() == 66 {
            return Ok(":key".to_owned());
        }
        if let Ok(id) = Uuid::try_parse(value) {
            return Ok(self.id(id));
        }
        if value.ends_with("@example.com") {
            return Ok("(lpad(:r, 16, 'e') || '@example.com')".to_owned());
        }
        if is_time(value) || is_clock(value) {
            return match self.has_clock {
                true if is_clock(value) => Ok("(:clock::bigint + 1)".to_owned()),
                true => Ok("to_timestamp((:clock::bigint + 1) / 1e6)".to_owned()),
                false => Err("a timestamp is written before the clock was read".into()),
            };
        }
        // A parameter here too, with the same value each time.
        let name = format!("p{}", self.script.variables.len() + 1);
        self.script.variables.push((name.clone(), value.to_owned()));
        Ok(format!(":{name}"))
    }

    fn id(&mut self, id: Uuid) -> String {
        match id {
            id if id == self.dataset.tenant => ":tenant".to_owned(),
            id if id == self.dataset.subscription => ":subscription".to_owned(),
            _ if !self.dataset.creates => CONTACT_ID.to_owned(),
            id => {
                let next = self.ids.len();
                let number = *self.ids.entry(id).or_insert(next);
                format!("('01a' || lpad(:n, 9, '0') || '7{number:03}8' || lpad(:r, 15, '0'))::uuid")
            }
        }
    }
}

/// Returns whether a value looks like `2026-03-14 15:09:26.535897+00`.
fn is_time(value: &str) -> bool {
    let bytes = value.as_bytes();
    let has = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    has(4, b'-') && has(7, b'-') && has(10, b' ') && has(13, b':') && has(16, b':')
}

/// Returns whether a value looks like the microseconds since 1970 of a time in this century.
fn is_clock(value: &str) -> bool {
    value.len() == 16 && value.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(sql: &str, values: &[Option<&str>]) -> Statement {
        Statement { sql: sql.to_owned(), values: values.iter().map(|value| value.map(str::to_owned)).collect() }
    }

    #[test]
    fn values_become_variables() {
        let (tenant, new) = (Uuid::from_u128(1), Uuid::from_u128(3));
        let dataset = Dataset { tenants: 2, contacts: 10, tenant, subscription: Uuid::from_u128(2), creates: true };
        let (tenant, new) = (tenant.to_string(), new.to_string());
        let recorded = [
            statement("BEGIN", &[]),
            statement("SELECT clock FROM tenants WHERE id = $1 FOR NO KEY UPDATE", &[Some(&tenant)]),
            statement("INSERT ($1, $2, $3, $4)", &[Some(&new), Some("2026-03-14 15:09:26.5+00"), None, Some("17")]),
            statement("UPDATE t SET clock = $1 WHERE id = $2", &[Some("1773500966500000"), Some(&tenant)]),
            statement("COMMIT", &[]),
        ];
        let script = write(&recorded, &dataset, true).unwrap();
        let (_, lines) = script.text.split_once("BEGIN;\n").unwrap();
        assert_eq!(
            lines,
            "SELECT clock FROM tenants WHERE id = :tenant FOR NO KEY UPDATE \\gset\n\
             INSERT (('01a' || lpad(:n, 9, '0') || '70008' || lpad(:r, 15, '0'))::uuid, \
             to_timestamp((:clock::bigint + 1) / 1e6), NULL, :p1);\n\
             UPDATE t SET clock = (:clock::bigint + 1) WHERE id = :tenant;\nCOMMIT;\n"
        );
        assert_eq!(script.variables[0], ("p1".to_owned(), "17".to_owned()));
        assert!(write(&recorded[2..], &dataset, true).is_err(), "the clock was not read before");
        assert!(!write(&recorded, &dataset, false).unwrap().text.contains("COMMIT"));
    }
}
