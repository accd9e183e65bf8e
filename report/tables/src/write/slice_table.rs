//! The table `slice` of a process.

use super::cells::{Cell, Coding, Column};
use super::table::Table;
use super::table_file::ROWS;
use crate::gather::texts::{NOT_KEPT, TextPair};
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
    Column::word("depth"),
    Column::long("parent_id", Coding::Delta).or_null(),
    Column::long("arg_set_id", Coding::Delta).or_null(),
    Column::long("thread_dur", Coding::Delta).or_null(),
];

/// The places of the columns of texts.
const CATEGORY: usize = 4;
const NAME: usize = 5;

/// Bytes of categories and names in a row group: Parquet keeps those of a group in memory.
const TEXT_BYTES: usize = 32 << 20;

/// A slice.
#[derive(Debug)]
pub(crate) struct SliceRow {
    pub(crate) id: i64,
    pub(crate) ts_ns: i64,
    /// Negative if it has no end.
    pub(crate) dur_ns: i64,
    pub(crate) track: i64,
    /// Category and name by their number, or as they are.
    pub(crate) name: u32,
    pub(crate) here: Option<TextPair>,
    pub(crate) depth: i32,
    pub(crate) parent: Option<i64>,
    pub(crate) has_args: bool,
    pub(crate) cpu_ns: Option<i64>,
}

/// Takes slices in the order of their begins.
pub(crate) struct SliceTable<'a> {
    names: &'a [TextPair],
    /// The numbers that categories and names of this row group have in their columns.
    numbers: HashedMap<[Option<u32>; 2]>,
    table: Table,
}

impl<'a> SliceTable<'a> {
    /// One for slices of these categories and names.
    pub(crate) fn new(names: &'a [TextPair]) -> SliceTable<'a> {
        SliceTable {
            names,
            numbers: HashedMap::default(),
            table: Table::new(&COLUMNS).with_most(ROWS, TEXT_BYTES),
        }
    }

    /// Begins the table of a process, whose file is made when there is a slice.
    pub(crate) fn begin(&mut self, path: PathBuf) {
        self.table.begin(path);
    }

    pub(crate) fn push(&mut self, row: &SliceRow) -> Result<()> {
        if self.table.is_empty() {
            self.numbers.clear();
        }
        let [category, name] = self.numbers_of(row);
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

    /// Returns the numbers of a slice's category and name.
    fn numbers_of(&mut self, row: &SliceRow) -> [Option<u32>; 2] {
        if let Some(known) = self.numbers.get(&row.name.into()) {
            return *known;
        }
        let pair = self.names.get(row.name as usize).or(row.here.as_ref());
        let category = pair.and_then(|pair| pair.0.as_ref());
        let numbers = [
            category.and_then(|text| self.table.number(CATEGORY, text.data())),
            pair.and_then(|pair| self.table.number(NAME, pair.1.data())),
        ];
        if row.name != NOT_KEPT {
            self.numbers.insert(row.name.into(), numbers);
        }
        numbers
    }

    /// Writes what is left.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.table.finish()
    }
}
