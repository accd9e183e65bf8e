//! The list of layers.

use crate::{MOST_IN_CIRCLE, MOST_IN_FOLDER};

/// A crate, and what it is held to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Crate {
    /// Its sources.
    pub(crate) folder: String,
    /// The modules of each layer, the lowest first; none if the crate is one layer.
    pub(crate) layers: Vec<Vec<String>>,
    /// Paths in other crates: of each of these crates nothing else may be imported.
    pub(crate) only: Vec<String>,
    /// How many files may be in a circle.
    pub(crate) circle: Debt,
    /// How many arrows may point up.
    pub(crate) upward: Debt,
    /// How many files may lie in a folder.
    pub(crate) folder_files: Debt,
}

/// How much is allowed of something that should not be.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Debt {
    /// What the rule says.
    #[default]
    None,
    /// The rule's number for this.
    Rule(usize),
    /// More than that, until it is paid.
    Owed(usize),
}

impl Debt {
    pub(crate) fn most(&self) -> usize {
        match self {
            Debt::None => 0,
            Debt::Rule(most) | Debt::Owed(most) => *most,
        }
    }
}

impl Crate {
    /// The layer that a module is in.
    pub(crate) fn rank(&self, module: &str) -> Option<usize> {
        let has = |layer: &Vec<String>| layer.iter().any(|one| one == module);
        self.layers.iter().position(has)
    }
}

/// Reads the list: a line `crate FOLDER`, then its layers and exceptions, indented.
pub(crate) fn crates(list: &str) -> Vec<Crate> {
    let mut crates: Vec<Crate> = Vec::new();
    for line in list.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["crate", folder] = words[..] {
            crates.push(Crate {
                folder: folder.to_owned(),
                circle: Debt::Rule(MOST_IN_CIRCLE),
                folder_files: Debt::Rule(MOST_IN_FOLDER),
                ..Crate::default()
            });
            continue;
        }
        let Some(of) = crates.last_mut() else {
            assert!(words.is_empty(), "expected a crate, found {line:?}");
            continue;
        };
        match words[..] {
            [] => {}
            ["debt", "circle", number] => of.circle = owed(number),
            ["debt", "up", number] => of.upward = owed(number),
            ["debt", "folder", number] => of.folder_files = owed(number),
            ["only", path] => of.only.push(path.to_owned()),
            ["layer", ref modules @ ..] => {
                of.layers
                    .push(modules.iter().map(ToString::to_string).collect());
            }
            _ => panic!("expected a layer, only or debt, found {line:?}"),
        }
    }
    crates
}

fn owed(number: &str) -> Debt {
    Debt::Owed(number.parse().expect("a debt is a number"))
}

#[test]
fn a_list_is_read() {
    let list = "# words\ncrate a/src\n  layer one two # the lowest\n  layer three\n  only b::c\n  debt circle 9\n\ncrate d/src\n";
    let [first, second] = &crates(list)[..] else {
        panic!("two crates");
    };
    assert_eq!(first.rank("two"), Some(0));
    assert_eq!(first.rank("three"), Some(1));
    assert_eq!(first.rank("four"), None);
    assert_eq!(first.only, ["b::c"]);
    assert_eq!(
        (&first.circle, &first.upward),
        (&Debt::Owed(9), &Debt::None)
    );
    assert_eq!(second.circle, Debt::Rule(MOST_IN_CIRCLE));
}
