//! The table `slice` of a process.

use super::table_file::{Coding, Column, ROWS, TableFile, Values};
use crate::gather::texts::{NOT_KEPT, TextPair};
use parquet::errors::Result;
use std::path::PathBuf;

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

/// Longs of which some are null.
#[derive(Default)]
struct SomeLongs {
    values: Vec<i64>,
    levels: Vec<i16>,
}

impl SomeLongs {
    fn push(&mut self, value: Option<i64>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn clear(&mut self) {
        self.values.clear();
        self.levels.clear();
    }

    fn values(&self) -> Values<'_> {
        Values::SomeLongs(&self.values, &self.levels)
    }
}

/// Takes slices in the order of their begins.
pub(crate) struct SliceTable<'a> {
    path: PathBuf,
    names: &'a [TextPair],
    file: Option<TableFile>,
    id: Vec<i64>,
    ts: Vec<i64>,
    dur: Vec<i64>,
    track: Vec<i64>,
    name: Vec<u32>,
    here: Vec<TextPair>,
    text_bytes: usize,
    depth: Vec<i32>,
    parent: SomeLongs,
    args: SomeLongs,
    cpu: SomeLongs,
}

impl<'a> SliceTable<'a> {
    /// One in a file that is made when there is a slice.
    pub(crate) fn new(path: PathBuf, names: &'a [TextPair]) -> SliceTable<'a> {
        SliceTable {
            path,
            names,
            file: None,
            id: Vec::new(),
            ts: Vec::new(),
            dur: Vec::new(),
            track: Vec::new(),
            name: Vec::new(),
            here: Vec::new(),
            text_bytes: 0,
            depth: Vec::new(),
            parent: SomeLongs::default(),
            args: SomeLongs::default(),
            cpu: SomeLongs::default(),
        }
    }

    pub(crate) fn push(&mut self, row: SliceRow) -> Result<()> {
        if self.id.len() == ROWS || self.text_bytes >= TEXT_BYTES {
            self.write()?;
        }
        let pair = row.here.as_ref().or(self.names.get(row.name as usize));
        self.text_bytes += pair.map_or(0, TextPair::bytes);
        self.id.push(row.id);
        self.ts.push(row.ts_ns);
        self.dur.push(row.dur_ns);
        self.track.push(row.track);
        let name = match (row.name, row.here) {
            (NOT_KEPT, Some(pair)) => {
                self.here.push(pair);
                self.names.len() + self.here.len() - 1
            }
            (name, _) => name as usize,
        };
        self.name.push(u32::try_from(name).unwrap_or(NOT_KEPT));
        self.depth.push(row.depth);
        self.parent.push(row.parent);
        self.args.push(row.has_args.then_some(row.id));
        self.cpu.push(row.cpu_ns);
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(TableFile::create(&self.path, &COLUMNS)?),
        };
        let pair = |row: usize| {
            let name = self.name[row] as usize;
            let here = || self.here.get(name - self.names.len());
            self.names.get(name).or_else(here)
        };
        let columns = [
            Values::Longs(&self.id),
            Values::Longs(&self.ts),
            Values::Longs(&self.dur),
            Values::Longs(&self.track),
            Values::Texts(&|row| pair(row)?.0.clone()),
            Values::Texts(&|row| Some(pair(row)?.1.clone())),
            Values::Words(&self.depth),
            self.parent.values(),
            self.args.values(),
            self.cpu.values(),
        ];
        file.write(self.id.len(), &columns)?;
        for longs in [&mut self.id, &mut self.ts, &mut self.dur, &mut self.track] {
            longs.clear();
        }
        self.name.clear();
        self.here.clear();
        self.text_bytes = 0;
        self.depth.clear();
        for longs in [&mut self.parent, &mut self.args, &mut self.cpu] {
            longs.clear();
        }
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> Result<()> {
        if !self.id.is_empty() {
            self.write()?;
        }
        self.file.map_or(Ok(()), TableFile::finish)
    }
}
