//! Tables of the page.

use std::fmt::Write;

/// A Markdown table: the first columns are words, the others numbers.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<String>,
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table whose first `words` columns are words.
    pub(crate) fn new<H: Into<String>>(words: usize, head: impl IntoIterator<Item = H>) -> Table {
        Table {
            head: head.into_iter().map(Into::into).collect(),
            words,
            rows: Vec::new(),
        }
    }

    /// Adds a row; one that is too short is filled up with `–`, for what was not measured.
    pub(crate) fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.head.len(), "–".to_owned());
        self.rows.push(cells);
    }

    /// The table in Markdown, with an empty line after it.
    pub(crate) fn markdown(&self) -> String {
        let mut text = line(&self.head);
        text.push('|');
        for column in 0..self.head.len() {
            let rule = if column < self.words {
                " --- |"
            } else {
                " ---: |"
            };
            text.push_str(rule);
        }
        text.push('\n');
        for row in &self.rows {
            text.push_str(&line(row));
        }
        text.push('\n');
        text
    }
}

fn line(cells: &[String]) -> String {
    let mut text = String::from("|");
    for cell in cells {
        // Writing to a string cannot fail.
        let _ = write!(text, " {} |", cell.replace('|', "\\|").replace('\n', " "));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(1, ["event", "ns"]);
        table.row(["a|b", "1.00"]);
        table.row(["none"]);
        assert_eq!(
            table.markdown(),
            "| event | ns |\n| --- | ---: |\n| a\\|b | 1.00 |\n| none | – |\n\n"
        );
    }
}
