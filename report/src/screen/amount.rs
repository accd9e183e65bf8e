//! Formats amounts and tables for people.

use super::width::columns as columns_of;
pub(super) use crate::amount::duration;
use std::ops::Range;

/// Formats a number with commas between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with the word that it counts, in singular or plural.
pub(super) fn counted(number: u64, one: &str, many: &str) -> String {
    let word = if number == 1 { one } else { many };
    format!("{} {word}", grouped(number))
}

/// Formats a part of a whole as a percentage with one digit after the point, or as `–` if the whole is 0.
pub(super) fn share(part: f64, whole: f64) -> String {
    match whole > 0.0 {
        true => format!("{:.1} %", 100.0 * part / whole),
        false => "–".to_owned(),
    }
}

/// Formats a share as a short percentage: with one digit after the point below 10 %, otherwise with none.
pub(super) fn percent(part: f64) -> String {
    let digits = usize::from(100.0 * part < 9.95);
    format!("{:.digits$} %", 100.0 * part)
}

/// Splits the head of a table into its cells at `|`.
pub(super) fn cells(head: &str) -> Vec<String> {
    head.split('|').map(str::to_owned).collect()
}

/// Formats rows of cells with aligned columns. The columns in `figures` are aligned to the right, the others to the
/// left. Each row is indented.
pub(super) fn table(rows: &[Vec<String>], figures: Range<usize>) -> String {
    aligned(rows, "  ", |column| figures.contains(&column))
}

/// Formats a table, leaving out columns that are empty or 0 in every row below the head.
pub(super) fn figures_table(rows: &[Vec<String>], figures: Range<usize>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let has_value = |column: &usize| {
        let cells = rows.iter().skip(1).filter_map(|row| row.get(*column));
        let is_figure = figures.contains(column);
        let is_blank = |cell: &String| cell.is_empty() || is_figure && is_zero(cell);
        *column == 0 || !cells.into_iter().all(is_blank)
    };
    let shown: Vec<usize> = (0..columns).filter(has_value).collect();
    let cells = |row: &Vec<String>| -> Vec<String> {
        let cells = shown.iter().filter_map(|column| row.get(*column));
        cells.cloned().collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    aligned(&rows, "  ", |column| figures.contains(&shown[column]))
}

/// Returns true if a table cell shows an unknown amount (`–`), or 0 with or without a unit.
fn is_zero(cell: &str) -> bool {
    let amount = cell.split(' ').next().unwrap_or_default();
    cell == "–" || amount.trim_start_matches('±').parse() == Ok(0.0)
}

/// Formats rows of cells with aligned columns, each row after `indent`. Columns of figures are aligned to the right.
pub fn aligned<R: AsRef<[String]>>(
    rows: &[R],
    indent: &str,
    is_figure: impl Fn(usize) -> bool,
) -> String {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.as_ref().get(column));
        cells.map(|cell| columns_of(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &R| {
        let cells = row.as_ref().iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| {
            let space = " ".repeat(width.saturating_sub(columns_of(cell)));
            match is_figure(column) {
                true => space + cell,
                false => format!("{cell}{space}"),
            }
        });
        let line = indent.to_owned() + &cells.collect::<Vec<_>>().join("  ");
        line.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
