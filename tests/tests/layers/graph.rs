//! Circles of files that import one another.

use std::collections::{BTreeMap, BTreeSet};

/// What each file imports: the other files, and what of them.
pub(crate) type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The files of each circle: those that lead to one another.
pub(crate) fn circles(arrows: &Arrows) -> Vec<Vec<&String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = arrows
        .keys()
        .map(|file| (file, reach(arrows, file)))
        .collect();
    let mut left: BTreeSet<&String> = arrows.keys().collect();
    let mut circles = Vec::new();
    while let Some(file) = left.pop_first() {
        let back = |other: &&String| reached[*other].contains(file);
        let circle: Vec<&String> = reached[file].iter().copied().filter(back).collect();
        left.retain(|other| !circle.contains(other));
        if circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles
}

/// All files that a file leads to, over any number of others.
fn reach<'a>(arrows: &'a Arrows, from: &str) -> BTreeSet<&'a String> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for other in arrows[file].keys() {
            if reached.insert(other) {
                open.push(other);
            }
        }
    }
    reached
}

#[test]
fn circles_are_those_that_lead_back() {
    let table = [
        ("a", &["b"][..]),
        ("b", &["c", "d"]),
        ("c", &["a"]),
        ("d", &["e"]),
        ("e", &[]),
    ];
    let mut arrows = Arrows::new();
    for (file, others) in table {
        let to = others
            .iter()
            .map(|other| ((*other).into(), BTreeSet::new()));
        arrows.insert(file.into(), to.collect());
    }
    assert_eq!(circles(&arrows), [["a", "b", "c"]]);
}
