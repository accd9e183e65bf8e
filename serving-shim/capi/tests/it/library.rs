//! The shared library as the linker and the loader see it.

use crate::stage::{PACKAGE, built, run};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn exactly_the_functions_of_the_header_are_exported() {
    let library = built().join("libsa_profile.so");
    let symbols = run(Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library));
    let exported: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    let header = fs::read_to_string(Path::new(PACKAGE).join("include/sa_profile.h")).unwrap();
    let (prototypes, _) = header.split_once("static inline").unwrap();
    // A prototype begins a line; what is in a comment does not.
    let declared: BTreeSet<&str> = prototypes
        .lines()
        .filter(|line| !line.starts_with(['/', ' ', '#', '}']))
        .filter_map(|line| line.split_once('(')?.0.split([' ', '*']).next_back())
        .filter(|name| name.starts_with("sa_profile_"))
        .collect();
    assert!(declared.len() > 30, "{declared:?}");
    assert_eq!(exported, declared);
}

#[test]
fn the_soname_has_the_version_and_the_library_stays_loaded() {
    let library = built().join("libsa_profile.so");
    let dynamic = run(Command::new("readelf").args(["-d", "-W"]).arg(library));
    assert!(
        dynamic.contains("soname: [libsa_profile.so.0]"),
        "{dynamic}"
    );
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    let others: Vec<&str> = needed
        .filter(|line| {
            !["[libc.so", "[libgcc_s.so", "[ld-linux"]
                .iter()
                .any(|known| line.contains(known))
        })
        .collect();
    assert!(others.is_empty(), "{others:?}");
}
