//! Measures the width of texts on a terminal, and makes texts fit.

use super::amount::grouped;
use sa_format::visible;

/// Width of a screen, in columns.
pub(super) const WIDTH: usize = 100;
/// Width of the label at the start of a section, in columns.
pub(super) const LABEL: usize = 11;
/// Maximum width of a word in a sentence, in columns. Ids are often longer.
const WORD: usize = 32;
/// Width to which a longer word is shortened, in columns.
const SHORT_WORD: usize = 24;

/// Returns the maximum width of a text in columns. Characters that may be wide, such as East Asian ones, count twice.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

fn columns_of(letter: char) -> usize {
    // Narrow: Latin to Georgian; more Latin, punctuation, arrows and mathematics; box drawing and blocks.
    let is_narrow =
        matches!(letter, '\0'..='\u{10ff}' | '\u{1e00}'..='\u{22ff}' | '\u{2500}'..='\u{25fc}');
    if is_narrow { 1 } else { 2 }
}

/// Returns the longest start of a text with at most this many columns.
fn beginning(text: &str, most: usize) -> &str {
    let mut width = 0;
    let end = text.char_indices().find(|(_, letter)| {
        width += columns_of(*letter);
        width > most
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Returns the longest end of a text with at most this many columns.
fn end(text: &str, most: usize) -> &str {
    let mut width = 0;
    let before = text.char_indices().rev().find(|(_, letter)| {
        width += columns_of(*letter);
        width > most
    });
    before.map_or(text, |(at, letter)| &text[at + letter.len_utf8()..])
}

/// Cuts a text to this width, after a whole word if possible.
pub(super) fn cut(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let beginning = beginning(text, most.saturating_sub(1));
    let is_whole = text[beginning.len()..].starts_with(' ');
    let space = beginning
        .rfind(' ')
        .filter(|at| !is_whole && 2 * at > beginning.len());
    let words = &beginning[..space.unwrap_or(beginning.len())];
    words.trim_end_matches([' ', ',', ';', ':']).to_owned() + "…"
}

/// Shortens a recorded text in the middle to this width, for a terminal. Ids and names often differ only at their end.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let text = visible(text);
    if columns(&text) <= most {
        return text.into_owned();
    }
    let end = end(&text, most.saturating_sub(1) / 3);
    let beginning = beginning(&text, most.saturating_sub(1 + columns(end)));
    format!("{beginning}…{end}")
}

/// Fills lines of this width with pieces. If the pieces need more than `most_lines`, the last line is cut.
pub(super) fn filled<P: AsRef<str>>(
    pieces: &[P],
    separator: &str,
    width: usize,
    most_lines: usize,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        let piece = piece.as_ref();
        let is_last = lines.len() == most_lines;
        match lines.last_mut() {
            Some(line) if is_last && columns(line) > width => break,
            Some(line)
                if is_last || columns(line) + columns(separator) + columns(piece) <= width =>
            {
                line.push_str(separator);
                line.push_str(piece);
            }
            _ => lines.push(piece.to_owned()),
        }
    }
    lines
        .iter()
        .map(|line| cut(line.trim_end(), width))
        .collect()
}

/// Breaks a sentence into lines of this width.
pub(super) fn wrapped(text: &str, width: usize, most_lines: usize) -> Vec<String> {
    filled(&words(text), " ", width, most_lines)
}

/// Splits a sentence into words. Long words are shortened in the middle, and a number stays together with the next
/// word.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = visible(text);
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_number =
            |last: &&mut String| last.bytes().all(|byte| b"0123456789.,".contains(&byte));
        match words.last_mut().filter(is_number) {
            Some(last) if columns(word) <= WORD => *last += &format!(" {word}"),
            _ if columns(word) > WORD => words.push(shortened(word, SHORT_WORD)),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Returns at most this many of the lines. If some are left out, the last line says how many.
pub(super) fn first_lines(mut lines: Vec<String>, most: usize) -> Vec<String> {
    if lines.len() > most {
        let left_out = grouped((lines.len() + 1 - most) as u64);
        lines.truncate(most - 1);
        lines.push(format!("and {left_out} more: --all lists them"));
    }
    lines
}

/// Puts a label before the first line, and spaces of the same width before the others.
pub(super) fn labelled(label: &str, lines: &[String]) -> Vec<String> {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    let labelled = labels.zip(lines);
    labelled
        .map(|(label, line)| format!("{label:<LABEL$}{line}"))
        .collect()
}
