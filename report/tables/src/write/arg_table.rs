//! The table `args` of a process.
//!
//! Within a row group the rows of one key stand together, in the order of their slices: values of one key are alike, so they compress several times better.

use super::lazy_file::LazyFile;
use super::table_file::{Coding, Column, Nullable, ROWS, Values};
use super::text_column::TextColumn;
use crate::gather::entry::{ArgKey, ArgValue, Entry};
use crate::gather::texts::TextPair;
use parquet::errors::Result;
use std::collections::BTreeMap;
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

/// Bytes of texts in a row group.
const TEXT_BYTES: usize = 8 << 20;

#[derive(Clone, Copy, Debug)]
enum Value {
    Int(i64),
    Bool(bool),
    Real(f64),
    /// A range of the texts.
    Text(usize, usize),
}

#[derive(Clone, Copy, Debug)]
struct Row {
    key: u32,
    id: i64,
    value: Value,
}

/// The columns of a row group.
#[derive(Default)]
struct Columns {
    ids: Vec<i64>,
    flat_keys: TextColumn,
    keys: TextColumn,
    kinds: TextColumn,
    ints: Nullable<i64>,
    texts: TextColumn,
    reals: Nullable<f64>,
}

/// Takes args in the order of their slices. Its memory is kept for the next row group and the next process.
pub(crate) struct ArgTable<'a> {
    keys: &'a [TextPair],
    file: LazyFile,
    rows: Vec<Row>,
    /// The same by the texts of their keys, when they are written.
    sorted: Vec<Row>,
    /// Keys that are kept nowhere else; their numbers follow those of the others.
    here: Vec<TextPair>,
    here_bytes: usize,
    texts: Vec<u8>,
    columns: Columns,
}

impl<'a> ArgTable<'a> {
    /// One for args of these keys.
    pub(crate) fn new(keys: &'a [TextPair]) -> ArgTable<'a> {
        ArgTable {
            keys,
            file: LazyFile::new(&COLUMNS),
            rows: Vec::new(),
            sorted: Vec::new(),
            here: Vec::new(),
            here_bytes: 0,
            texts: Vec::new(),
            columns: Columns::default(),
        }
    }

    /// Begins the table of a process, whose file is made when there is an arg.
    pub(crate) fn begin(&mut self, path: PathBuf) {
        self.file.begin(path);
    }

    /// Takes the args of a slice; of those with the same key in both entries the later one's.
    pub(crate) fn push(
        &mut self,
        id: i64,
        entry: &Entry<'_>,
        later: Option<&Entry<'_>>,
    ) -> Result<()> {
        if self.rows.len() >= ROWS || self.texts.len() + self.here_bytes >= TEXT_BYTES {
            self.write()?;
        }
        let first = self.rows.len();
        entry.each_arg(|key, value| self.add(id, key, value));
        if let Some(later) = later {
            let middle = self.rows.len();
            later.each_arg(|key, value| self.add(id, key, value));
            self.leave_later(first, middle);
        }
        Ok(())
    }

    fn add(&mut self, id: i64, key: ArgKey, value: ArgValue<'_>) {
        let key = match key {
            ArgKey::Kept(number) => number,
            ArgKey::Here(pair) => {
                self.here_bytes += pair.bytes();
                self.here.push(pair);
                u32::try_from(self.keys.len() + self.here.len() - 1).unwrap_or(u32::MAX)
            }
        };
        let value = match value {
            ArgValue::Int(value) => Value::Int(value),
            ArgValue::Bool(value) => Value::Bool(value),
            ArgValue::Real(value) => Value::Real(value),
            ArgValue::Text(text) => {
                let start = self.texts.len();
                self.texts.extend_from_slice(text);
                Value::Text(start, self.texts.len())
            }
        };
        self.rows.push(Row { key, id, value });
    }

    /// Of the rows from `first` on, those before `middle` whose keys come again behind it go.
    fn leave_later(&mut self, first: usize, middle: usize) {
        let mut rows = self.rows.split_off(first);
        let later = rows.split_off(middle - first);
        let text = |row: &Row| &pair(self.keys, &self.here, row.key as usize).1;
        let keys: std::collections::BTreeSet<&[u8]> =
            later.iter().map(|row| text(row).data()).collect();
        rows.retain(|row| !keys.contains(text(row).data()));
        drop(keys);
        self.rows.extend(rows.into_iter().chain(later));
    }

    /// Sorts the rows by the texts of their keys, those of one text as they stand. Equal texts may have several numbers.
    fn sort(&mut self) {
        let mut counts = vec![0_usize; self.keys.len() + self.here.len()];
        for row in &self.rows {
            counts[row.key as usize] += 1;
        }
        let mut by_text: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for (number, _) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let text = pair(self.keys, &self.here, number).1.data();
            by_text.entry(text).or_default().push(number);
        }
        // The place of each text's next row, and which text a number has.
        let (mut next, mut text_of, mut start) = (Vec::new(), counts.clone(), 0);
        for (nth, numbers) in by_text.into_values().enumerate() {
            next.push(start);
            for number in numbers {
                start += counts[number];
                text_of[number] = nth;
            }
        }
        if let Some(any) = self.rows.first() {
            self.sorted.resize(self.rows.len(), *any);
        }
        for row in &self.rows {
            let next = &mut next[text_of[row.key as usize]];
            self.sorted[*next] = *row;
            *next += 1;
        }
    }

    /// Fills the columns with the sorted rows.
    fn fill(&mut self) {
        let columns = &mut self.columns;
        columns.ids.clear();
        columns.ints.clear();
        columns.reals.clear();
        // As Perfetto names them.
        let kinds = ["int", "bool", "real", "string"];
        let [int, bool, real, string] = kinds.map(|kind| columns.kinds.number(kind.as_bytes()));
        let mut last = None;
        for row in &self.sorted {
            let (key, flat_key) = match last {
                Some((number, texts)) if number == row.key => texts,
                _ => {
                    let TextPair(flat_key, key) = pair(self.keys, &self.here, row.key as usize);
                    let flat_key = flat_key.as_ref().unwrap_or(key).data();
                    let flat_key = columns.flat_keys.number(flat_key);
                    (columns.keys.number(key.data()), flat_key)
                }
            };
            last = Some((row.key, (key, flat_key)));
            columns.keys.push(Some(key), 1);
            columns.flat_keys.push(Some(flat_key), 1);
            columns.ids.push(row.id);
            let (kind, int, real, text) = match row.value {
                Value::Int(value) => (int, Some(value), None, None),
                Value::Bool(value) => (bool, Some(value.into()), None, None),
                Value::Real(value) => (real, None, Some(value), None),
                Value::Text(start, end) => (string, None, None, Some(&self.texts[start..end])),
            };
            columns.kinds.push(Some(kind), 1);
            columns.ints.push(int);
            columns.texts.push_text(text);
            columns.reals.push(real);
        }
    }

    fn write(&mut self) -> Result<()> {
        self.sort();
        self.fill();
        let columns = &mut self.columns;
        let values = vec![
            Values::Longs(&columns.ids),
            Values::Texts(&mut columns.flat_keys),
            Values::Texts(&mut columns.keys),
            Values::Texts(&mut columns.kinds),
            Values::SomeLongs(&columns.ints),
            Values::Texts(&mut columns.texts),
            Values::SomeDoubles(&columns.reals),
        ];
        self.file.write(self.rows.len(), values)?;
        self.rows.clear();
        self.texts.clear();
        self.here.clear();
        self.here_bytes = 0;
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.write()?;
        }
        self.file.finish()?;
        // A slice may have had far more args than a row group.
        if self.rows.capacity() > 2 * ROWS || self.texts.capacity() > 2 * TEXT_BYTES {
            *self = ArgTable::new(self.keys);
        }
        Ok(())
    }
}

fn pair<'k>(keys: &'k [TextPair], here: &'k [TextPair], key: usize) -> &'k TextPair {
    keys.get(key).unwrap_or_else(|| &here[key - keys.len()])
}
