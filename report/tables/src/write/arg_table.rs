//! The table `args` of a process.
//!
//! Within a row group, rows are grouped by key, in the order of their slices. The values of one key are similar, so they compress several times better.

use super::cells::{Cell, Coding, Column};
use super::table::Table;
use super::table_file::ROWS;
use crate::gather::entry::{ArgKey, ArgValue, Entry};
use crate::gather::texts::TextPair;
use parquet::errors::Result;
use std::collections::BTreeSet;
use std::path::PathBuf;

pub(crate) const COLUMNS: [Column; 7] = [
    Column::long("arg_set_id", Coding::Delta),
    Column::text("flat_key"),
    Column::text("key"),
    Column::text("value_type"),
    Column::long("int_value", Coding::Delta).or_null(),
    Column::text("string_value").or_null(),
    Column::double("real_value").or_null(),
];

/// Indices of columns.
const FLAT_KEY: usize = 1;
const KEY: usize = 2;
const KIND: usize = 3;

/// Size of texts from which on a row group is written.
const TEXT_BYTES: usize = 8 << 20;

#[derive(Clone, Copy, Debug)]
struct Row {
    key: u32,
    id: i64,
    /// Value of the arg. A text is a range of [`ArgTable::texts`].
    value: ArgValue<(usize, usize)>,
}

/// Collects args in the order of their slices. Its memory is reused for the next row group and the next process.
pub(crate) struct ArgTable<'a> {
    keys: &'a [TextPair],
    table: Table,
    rows: Vec<Row>,
    /// Keys that have no number in `keys`. Here, their numbers follow those of `keys`.
    inline_keys: Vec<TextPair>,
    inline_bytes: usize,
    texts: Vec<u8>,
}

impl<'a> ArgTable<'a> {
    /// Creates a table for args with these keys.
    pub(crate) fn new(keys: &'a [TextPair]) -> ArgTable<'a> {
        ArgTable {
            keys,
            table: Table::new(&COLUMNS).with_limits(usize::MAX, usize::MAX),
            rows: Vec::new(),
            inline_keys: Vec::new(),
            inline_bytes: 0,
            texts: Vec::new(),
        }
    }

    /// Begins the table of a process. Its file is created when there is an arg.
    pub(crate) fn begin(&mut self, path: PathBuf) {
        self.table.begin(path);
    }

    /// Adds the args of a slice. If both entries have an arg with the same key, the one in `later` is used.
    pub(crate) fn push(
        &mut self,
        id: i64,
        entry: &Entry<'_>,
        later: Option<&Entry<'_>>,
    ) -> Result<()> {
        if self.rows.len() >= ROWS || self.texts.len() + self.inline_bytes >= TEXT_BYTES {
            self.write()?;
        }
        let first = self.rows.len();
        entry.each_arg(|key, value| self.add(id, key, value));
        if let Some(later) = later {
            let middle = self.rows.len();
            later.each_arg(|key, value| self.add(id, key, value));
            self.remove_overridden(first, middle);
        }
        Ok(())
    }

    fn add(&mut self, id: i64, key: ArgKey, value: ArgValue<&[u8]>) {
        let key = match key {
            ArgKey::Number(number) => number,
            ArgKey::Inline(pair) => {
                self.inline_bytes += pair.bytes();
                let number = self.keys.len() + self.inline_keys.len();
                self.inline_keys.push(pair);
                u32::try_from(number).unwrap_or(u32::MAX)
            }
        };
        let value = value.with_text(|text| {
            let start = self.texts.len();
            self.texts.extend_from_slice(text);
            (start, self.texts.len())
        });
        self.rows.push(Row { key, id, value });
    }

    /// Removes the rows from `first` up to `middle` whose keys appear again after them.
    fn remove_overridden(&mut self, first: usize, middle: usize) {
        let mut rows = self.rows.split_off(first);
        let later = rows.split_off(middle - first);
        let text = |row: &Row| &pair(self.keys, &self.inline_keys, row.key as usize).1;
        let keys: BTreeSet<&[u8]> = later.iter().map(|row| text(row).data()).collect();
        rows.retain(|row| !keys.contains(text(row).data()));
        drop(keys);
        self.rows.extend(rows.into_iter().chain(later));
    }

    /// Sorts the rows by the texts of their keys. The order of rows with the same text does not change. Equal texts may have several numbers.
    fn sort(&mut self) {
        let count = self.keys.len() + self.inline_keys.len();
        let mut is_used = vec![false; count];
        for row in &self.rows {
            is_used[row.key as usize] = true;
        }
        let text = |key: &usize| pair(self.keys, &self.inline_keys, *key).1.data();
        let mut used: Vec<usize> = (0..count).filter(|key| is_used[*key]).collect();
        used.sort_by(|one, other| text(one).cmp(text(other)));
        let mut ranks = vec![0_usize; count];
        let equal = used.chunk_by(|one, next| text(one) == text(next));
        for (rank, keys) in equal.enumerate() {
            keys.iter().for_each(|key| ranks[*key] = rank);
        }
        self.rows.sort_by_key(|row| ranks[row.key as usize]);
    }

    /// Writes the rows as a row group.
    fn write(&mut self) -> Result<()> {
        self.sort();
        // These are Perfetto's names of the types.
        let [int, bool, real, string] =
            ["int", "bool", "real", "string"].map(|kind| self.table.number(KIND, kind.as_bytes()));
        let mut last = None;
        for row in &self.rows {
            let [flat_key, key] = match last {
                Some((number, numbers)) if number == row.key => numbers,
                _ => {
                    let TextPair(flat_key, key) =
                        pair(self.keys, &self.inline_keys, row.key as usize);
                    let flat_key = flat_key.as_ref().unwrap_or(key).data();
                    [(FLAT_KEY, flat_key), (KEY, key.data())]
                        .map(|(column, text)| self.table.number(column, text))
                }
            };
            last = Some((row.key, [flat_key, key]));
            let null = || Cell::Null;
            let (kind, int_value, text, real_value) = match row.value {
                ArgValue::Int(value) => (int, Cell::Long(value), null(), null()),
                ArgValue::Bool(value) => (bool, Cell::Long(value.into()), null(), null()),
                ArgValue::Real(value) => (real, null(), null(), Cell::Double(value)),
                ArgValue::Text((start, end)) => {
                    let text = Cell::Text(self.texts[start..end].into());
                    (string, null(), text, null())
                }
            };
            let [flat_key, key, kind] = [flat_key, key, kind].map(Cell::from);
            let id = Cell::Long(row.id);
            self.table
                .push([id, flat_key, key, kind, int_value, text, real_value])?;
        }
        self.table.write()?;
        self.rows.clear();
        self.texts.clear();
        self.inline_keys.clear();
        self.inline_bytes = 0;
        Ok(())
    }

    /// Writes the remaining rows and finishes the file.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.write()?;
        }
        self.table.finish()?;
        // A slice may have had many more args than a row group, so the memory is released.
        if self.rows.capacity() > 2 * ROWS || self.texts.capacity() > 2 * TEXT_BYTES {
            *self = ArgTable::new(self.keys);
        }
        Ok(())
    }
}

fn pair<'k>(keys: &'k [TextPair], inline: &'k [TextPair], key: usize) -> &'k TextPair {
    keys.get(key).unwrap_or_else(|| &inline[key - keys.len()])
}
