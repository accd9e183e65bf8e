//! A column of texts. Each text is stored once, and each row has the number of its text.
//!
//! The writer of the parquet crate accepts only texts, and looks up each of them. Here, most texts have a number already, and there are long runs of equal texts.

use super::hybrid::Hybrid;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use trace_store::hashed_map::HashedMap;
use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Compressor;

/// Compression level of columns.
pub(super) const ZSTD_LEVEL: i32 = 1;

/// Texts of a row group.
#[derive(Default)]
pub(crate) struct TextColumn {
    /// The texts, each after its length.
    plain: Vec<u8>,
    /// Offset of each text in `plain`, after its length.
    starts: Vec<usize>,
    /// Numbers by the hash of the text.
    numbers: HashedMap<u32>,
    /// Runs of rows with a text: its number, and the number of rows.
    rows: Vec<(u32, usize)>,
    /// Runs of rows: true if they have a text, and the number of rows.
    levels: Vec<(bool, usize)>,
}

impl TextColumn {
    /// Returns the number of a text. If two texts have the same hash, the second one gets a new number each time.
    pub(crate) fn number(&mut self, text: &[u8]) -> u32 {
        let hash = xxh3_64(text);
        let candidate = self.numbers.get(&hash).copied();
        if let Some(number) = candidate.filter(|number| self.text(*number) == text) {
            return number;
        }
        let number = u32::try_from(self.starts.len()).unwrap_or(u32::MAX);
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.plain.extend_from_slice(&len.to_le_bytes());
        self.starts.push(self.plain.len());
        self.plain.extend_from_slice(text);
        self.numbers.entry(hash).or_insert(number);
        number
    }

    /// Returns the size of the texts.
    pub(crate) fn bytes(&self) -> usize {
        self.plain.len()
    }

    fn text(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let next = self.starts.get(number + 1);
        let end = next.map_or(self.plain.len(), |start| start - size_of::<u32>());
        &self.plain[self.starts[number]..end]
    }

    /// Adds rows with this text, or without a text.
    #[inline]
    pub(crate) fn push(&mut self, number: Option<u32>, rows: usize) {
        add_to_run(&mut self.levels, number.is_some(), rows);
        if let Some(number) = number {
            add_to_run(&mut self.rows, number, rows);
        }
    }

    pub(crate) fn push_text(&mut self, text: Option<&[u8]>) {
        let number = text.map(|text| self.number(text));
        self.push(number, 1);
    }

    /// Returns the pages of the column and their metadata. Clears the column.
    pub(super) fn write(
        &mut self,
        column: &ColumnDescPtr,
        compressor: &mut Compressor<'_>,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        let rows: usize = self.levels.iter().map(|(_, rows)| rows).sum();
        let with_text: usize = self.rows.iter().map(|(_, rows)| rows).sum();
        if column.max_def_level() == 0 && with_text < rows {
            let why = format!("column {}: a row has no text", column.name());
            return Err(ParquetError::General(why));
        }
        let page = match column.max_def_level() {
            0 => Vec::new(),
            _ => self.encoded_levels()?,
        };
        let mut chunk = Chunk {
            out: TrackedWrite::new(Vec::new()),
            compressor,
            uncompressed: 0,
        };
        let most = u32_of(self.starts.len().saturating_sub(1))?;
        let number_bytes = with_text * Hybrid::width(most) as usize / 8;
        let (page, encoding) = if self.is_plain_shorter(number_bytes) {
            (self.with_texts(page)?, Encoding::PLAIN)
        } else {
            chunk.add_dictionary(&self.plain, self.starts.len())?;
            (self.with_numbers(page, most), Encoding::RLE_DICTIONARY)
        };
        self.clear();
        chunk.finish(column, &page, encoding, rows)
    }

    /// Encodes, for each row, if it has a text. The result begins with its length in bytes, as
    /// Parquet requires.
    fn encoded_levels(&self) -> Result<Vec<u8>> {
        let mut levels = Hybrid::new(1, Vec::new());
        for (has_text, rows) in &self.levels {
            levels.push((*has_text).into(), *rows);
        }
        let levels = levels.finish();
        Ok([&u32_of(levels.len())?.to_le_bytes()[..], &levels].concat())
    }

    /// Returns true if the texts of all rows need no more space than each text once and the numbers of all rows. This happens if most texts appear only once.
    fn is_plain_shorter(&self, number_bytes: usize) -> bool {
        let lens = self.rows.iter().map(|(number, rows)| {
            let len = size_of::<u32>() + self.text(*number).len();
            len.saturating_mul(*rows)
        });
        lens.fold(0, usize::saturating_add) <= self.plain.len() + number_bytes
    }

    fn with_texts(&self, mut page: Vec<u8>) -> Result<Vec<u8>> {
        for (number, rows) in &self.rows {
            let text = self.text(*number);
            for _ in 0..*rows {
                page.extend_from_slice(&u32_of(text.len())?.to_le_bytes());
                page.extend_from_slice(text);
            }
        }
        Ok(page)
    }

    fn with_numbers(&self, mut page: Vec<u8>, most: u32) -> Vec<u8> {
        page.push(u8::try_from(Hybrid::width(most)).unwrap_or(u8::MAX));
        let mut numbers = Hybrid::new(most, page);
        for (number, rows) in &self.rows {
            numbers.push(*number, *rows);
        }
        numbers.finish()
    }

    fn clear(&mut self) {
        self.plain.clear();
        self.starts.clear();
        self.numbers.clear();
        self.rows.clear();
        self.levels.clear();
    }
}

/// Pages of a column that are being written.
struct Chunk<'a, 'c> {
    out: TrackedWrite<Vec<u8>>,
    compressor: &'a mut Compressor<'c>,
    /// Size of the pages without compression.
    uncompressed: usize,
}

impl Chunk<'_, '_> {
    fn add(&mut self, content: &[u8], page: impl FnOnce(Bytes) -> Page) -> Result<()> {
        i32::try_from(content.len()).map_err(too_large)?; // The header of a page has an i32 for its size.
        let packed = self.compressor.compress(content)?;
        let page = CompressedPage::new(page(Bytes::from(packed)), content.len());
        let written = SerializedPageWriter::new(&mut self.out).write_page(page)?;
        self.uncompressed += written.uncompressed_size;
        Ok(())
    }

    fn add_dictionary(&mut self, plain: &[u8], texts: usize) -> Result<()> {
        let num_values = u32_of(texts)?;
        self.add(plain, |buf| Page::DictionaryPage {
            buf,
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        })
    }

    /// Adds the page of the rows, which is the last one.
    fn finish(
        mut self,
        column: &ColumnDescPtr,
        page: &[u8],
        encoding: Encoding,
        rows: usize,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        let num_values = u32_of(rows)?;
        let data_at = self.out.bytes_written();
        self.add(page, |buf| Page::DataPage {
            buf,
            num_values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        })?;
        let bytes = Bytes::from(self.out.into_inner()?);
        let metadata = ColumnChunkMetaData::builder(column.clone())
            .set_compression(compression()?)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, encoding])
            .set_num_values(i64::from(num_values))
            .set_total_compressed_size(i64_of(bytes.len())?)
            .set_total_uncompressed_size(i64_of(self.uncompressed)?)
            .set_data_page_offset(i64_of(data_at)?)
            .set_dictionary_page_offset((data_at > 0).then_some(0))
            .build()?;
        let closed = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((bytes, closed))
    }
}

fn add_to_run<T: PartialEq>(runs: &mut Vec<(T, usize)>, value: T, rows: usize) {
    match runs.last_mut() {
        Some((last, count)) if *last == value => *count += rows,
        _ => runs.push((value, rows)),
    }
}

fn u32_of(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(too_large)
}

fn i64_of(number: usize) -> Result<i64> {
    i64::try_from(number).map_err(too_large)
}

fn too_large(error: std::num::TryFromIntError) -> ParquetError {
    ParquetError::General(format!("a column of texts is too large: {error}"))
}

/// Returns the compression of all columns.
pub(super) fn compression() -> Result<Compression> {
    ZstdLevel::try_new(ZSTD_LEVEL).map(Compression::ZSTD)
}

#[cfg(test)]
mod tests {
    use super::super::cells::{Cell, Column};
    use super::super::table::Table;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use std::fs::File;

    const COLUMNS: [Column; 2] = [Column::text("every"), Column::text("some").or_null()];

    /// Writes row groups and returns the rows that the crate's reader finds.
    fn read_back(groups: &[Vec<(String, Option<String>)>]) -> Vec<[Option<String>; 2]> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("texts.parquet");
        let mut table = Table::new(&COLUMNS);
        table.begin(path.clone());
        for rows in groups {
            for (one, other) in rows {
                let row = [Cell::text(one), other.as_deref().into()];
                table.push(row).unwrap();
            }
            table.write().unwrap();
            assert_eq!(table.text_bytes(), 0);
        }
        table.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| {
            let cells = row.unwrap().into_columns();
            let text = |nth: usize| match &cells[nth].1 {
                parquet::record::Field::Str(text) => Some(text.clone()),
                _ => None,
            };
            [text(0), text(1)]
        });
        rows.collect()
    }

    #[test]
    fn texts_are_read_as_they_were_written() {
        let mut random = 7_u64;
        let mut below = |most: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(random >> 33).unwrap() % most
        };
        for kinds in [1, 2, 3, 200, 70_000] {
            let mut group = |rows: usize| {
                let mut found = Vec::new();
                while found.len() < rows {
                    let one = format!("text {}", below(kinds));
                    let other = (below(3) > 0).then(|| "é".repeat(below(kinds) % 50));
                    for _ in 0..=below(3) * below(40) {
                        found.push((one.clone(), other.clone()));
                    }
                }
                found
            };
            // Only nulls, texts that appear once, and a long text that is repeated.
            let long = "x".repeat(1 << 16);
            let none = vec![("one".to_owned(), None); 9];
            let once = (0..1_000).map(|nth| (nth.to_string(), Some(String::new())));
            let repeated = std::iter::repeat_n((long, None), 200);
            let mixed = once.chain(repeated).collect();
            let groups = [group(3_000), group(1), group(5_000), none, mixed];
            let expected = groups.iter().flatten();
            let expected = expected.map(|(one, other)| [Some(one.clone()), other.clone()]);
            let found = read_back(&groups);
            assert_eq!(found, expected.collect::<Vec<_>>(), "{kinds} texts");
        }
    }
}
