//! The program, run as users run it but tiny: the page has the sections and rows of docs/overhead.md, and its numbers are numbers.

use std::process::Command;

const COMMITTED: &str = include_str!("../../../docs/overhead.md");

/// Returns each title with the rows of the tables below it, as cells.
fn tables(page: &str) -> Vec<(&str, Vec<Vec<&str>>)> {
    let sections = page.split("\n## ").skip(1);
    sections
        .map(|section| {
            let (title, body) = section.split_once('\n').expect("a section has lines");
            let rows = body.lines().filter(|line| line.starts_with('|'));
            let cells = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect());
            (title, cells.collect())
        })
        .collect()
}

fn is_number(cell: &str) -> bool {
    let first = cell.split(' ').next().unwrap_or_default().replace(',', "");
    cell == "–" || first.parse::<f64>().is_ok()
}

#[test]
fn the_page_is_the_committed_one_but_for_the_numbers() {
    let program = env!("CARGO_BIN_EXE_overhead");
    let output = Command::new(program).arg("--tiny").output();
    let output = output.unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {complaint}", output.status);
    let page = String::from_utf8(output.stdout).unwrap();
    let (found, committed) = (tables(&page), tables(COMMITTED));
    assert_eq!(found.len(), committed.len());
    for ((title, rows), (expected, expected_rows)) in found.iter().zip(&committed) {
        assert_eq!((title, rows.len()), (expected, expected_rows.len()));
        for (row, expected) in rows.iter().zip(expected_rows) {
            assert_eq!(row.len(), expected.len(), "{title}: {row:?}");
            for (cell, expected) in row.iter().zip(expected) {
                assert!(
                    cell == expected || is_number(cell) == is_number(expected),
                    "{title}: {row:?}"
                );
            }
        }
    }
    let (_, kills) = found
        .iter()
        .find(|(title, _)| *title == "Killed by SIGKILL")
        .unwrap();
    for row in kills.iter().filter(|row| row[1].contains("sa-recorder")) {
        assert_ne!(row[3], "0", "{row:?}");
        assert_eq!(row[4], "0", "{row:?}");
    }
}
