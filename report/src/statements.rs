//! SQL statements for the figures of a report, over the tables of a run.

macro_rules! statements {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../sql/", $name, ".sql")))),*]
    };
}

/// Name and text of each statement in `report/sql`.
pub const STATEMENTS: [(&str, &str); 11] = statements![
    "batching",
    "devices",
    "gaps",
    "idle",
    "losses",
    "names",
    "recorded",
    "request_parts",
    "request_summary",
    "steps",
    "vllm_metrics",
];

/// Python program that runs statements over the tables of a run, with a database engine that the user has installed.
pub const SQL_ENGINE: &str = include_str!("../sql/engine.py");

/// Returns the statement with this name.
pub fn statement(name: &str) -> Option<&'static str> {
    let mut statements = STATEMENTS.iter();
    let found = statements.find(|(statement_name, _)| *statement_name == name);
    found.map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_statement() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql");
        let files = std::fs::read_dir(folder).unwrap();
        let names = files.filter_map(|file| {
            let name = file.unwrap().file_name().into_string().unwrap();
            Some(name.strip_suffix(".sql")?.to_owned())
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        let known: Vec<&str> = STATEMENTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, known);
        assert!(statement("names").is_some() && statement("name").is_none());
    }

    /// Without partitions, a window would bring all rows of a cluster to one node.
    #[test]
    fn every_window_has_partitions() {
        for (name, text) in STATEMENTS {
            let spaced = text.to_lowercase().replace('(', " ( ");
            let words: Vec<&str> = spaced.split_whitespace().collect();
            let windows = words.split(|word| *word == "over").skip(1);
            for window in windows {
                assert!(window.starts_with(&["(", "partition", "by"]), "{name}");
            }
        }
    }
}
