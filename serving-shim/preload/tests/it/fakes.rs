//! The vendor's interface as a table, and a fake of each of its libraries.

use c_programs::{Ground, NONE};
use serde_json::Value;

/// Parts of the vendor's interface, each with its library.
const PARTS: [(&str, &str); 5] = [
    ("ACL", "libascendcl.so"),
    ("RT", "libruntime.so"),
    ("HCCL", "libhccl.so"),
    ("MSTX", "libms_tools_ext.so"),
    ("PROFILER", "libmsprofiler.so"),
];

/// An interposed function.
pub(crate) struct Function {
    /// Library of the function, or `ASKED`.
    pub(crate) part: &'static str,
    result: &'static str,
    pub(crate) name: &'static str,
    /// One letter for each argument.
    types: &'static str,
    /// The event that a call records: its kind (`launch`, `wait` or `mark`), category, args and name.
    pub(crate) event: Option<(&'static str, &'static str, Value, &'static str)>,
}

/// Returns the functions in `functions.txt`.
pub(crate) fn functions() -> impl Iterator<Item = Function> {
    let lines = include_str!("../functions.txt").lines();
    lines.filter(|line| !line.starts_with('#')).map(|line| {
        let (call, event) = line.split_once(" : ").unzip();
        let words: Vec<&str> = call.unwrap_or(line).split(' ').collect();
        let event = event.map(|event| {
            let [kind, category, rest] = event.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let (args, name) = rest.rsplit_once("} ").unwrap();
            let args = serde_json::from_str(&format!("{args}}}")).unwrap();
            (kind, category, args, name)
        });
        Function {
            part: words[0],
            result: words[1],
            name: words[2],
            types: words[3].trim_matches('-'),
            event,
        }
    })
}

/// Returns `functions.h`, which `interface.h` describes.
fn header() -> String {
    let mut header = String::new();
    for part in PARTS.map(|(part, _)| part).into_iter().chain(["ASKED"]) {
        header += &format!("#define {part}(F)");
        for function in functions().filter(|function| function.part == part) {
            let count = function.types.len();
            let arguments = function.types.chars().zip((1..=count).rev());
            let each = |text: fn((char, usize)) -> String| arguments.clone().map(text);
            let parameters = each(|(letter, n)| format!("type_{letter} a{n}"));
            let given = each(|(letter, n)| format!("given_{letter}({n})"));
            let shown = each(|(letter, n)| format!("show_{letter}(a{n});"));
            let written = each(|(letter, n)| match letter {
                'H' | 'W' => format!("write_{letter}(a{n});"),
                _ => String::new(),
            });
            header += &format!(
                " F({}, {}, ({}), ({}), {}, {})",
                function.result,
                function.name,
                parameters.collect::<Vec<_>>().join(", "),
                given.collect::<Vec<_>>().join(", "),
                shown.collect::<String>(),
                written.collect::<String>()
            );
        }
        header.push('\n');
    }
    header
}

/// Creates a ground with a fake of each vendor library.
pub(crate) fn fakes() -> Ground {
    let ground = Ground::default();
    std::fs::write(ground.path("functions.h"), header()).unwrap();
    ground.library("libfake_answer.so", "fake_answer.c", &NONE);
    for (part, library) in PARTS {
        let options = [format!("-DPART={part}"), format!("-DWITH_{part}")];
        fake(&ground, library, &options.each_ref().map(String::as_str));
    }
    ground
}

/// Compiles a fake with these options.
pub(crate) fn fake(ground: &Ground, library: &str, options: &[&str]) {
    let options = [options, &["-Wl,-Bsymbolic", "-lfake_answer"]].concat();
    ground.library(library, "fake_acl.c", &options);
}

/// Returns the options that link a program with the fakes.
pub(crate) fn links() -> Vec<String> {
    let links = PARTS.map(|(_, library)| format!("-l:{library}"));
    [vec!["-Wl,--no-as-needed".to_owned()], links.to_vec()].concat()
}

/// Returns the paths of the fakes.
pub(crate) fn paths(ground: &Ground) -> Vec<String> {
    PARTS.map(|(_, library)| ground.text(library)).to_vec()
}
