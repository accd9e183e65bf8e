//! A CSV in memory, with its columns even where it has no rows.

use trace_merge::Error;

/// Rows as they are put.
pub(super) struct CsvFile {
    writer: csv::Writer<Vec<u8>>,
}

impl CsvFile {
    pub(super) fn new(columns: &[&str]) -> Result<CsvFile, Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(columns).map_err(failed)?;
        Ok(CsvFile { writer })
    }

    pub(super) fn put<const N: usize>(&mut self, row: [String; N]) -> Result<(), Error> {
        self.writer.write_record(row).map_err(failed)
    }

    pub(super) fn finish(self) -> Result<String, Error> {
        let bytes = self.writer.into_inner().map_err(failed)?;
        String::from_utf8(bytes).map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Usage(format!("CSV: {error}"))
}

/// A number with a point in it, as Python writes one.
pub(super) fn float(value: f64) -> String {
    format!("{value:?}")
}

/// A value, or nothing.
pub(super) fn maybe(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
