//! A CSV in memory, with its columns even where it has no rows.
//!
//! Spreadsheets treat a text as a formula if it begins with certain characters, and clients choose their request ids. Such a text gets a leading quote.

use std::borrow::Cow;
use trace_merge::Error;

/// First characters that make spreadsheets treat a cell as a formula.
const SIGNS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Rows as they are put.
pub(crate) struct CsvFile {
    writer: csv::Writer<Vec<u8>>,
}

impl CsvFile {
    pub(crate) fn new(columns: &[&str]) -> Result<CsvFile, Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(columns).map_err(failed)?;
        Ok(CsvFile { writer })
    }

    pub(crate) fn put<const N: usize>(&mut self, row: [String; N]) -> Result<(), Error> {
        let cells = row.iter().map(|cell| match is_number(cell) {
            true => Cow::from(cell),
            false => text_cell(cell),
        });
        let cells = cells.map(|cell| cell.into_owned());
        self.writer.write_record(cells).map_err(failed)
    }

    pub(crate) fn finish(self) -> Result<String, Error> {
        let bytes = self.writer.into_inner().map_err(failed)?;
        String::from_utf8(bytes).map_err(failed)
    }
}

/// Returns a text as a cell that no spreadsheet treats as a formula.
pub(crate) fn text_cell(text: &str) -> Cow<'_, str> {
    match text.starts_with(SIGNS) {
        true => Cow::from(format!("'{text}")),
        false => Cow::from(text),
    }
}

/// Returns true if a cell is a number as this program writes one.
fn is_number(cell: &str) -> bool {
    let is_of_number = |byte: u8| byte.is_ascii_digit() || b"+-.e".contains(&byte);
    cell.bytes().all(is_of_number) && cell.parse::<f64>().is_ok()
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Usage(format!("CSV: {error}"))
}

/// A number with a point in it, as Python writes one.
pub(crate) fn float(value: f64) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_formula_and_a_number_stays_one() {
        let mut file = CsvFile::new(&["a"]).unwrap();
        for cell in [
            "=HYPERLINK(1)",
            "+1+cmd",
            "-2+3",
            "@SUM(1)",
            "\t=1",
            "\r=1",
            "-",
            "-inf",
            "-1.5",
            "+1e5",
            "1=1",
            "'=1",
            "",
        ] {
            file.put([cell.to_owned()]).unwrap();
        }
        assert_eq!(
            file.finish().unwrap(),
            "a\n'=HYPERLINK(1)\n'+1+cmd\n'-2+3\n'@SUM(1)\n'\t=1\n\"'\r=1\"\n'-\n'-inf\n-1.5\n+1e5\n1=1\n'=1\n\"\"\n"
        );
    }
}
