//! The table `slice` of a process.

use super::lazy_file::LazyFile;
use super::table_file::{Coding, Column, Nullable, ROWS, Values};
use super::text_column::TextColumn;
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

/// Takes slices in the order of their begins. Its memory is kept for the next row group and the next process.
pub(crate) struct SliceTable<'a> {
    names: &'a [TextPair],
    file: LazyFile,
    id: Vec<i64>,
    ts: Vec<i64>,
    dur: Vec<i64>,
    track: Vec<i64>,
    category: TextColumn,
    name: TextColumn,
    /// The numbers that categories and names of this row group have in their columns.
    numbers: HashedMap<(Option<u32>, Option<u32>)>,
    depth: Vec<i32>,
    parent: Nullable<i64>,
    args: Nullable<i64>,
    cpu: Nullable<i64>,
}

impl<'a> SliceTable<'a> {
    /// One for slices of these categories and names.
    pub(crate) fn new(names: &'a [TextPair]) -> SliceTable<'a> {
        SliceTable {
            names,
            file: LazyFile::new(&COLUMNS),
            id: Vec::new(),
            ts: Vec::new(),
            dur: Vec::new(),
            track: Vec::new(),
            category: TextColumn::default(),
            name: TextColumn::default(),
            numbers: HashedMap::default(),
            depth: Vec::new(),
            parent: Nullable::default(),
            args: Nullable::default(),
            cpu: Nullable::default(),
        }
    }

    /// Begins the table of a process, whose file is made when there is a slice.
    pub(crate) fn begin(&mut self, path: PathBuf) {
        self.file.begin(path);
    }

    pub(crate) fn push(&mut self, row: SliceRow) -> Result<()> {
        let text_bytes = self.category.bytes() + self.name.bytes();
        if self.id.len() == ROWS || text_bytes >= TEXT_BYTES {
            self.write()?;
        }
        self.id.push(row.id);
        self.ts.push(row.ts_ns);
        self.dur.push(row.dur_ns);
        self.track.push(row.track);
        self.push_name(row.name, row.here.as_ref());
        self.depth.push(row.depth);
        self.parent.push(row.parent);
        self.args.push(row.has_args.then_some(row.id));
        self.cpu.push(row.cpu_ns);
        Ok(())
    }

    fn push_name(&mut self, number: u32, here: Option<&TextPair>) {
        let known = self.numbers.get(&number.into()).copied();
        let (category, name) = known.unwrap_or_else(|| {
            let pair = self.names.get(number as usize).or(here);
            let category = pair.and_then(|pair| pair.0.as_ref());
            let category = category.map(|text| self.category.number(text.data()));
            let name = pair.map(|pair| self.name.number(pair.1.data()));
            let numbers = (category, name);
            if number != NOT_KEPT {
                self.numbers.insert(number.into(), numbers);
            }
            numbers
        });
        self.category.push(category, 1);
        self.name.push(name, 1);
    }

    fn write(&mut self) -> Result<()> {
        let columns = vec![
            Values::Longs(&self.id),
            Values::Longs(&self.ts),
            Values::Longs(&self.dur),
            Values::Longs(&self.track),
            Values::Texts(&mut self.category),
            Values::Texts(&mut self.name),
            Values::Words(&self.depth),
            Values::SomeLongs(&self.parent),
            Values::SomeLongs(&self.args),
            Values::SomeLongs(&self.cpu),
        ];
        self.file.write(self.id.len(), columns)?;
        for longs in [&mut self.id, &mut self.ts, &mut self.dur, &mut self.track] {
            longs.clear();
        }
        self.numbers.clear();
        self.depth.clear();
        for longs in [&mut self.parent, &mut self.args, &mut self.cpu] {
            longs.clear();
        }
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if !self.id.is_empty() {
            self.write()?;
        }
        self.file.finish()
    }
}
