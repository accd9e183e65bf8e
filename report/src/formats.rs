//! Writes CSV and JSON in memory, and formats changes.
//!
//! Spreadsheets treat a text as a formula if it begins with certain characters, and clients choose their request ids.
//! Such a text gets a leading quote.

use serde::Serialize;
use std::borrow::Cow;
use trace_merge::Error;

/// First characters that make spreadsheets treat a cell as a formula.
const SIGNS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Formats a ratio as a change: a percentage, or a factor if it is eleven or more.
pub(crate) fn change(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 11.0 => format!("{:+.1} %", 100.0 * (ratio - 1.0)),
        ratio if ratio.is_finite() => format!("×{ratio:.0}"),
        _ => "–".to_owned(),
    }
}

/// Formats rows of cells as CSV, with a header even if there are no rows.
pub(crate) fn csv(
    columns: impl IntoIterator<Item: AsRef<[u8]>>,
    rows: impl IntoIterator<Item: IntoIterator<Item: AsRef<[u8]>>>,
) -> Result<String, Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns).map_err(csv_failed)?;
    for row in rows {
        writer.write_record(row).map_err(csv_failed)?;
    }
    let bytes = writer.into_inner().map_err(csv_failed)?;
    String::from_utf8(bytes).map_err(csv_failed)
}

/// Returns a cell for a text that no spreadsheet treats as a formula.
pub(crate) fn text_cell(text: &str) -> Cow<'_, str> {
    match text.starts_with(SIGNS) {
        true => Cow::from(format!("'{text}")),
        false => Cow::from(text),
    }
}

pub(crate) fn csv_failed(error: impl std::fmt::Display) -> Error {
    Error::Usage(format!("CSV: {error}"))
}

/// Formats a value as JSON on one line.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(json_failed)
}

/// Formats a value as indented JSON.
pub(crate) fn pretty_json(value: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(value);
    Ok(text.map_err(json_failed)? + "\n")
}

fn json_failed(error: serde_json::Error) -> Error {
    Error::Usage(format!("JSON: {error}"))
}
