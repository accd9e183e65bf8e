//! The table `args` of a process.
//!
//! Within a row group the rows of one key stand together, in the order of their slices: values of one key are alike, so they compress several times better.

use super::table_file::{Coding, Column, ROWS, TableFile, Values};
use crate::gather::entry::{ArgKey, ArgValue, Entry};
use crate::gather::texts::TextPair;
use parquet::data_type::ByteArray;
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

/// Takes args in the order of their slices.
pub(crate) struct ArgTable<'a> {
    path: PathBuf,
    keys: &'a [TextPair],
    file: Option<TableFile>,
    rows: Vec<Row>,
    /// Keys that are kept nowhere else; their numbers follow those of the others.
    here: Vec<TextPair>,
    here_bytes: usize,
    texts: Vec<u8>,
}

impl<'a> ArgTable<'a> {
    /// One in a file that is made when there is an arg.
    pub(crate) fn new(path: PathBuf, keys: &'a [TextPair]) -> ArgTable<'a> {
        ArgTable {
            path,
            keys,
            file: None,
            rows: Vec::new(),
            here: Vec::new(),
            here_bytes: 0,
            texts: Vec::new(),
        }
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
        let text = |row: &Row| &self.pair(row.key).1;
        let keys: std::collections::BTreeSet<&[u8]> =
            later.iter().map(|row| text(row).data()).collect();
        rows.retain(|row| !keys.contains(text(row).data()));
        drop(keys);
        self.rows.extend(rows.into_iter().chain(later));
    }

    fn pair(&self, key: u32) -> &TextPair {
        pair(self.keys, &self.here, key)
    }

    /// The rows by the texts of their keys. Equal texts may have several numbers.
    fn sort(&mut self) {
        let mut numbers: Vec<u32> = Vec::new();
        let mut seen = vec![false; self.keys.len() + self.here.len()];
        for row in &self.rows {
            if !std::mem::replace(&mut seen[row.key as usize], true) {
                numbers.push(row.key);
            }
        }
        let text = |number: &u32| self.pair(*number).1.data();
        let mut places: BTreeMap<&[u8], Vec<u32>> = BTreeMap::new();
        for number in &numbers {
            places.entry(text(number)).or_default().push(*number);
        }
        let mut ranks = vec![0_u32; seen.len()];
        for (rank, numbers) in (0..).zip(places.into_values()) {
            for number in numbers {
                ranks[number as usize] = rank;
            }
        }
        self.rows.sort_by_key(|row| ranks[row.key as usize]);
    }

    fn write(&mut self) -> Result<()> {
        self.sort();
        let texts = ByteArray::from(std::mem::take(&mut self.texts));
        let (mut ids, mut ints, mut reals) = (Vec::new(), Vec::new(), Vec::new());
        let (mut int_levels, mut real_levels) = (Vec::new(), Vec::new());
        for row in &self.rows {
            ids.push(row.id);
            int_levels.push(i16::from(matches!(
                row.value,
                Value::Int(_) | Value::Bool(_)
            )));
            real_levels.push(i16::from(matches!(row.value, Value::Real(_))));
            match row.value {
                Value::Int(value) => ints.push(value),
                Value::Bool(value) => ints.push(value.into()),
                Value::Real(value) => reals.push(value),
                Value::Text(..) => {}
            }
        }
        let (rows, keys, here) = (&self.rows, self.keys, &self.here);
        let pair = |row: usize| pair(keys, here, rows[row].key);
        // As Perfetto names them.
        let types = ["int", "bool", "real", "string"].map(ByteArray::from);
        let [int, bool, real, string] = &types;
        let value_type = |row: usize| match rows[row].value {
            Value::Int(_) => Some(int.clone()),
            Value::Bool(_) => Some(bool.clone()),
            Value::Real(_) => Some(real.clone()),
            Value::Text(..) => Some(string.clone()),
        };
        let text = |row: usize| match rows[row].value {
            Value::Text(start, end) => Some(texts.slice(start, end - start)),
            _ => None,
        };
        let columns = [
            Values::Longs(&ids),
            Values::Texts(&|row| pair(row).0.clone()),
            Values::Texts(&|row| Some(pair(row).1.clone())),
            Values::Texts(&value_type),
            Values::SomeLongs(&ints, &int_levels),
            Values::Texts(&text),
            Values::SomeDoubles(&reals, &real_levels),
        ];
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(TableFile::create(&self.path, &COLUMNS)?),
        };
        file.write(self.rows.len(), &columns)?;
        self.rows.clear();
        self.here.clear();
        self.here_bytes = 0;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.write()?;
        }
        self.file.map_or(Ok(()), TableFile::finish)
    }
}

fn pair<'k>(keys: &'k [TextPair], here: &'k [TextPair], key: u32) -> &'k TextPair {
    let key = key as usize;
    keys.get(key).unwrap_or_else(|| &here[key - keys.len()])
}
