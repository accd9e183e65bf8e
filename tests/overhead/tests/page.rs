//! The program, run as users run it but tiny: the page has every section and row, and its numbers are numbers.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Sections with their numbers of rows, tables one after the other.
const SECTIONS: [(&str, &[usize]); 9] = [
    ("One event", &[9]),
    ("Next to other recorders", &[18]),
    ("Next to Python recorders", &[4]),
    ("The slowest spans", &[14]),
    ("Disk", &[7, 6]),
    ("Start and end of a process", &[3]),
    ("Memory, threads and files of a process", &[7]),
    ("Killed by SIGKILL", &[14]),
    ("What this page does not say", &[]),
];

type Tables = Vec<Vec<Vec<String>>>;

/// Runs the program and returns its page, section by section.
fn page(words: &[&str], directory: &Path) -> BTreeMap<String, Tables> {
    let path = directory.join("overhead.md");
    let output = Command::new(env!("CARGO_BIN_EXE_overhead"))
        .args(words)
        .arg("--output")
        .arg(&path)
        .output()
        .expect("the program can be started");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {complaint}", output.status);
    assert!(output.stdout.is_empty());
    let text = std::fs::read_to_string(path).expect("it wrote the page");
    let sections = text.split("\n## ").skip(1);
    sections
        .map(|section| {
            let (title, body) = section.split_once('\n').expect("a section has lines");
            (title.to_owned(), tables(body))
        })
        .collect()
}

/// The rows of each table, without its head.
fn tables(body: &str) -> Tables {
    let blocks = body
        .split("\n\n")
        .filter(|block| block.trim_start().starts_with('|'));
    blocks
        .map(|block| {
            let rows = block.trim().lines().skip(2);
            rows.map(|row| {
                let cells = row.trim_matches('|').split(" | ");
                cells.map(|cell| cell.trim().to_owned()).collect()
            })
            .collect()
        })
        .collect()
}

/// The number at the start of a cell; `–` is none.
fn number(cell: &str) -> Option<f64> {
    if cell == "–" {
        return None;
    }
    let first = cell.split(' ').next().unwrap_or_default().replace(',', "");
    Some(
        first
            .parse()
            .unwrap_or_else(|error| panic!("{cell}: {error}")),
    )
}

#[test]
fn every_section_and_row_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let page = page(&["--quick", "--tiny", "--no-python"], directory.path());
    for (title, rows) in SECTIONS {
        let tables = page
            .get(title)
            .unwrap_or_else(|| panic!("no section {title}"));
        let found: Vec<usize> = tables.iter().map(Vec::len).collect();
        assert_eq!(found, rows, "{title}");
    }
    assert_eq!(page.len(), SECTIONS.len());
    for (title, words) in [("One event", 1), ("Next to other recorders", 2)] {
        for row in &page[title][0] {
            for cell in &row[words..] {
                assert!(
                    number(cell).is_some_and(|ratio| ratio >= 0.0),
                    "{title}: {row:?}"
                );
            }
            assert!(number(&row[words]) > Some(0.0), "{title}: {row:?}");
        }
    }
    for (title, words) in [
        ("The slowest spans", 2),
        ("Start and end of a process", 1),
        ("Memory, threads and files of a process", 2),
    ] {
        for cell in page[title][0].iter().flat_map(|row| &row[words..]) {
            number(cell);
        }
    }
    assert_recorders(&page);
}

/// What does not depend on the machine.
fn assert_recorders(page: &BTreeMap<String, Tables>) {
    for row in &page["Next to other recorders"][0] {
        for ratio in [3, 5, 7] {
            assert!(number(&row[ratio]) > Some(0.0), "{row:?}");
        }
    }
    for row in page["Disk"].iter().flatten() {
        assert!(number(&row[1]) > Some(0.0), "{row:?}");
    }
    let (python, rust): (Vec<_>, Vec<_>) = page["Killed by SIGKILL"][0]
        .iter()
        .partition(|row| row[1].contains("viztracer") || row[1].contains("torch"));
    for row in &rust {
        assert!(number(&row[3]) > Some(0.0), "{row:?}");
    }
    for row in rust.iter().filter(|row| row[1].contains("sa-recorder")) {
        let (lost, doubled) = (&row[4], &row[7]);
        assert_eq!([lost, doubled], ["0", "0"], "{row:?}");
    }
    for row in python.iter().chain(
        &page["Next to Python recorders"][0]
            .iter()
            .collect::<Vec<_>>(),
    ) {
        let told = row
            .iter()
            .any(|cell| cell == "not measured: left out with --no-python");
        assert!(told, "{row:?}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_overhead"))
        .args([
            "--tiny",
            "--no-python",
            "--output",
            "/nonexistent/overhead.md",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/overhead.md"));
}
