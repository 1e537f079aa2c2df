//! The texts by which records are found, and how each database finds the texts that contain one.

use std::collections::HashSet;

use async_trait::async_trait;
use svc_core::find::{IndexedText, TITLE};
use svc_core::store::{SearchRepository, StoreResult};
use svc_core::values::{RecordKind, TenantId, Timestamp};
use uuid::Uuid;

use crate::accounts::tenants::store_clocks;
use crate::column::{CellError, Column as _, Param};
use crate::dialect::Dialect;
use crate::sql::{Cells, SqlTx};

const INDEXED_UNTIL: &str = "SELECT indexed_until FROM search_progress WHERE tenant_id = $1";
const SET_INDEXED_UNTIL: &str = "INSERT INTO search_progress (tenant_id, indexed_until) VALUES ($1, $2) \
     ON CONFLICT (tenant_id) DO UPDATE SET indexed_until = excluded.indexed_until";
const PUT: &str = "INSERT INTO search_texts (place, tenant_id, kind, id, text) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (tenant_id, kind, id) DO UPDATE SET text = excluded.text WHERE search_texts.text <> excluded.text";
const DELETE: &str = "DELETE FROM search_texts WHERE tenant_id = $1 AND kind = $2 AND id = $3";
const TO_INDEX: &str = "SELECT id FROM tenants LEFT JOIN search_progress ON tenant_id = id \
     WHERE id > $1 AND (indexed_until IS NULL OR indexed_until <> clock) ORDER BY id LIMIT $2";
const SET_BACK: &str = "UPDATE search_progress SET indexed_until = $1 WHERE tenant_id = $2 AND indexed_until > $3";

/// Accounts that share places share their last one.
const SQLITE_LAST_PLACE: &str = "SELECT max(place) FROM search_texts WHERE place BETWEEN $1 AND $2";
const POSTGRES_LAST_PLACE: &str = "SELECT max(place) FROM search_texts WHERE tenant_id = $1";
/// Reads the index of trigrams from the newest place of the account on, so it ends as soon as it has found enough. A plain
/// join would ask the index for each text of the account.
const SQLITE: &str = "SELECT kind, id FROM search_index CROSS JOIN search_texts ON place = search_index.rowid \
     WHERE search_index MATCH $1 AND search_index.rowid BETWEEN $2 AND $3 AND tenant_id = $4 \
     AND (kind = $5 OR $5 IS NULL) AND instr(search_texts.text, $6) > 0 ORDER BY search_index.rowid DESC LIMIT $7";
/// How many characters a trigram has.
const TRIGRAM: usize = 3;
/// How many trigrams the index is asked for at most. Each costs a look into it for each text that has the others.
const MAX_TRIGRAMS: usize = 16;
/// The longest text of which PostgreSQL's index of trigrams is asked for all characters.
const PHRASE: usize = 16;
/// How many parts of a longer text it is asked for, and how many characters each has.
const PARTS: usize = 4;
const PART: usize = 5;
/// How many characters of the end of a number it is asked for: numbers of a country or a company begin alike.
const END_OF_NUMBER: usize = 5;
/// The newest texts, among which those are found that many records have.
const POSTGRES_NEWEST: &str = "SELECT kind, id FROM \
     (SELECT kind, id, text FROM search_texts WHERE tenant_id = $1 ORDER BY place DESC LIMIT 2000) AS newest \
     WHERE text LIKE $2 AND (kind = $3 OR $3 IS NULL) LIMIT $4";
/// All texts, by the index of trigrams if there is one. Texts that many records have were found among the newest.
const POSTGRES_ALL: &str = "WITH found AS MATERIALIZED \
     (SELECT kind, id, place FROM search_texts WHERE tenant_id = $1 AND text LIKE $2 AND strpos(text, $5) > 0) \
     SELECT kind, id FROM found WHERE kind = $3 OR $3 IS NULL ORDER BY place DESC LIMIT $4";
/// The texts that begin with the line of a title.
const POSTGRES_TITLED: &str = "SELECT kind, id FROM search_texts \
     WHERE tenant_id = $1 AND left(split_part(text, E'\\n', 1), 200) = $2 AND (kind = $3 OR $3 IS NULL) \
     AND strpos(text, $5) = 1 ORDER BY place DESC LIMIT $4";
/// How many characters of the line of a title are in its index.
const INDEXED_TITLE: usize = 200;

/// The index of trigrams can only be read as a bitmap, which the settings of connections avoid for lists. A statement keeps the
/// plan of its first run.
const POSTGRES_BITMAPS: &str = "SELECT current_setting('enable_bitmapscan')";
const POSTGRES_SET_BITMAPS: &str = "SELECT set_config('enable_bitmapscan', $1, true)";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![INDEXED_UNTIL, SET_INDEXED_UNTIL, PUT, DELETE, TO_INDEX, SET_BACK]
}

/// Returns the statements that only this database gets.
#[cfg(test)]
pub(crate) fn own_statements(dialect: Dialect) -> Vec<&'static str> {
    match dialect {
        Dialect::Sqlite => vec![SQLITE_LAST_PLACE, SQLITE],
        Dialect::Postgres => {
            vec![
                POSTGRES_LAST_PLACE,
                POSTGRES_NEWEST,
                POSTGRES_ALL,
                POSTGRES_TITLED,
                POSTGRES_BITMAPS,
                POSTGRES_SET_BITMAPS,
            ]
        }
    }
}

/// Returns the first and the last place of the texts of an account. The few accounts whose ids end alike share them.
fn places(tenant: TenantId) -> (i64, i64) {
    const BITS: u32 = 32;
    let number = i64::from(tenant.0.as_u128() as u32 >> 1);
    (number << BITS, (number << BITS) | i64::from(u32::MAX))
}

/// Returns the query that finds the texts which have the trigrams of a text, in any order: those from all over a long text. Each match
/// is compared with the whole text.
///
/// The index goes from one text to the next that has all of them, so the rarest one decides how many it looks at. It knows no
/// order of the trigrams in a text: to compare positions took seconds where a text has one trigram a thousand times.
fn trigrams_query(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut trigrams: Vec<String> = chars.windows(TRIGRAM).map(|trigram| trigram.iter().collect()).collect();
    let mut seen = HashSet::new();
    trigrams.retain(|trigram| seen.insert(trigram.clone()));
    let step = trigrams.len().div_ceil(MAX_TRIGRAMS).max(1);
    let quoted: Vec<String> =
        trigrams.iter().rev().step_by(step).map(|trigram| format!("\"{}\"", trigram.replace('"', "\"\""))).collect();
    quoted.join(" ")
}

/// Returns the parts of a text, in their order, that PostgreSQL's index of trigrams is asked for: of a long text, those from all
/// over it, as many texts may begin alike. Each match is compared with the whole text.
fn asked_of_index(text: &str) -> Vec<String> {
    let is_number = text.chars().all(|char| char.is_ascii_digit() || " +-()./".contains(char));
    let chars: Vec<char> = text.chars().collect();
    if is_number {
        return vec![chars[chars.len().saturating_sub(END_OF_NUMBER)..].iter().collect()];
    }
    if chars.len() <= PHRASE {
        return vec![text.to_owned()];
    }
    let last = PARTS.min(chars.len() / PART) - 1;
    let starts = (0..=last).map(|part| part * (chars.len() - PART) / last);
    starts.map(|start| chars[start..start + PART].iter().collect()).collect()
}

/// Returns the pattern of texts that have these parts in this order.
fn pattern(parts: &[impl AsRef<str>]) -> Param<'static> {
    let escape = |part: &str| part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    let escaped: Vec<String> = parts.iter().map(|part| escape(part.as_ref())).collect();
    Param::Text(format!("%{}%", escaped.join("%")).into())
}

#[async_trait]
impl SearchRepository for SqlTx<'_> {
    async fn indexed_until(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>> {
        self.fetch_one(INDEXED_UNTIL, &[tenant.param()], |cells| cells.take("search_progress", "indexed_until")).await
    }

    async fn store_texts(&mut self, tenant: TenantId, texts: &[IndexedText], until: Timestamp) -> StoreResult<()> {
        let (first, last) = places(tenant);
        let (sql, params) = match self.dialect {
            Dialect::Sqlite => (SQLITE_LAST_PLACE, vec![first.param(), last.param()]),
            Dialect::Postgres => (POSTGRES_LAST_PLACE, vec![tenant.param()]),
        };
        let taken: Option<Option<i64>> =
            self.fetch_one(sql, &params, |cells| cells.take("search_texts", "place")).await?;
        let next = taken.flatten().map_or(first, |place| place + 1);
        for (place, IndexedText { kind, id, text, .. }) in (next..).zip(texts) {
            let key = [tenant.param(), kind.param(), id.param()];
            if text.is_empty() {
                self.pipeline(DELETE, &key).await?;
            } else {
                let [tenant, kind, id] = key;
                self.pipeline(PUT, &[place.param(), tenant, kind, id, text.param()]).await?;
            }
        }
        self.pipeline(SET_INDEXED_UNTIL, &[tenant.param(), until.param()]).await
    }

    async fn records_with_text(
        &mut self,
        tenant: TenantId,
        kind: Option<RecordKind>,
        text: &str,
        limit: u32,
    ) -> StoreResult<Vec<(RecordKind, Uuid)>> {
        let (tenant_id, kind, limit_param) = (tenant.param(), kind.param(), limit.param());
        if self.dialect == Dialect::Sqlite {
            let query = trigrams_query(text);
            let (first, last) = places(tenant);
            let whole = Param::Text(text.into());
            let params = [Param::Text(query.into()), first.param(), last.param(), tenant_id, kind, whole, limit_param];
            return self.fetch(SQLITE, &params, read).await;
        }
        let whole = Param::Text(text.into());
        if text.starts_with(TITLE) {
            let line: String = text.trim_end_matches('\n').chars().take(INDEXED_TITLE).collect();
            let params = [tenant_id, Param::Text(line.into()), kind, limit_param, whole];
            return self.fetch(POSTGRES_TITLED, &params, read).await;
        }
        let params = [tenant_id.clone(), pattern(&[text]), kind.clone(), limit_param.clone()];
        let newest = self.fetch(POSTGRES_NEWEST, &params, read).await?;
        if newest.len() >= limit as usize {
            return Ok(newest);
        }
        let params = [tenant_id, pattern(&asked_of_index(text)), kind, limit_param, whole];
        let before = self.fetch_one(POSTGRES_BITMAPS, &[], read_setting).await?.unwrap_or_default();
        self.set_bitmaps("on").await?;
        let all = self.fetch(POSTGRES_ALL, &params, read).await?;
        self.set_bitmaps(&before).await?;
        Ok(all)
    }

    async fn tenants_to_index(&mut self, after: Option<TenantId>, limit: u32) -> StoreResult<Vec<TenantId>> {
        if let Some(locked) = &mut self.locked {
            store_clocks(locked, self.sql).await?;
        }
        let after = after.unwrap_or(TenantId(Uuid::nil()));
        self.fetch(TO_INDEX, &[after.param(), limit.param()], |cells| cells.take("tenants", "id")).await
    }
}

impl SqlTx<'_> {
    /// Sets the time until which the index has all changes of a tenant back to `at`, if it is later.
    pub(crate) async fn set_back_index(&mut self, tenant: TenantId, at: Timestamp) -> StoreResult<()> {
        self.pipeline(SET_BACK, &[at.param(), tenant.param(), at.param()]).await
    }

    /// Sets whether the rest of the transaction may read indexes as bitmaps.
    async fn set_bitmaps(&mut self, value: &str) -> StoreResult<()> {
        self.fetch_one(POSTGRES_SET_BITMAPS, &[Param::Text(value.into())], read_setting).await.map(drop)
    }
}

fn read_setting(cells: &mut Cells<'_>) -> Result<String, CellError> {
    cells.take("settings", "enable_bitmapscan")
}

fn read(cells: &mut Cells<'_>) -> Result<(RecordKind, Uuid), CellError> {
    Ok((cells.take("search_texts", "kind")?, cells.take("search_texts", "id")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_asked_for_parts_from_all_over_a_text() {
        for (text, want) in [
            ("harbour plumbing", &["harbour plumbing"][..]),
            ("harbour plumbing!", &["harbo", "r plu", "bing!"]),
            ("harbour plumbing and gas", &["harbo", "r plu", "bing ", "d gas"]),
            ("名前の長い会社の名前の長い会社の支店", &["名前の長い", "社の名前の", "会社の支店"]),
            ("+61 (0)412 345 678", &["5 678"]),
            ("12", &["12"]),
        ] {
            assert_eq!(asked_of_index(text), want, "{text}");
        }
        for length in PHRASE + 1..300 {
            let text: String = (0..length).map(|at| char::from_u32(0x4e00 + at as u32).unwrap()).collect();
            let parts = asked_of_index(&text);
            assert!(text.starts_with(&parts[0]) && text.ends_with(&parts[parts.len() - 1]));
            let mut rest = text.as_str();
            for part in &parts {
                rest = rest.split_once(part.as_str()).expect("the parts are apart and in their order").1;
            }
        }
    }
}
