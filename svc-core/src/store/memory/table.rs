//! A table that can undo the changes of a failed transaction.

use std::collections::BTreeMap;
use std::ops::Deref;

/// Rows by key. It can be read like a map, and each change records the row that was there before.
#[derive(Clone)]
pub(super) struct Table<K, V> {
    rows: BTreeMap<K, V>,
    before: Vec<(K, Option<V>)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), before: Vec::new() }
    }
}

impl<K, V> Deref for Table<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &BTreeMap<K, V> {
        &self.rows
    }
}

impl<K: Ord + Clone, V: Clone> Table<K, V> {
    /// Stores a row under a key, in place of any other.
    pub(super) fn put(&mut self, key: K, row: V) {
        let before = self.rows.insert(key.clone(), row);
        self.before.push((key, before));
    }

    /// Stores a row under a key that has none. `false` when it has one.
    pub(super) fn add(&mut self, key: K, row: V) -> bool {
        let free = !self.rows.contains_key(&key);
        if free {
            self.put(key, row);
        }
        free
    }

    /// Changes the row under a key. `false` when there is none.
    pub(super) fn change(&mut self, key: &K, change: impl FnOnce(&mut V)) -> bool {
        let Some(row) = self.rows.get_mut(key) else { return false };
        self.before.push((key.clone(), Some(row.clone())));
        change(row);
        true
    }

    /// Removes the row under a key.
    pub(super) fn take(&mut self, key: &K) {
        if let Some(before) = self.rows.remove(key) {
            self.before.push((key.clone(), Some(before)));
        }
    }

    /// Removes the first `limit` rows, in the order of their keys, that are `unwanted`. Returns how many.
    pub(super) fn take_first(&mut self, limit: u32, unwanted: impl Fn(&K, &V) -> bool) -> u64 {
        let keys = self.rows.iter().filter(|(key, row)| unwanted(key, row)).map(|(key, _)| key.clone());
        let keys: Vec<K> = keys.take(limit as usize).collect();
        keys.iter().for_each(|key| self.take(key));
        keys.len() as u64
    }

    pub(super) fn commit(&mut self) {
        self.before.clear();
    }

    pub(super) fn roll_back(&mut self) {
        while let Some((key, before)) = self.before.pop() {
            match before {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
    }
}
