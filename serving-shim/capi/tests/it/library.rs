//! Exported symbols and dynamic section of the shared library.

use crate::stage::PACKAGE;
use c_programs::{beside, dynamic_section, exported};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn exactly_the_functions_of_the_header_are_exported() {
    let header = Path::new(PACKAGE).join("include/sa_profile.h");
    let header = std::fs::read_to_string(header).unwrap();
    let (prototypes, _) = header.split_once("static inline").unwrap();
    // A prototype is at the beginning of a line, unlike a name in a comment.
    let declared: BTreeSet<String> = prototypes
        .lines()
        .filter(|line| !line.starts_with(['/', ' ', '#', '}']))
        .filter_map(|line| line.split_once('(')?.0.split([' ', '*']).next_back())
        .filter(|name| name.starts_with("sa_profile_"))
        .map(str::to_owned)
        .collect();
    assert!(declared.len() > 30, "{declared:?}");
    assert_eq!(exported(&beside("libsa_profile.so")), declared);
}

#[test]
fn the_soname_has_the_version_and_the_library_stays_loaded() {
    let dynamic = dynamic_section(&beside("libsa_profile.so"));
    let soname = "soname: [libsa_profile.so.0]";
    let stays = dynamic.contains(soname) && dynamic.contains("NODELETE");
    assert!(stays, "{dynamic}");
    let expected = ["[libc.so", "[libgcc_s.so", "[ld-linux"];
    let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    let mut others = needed.filter(|line| !expected.iter().any(|name| line.contains(name)));
    assert_eq!(others.next(), None);
}
