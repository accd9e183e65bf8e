//! The table `slice` of a process.

use super::cells::{Cell, Coding, Column};
use super::table::Table;
use super::table_file::ROWS;
use crate::gather::texts::{TextPair, UNNUMBERED};
use parquet::errors::Result;
use std::path::PathBuf;
use trace_store::hashed_map::HashedMap;

pub(crate) const COLUMNS: [Column; 10] = [
    Column::long("id", Coding::Delta),
    Column::long("ts", Coding::Delta),
    Column::long("dur", Coding::Delta),
    Column::long("track_id", Coding::Dictionary),
    Column::text("category").or_null(),
    Column::text("name").or_null(),
    Column::int("depth"),
    Column::long("parent_id", Coding::Delta).or_null(),
    Column::long("arg_set_id", Coding::Delta).or_null(),
    Column::long("thread_dur", Coding::Delta).or_null(),
];

/// Indices of the columns with texts.
const CATEGORY: usize = 4;
const NAME: usize = 5;

/// Maximum size of categories and names in a row group, which are in memory until the group is written.
const TEXT_BYTES: usize = 32 << 20;

/// A slice.
#[derive(Debug)]
pub(crate) struct SliceRow {
    pub(crate) id: i64,
    pub(crate) ts_ns: i64,
    /// Duration, which is negative if the slice has no end.
    pub(crate) dur_ns: i64,
    pub(crate) track: i64,
    /// Number of the category and name.
    pub(crate) name: u32,
    /// Category and name, if they have no number.
    pub(crate) inline_name: Option<TextPair>,
    pub(crate) depth: i32,
    pub(crate) parent: Option<i64>,
    pub(crate) has_args: bool,
    pub(crate) cpu_ns: Option<i64>,
}

/// Collects slices in the order of their begins.
pub(crate) struct SliceTable<'a> {
    names: &'a [TextPair],
    /// Numbers of the categories and names in the columns of the current row group.
    numbers: HashedMap<[Option<u32>; 2]>,
    table: Table,
}

impl<'a> SliceTable<'a> {
    /// Creates a table for slices with these categories and names.
    pub(crate) fn new(names: &'a [TextPair]) -> SliceTable<'a> {
        SliceTable {
            names,
            numbers: HashedMap::default(),
            table: Table::new(&COLUMNS).with_limits(ROWS, TEXT_BYTES),
        }
    }

    /// Begins the table of a process. Its file is created when there is a slice.
    pub(crate) fn begin(&mut self, path: PathBuf) {
        self.table.begin(path);
    }

    pub(crate) fn push(&mut self, row: &SliceRow) -> Result<()> {
        if self.table.is_empty() {
            self.numbers.clear();
        }
        let [category, name] = self.text_numbers(row);
        self.table.push([
            Cell::Long(row.id),
            Cell::Long(row.ts_ns),
            Cell::Long(row.dur_ns),
            Cell::Long(row.track),
            category.into(),
            name.into(),
            Cell::Long(row.depth.into()),
            row.parent.into(),
            row.has_args.then_some(row.id).into(),
            row.cpu_ns.into(),
        ])
    }

    /// Returns the numbers of a slice's category and name in their columns.
    fn text_numbers(&mut self, row: &SliceRow) -> [Option<u32>; 2] {
        if let Some(numbers) = self.numbers.get(&row.name.into()) {
            return *numbers;
        }
        let stored = self.names.get(row.name as usize);
        let pair = stored.or(row.inline_name.as_ref());
        let category = pair.and_then(|pair| pair.0.as_ref());
        let numbers = [
            category.and_then(|text| self.table.number(CATEGORY, text.data())),
            pair.and_then(|pair| self.table.number(NAME, pair.1.data())),
        ];
        if row.name != UNNUMBERED {
            self.numbers.insert(row.name.into(), numbers);
        }
        numbers
    }

    /// Writes the remaining rows and finishes the file.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.table.finish()
    }
}
