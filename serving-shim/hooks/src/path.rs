//! Paths from a call's arguments or result to the value of an arg, such as `result.batches[0].size`. Nothing is evaluated.

/// A path to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// True if the arg is the number of items of the value.
    pub is_length: bool,
    /// The value that the path begins with.
    pub root: Root,
    /// The steps from there.
    pub steps: Vec<Step>,
}

/// The value that a path begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// The result of the call.
    Result,
    /// The parameter of this name.
    Parameter(String),
    /// The parameter at this position, from 0.
    Position(usize),
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An attribute.
    Attribute(String),
    /// An item of a list or tuple. A negative number counts from the end.
    Index(i64),
    /// A value of a dict.
    Key(String),
    /// Each item of a list or tuple, or each value of a dict. The remaining steps apply to each of them.
    Each,
}

/// The functions of the other profilers' expressions that return the value itself, for values that can be args.
const CONVERSIONS: [&str; 4] = ["str", "int", "float", "bool"];

impl Path {
    /// Parses a path.
    ///
    /// # Errors
    /// Returns a description of what was expected.
    pub fn parse(text: &str) -> Result<Path, String> {
        let inner = in_call(text.trim(), "len");
        let (root, steps) = parts(inner.unwrap_or(text)).ok_or_else(|| {
            format!("expected a path such as request.request_id, result.items[0].size or len(result.items), found `{text}`")
        })?;
        let root = match root.as_str() {
            "result" => Root::Result,
            _ => Root::Parameter(root),
        };
        Ok(Path {
            is_length: inner.is_some(),
            root,
            steps,
        })
    }

    /// Parses an expression of msServiceProfiler or `ms_service_metric`, such as `len(return) | str`. Returns `None` if it is not a path.
    pub fn parse_foreign(text: &str) -> Option<Path> {
        let mut operations = text.split('|').map(str::trim);
        let mut path = foreign_call(operations.next()?)?;
        for operation in operations {
            match operation.strip_prefix("attr ").map(str::trim) {
                Some(name) if !path.is_length && is_name(name) => {
                    path.steps.push(Step::Attribute(name.to_owned()));
                }
                None if operation == "len" && !path.is_length => path.is_length = true,
                None if CONVERSIONS.contains(&operation) => {}
                _ => return None,
            }
        }
        Some(path)
    }
}

/// Returns the argument of a call of this function.
fn in_call<'a>(text: &'a str, function: &str) -> Option<&'a str> {
    let argument = text.strip_prefix(function)?.trim_start();
    Some(argument.strip_prefix('(')?.strip_suffix(')')?.trim())
}

fn foreign_call(text: &str) -> Option<Path> {
    if let Some(argument) = in_call(text, "len") {
        let path = foreign_call(argument)?;
        return (!path.is_length).then_some(Path {
            is_length: true,
            ..path
        });
    }
    if let Some(argument) = CONVERSIONS.iter().find_map(|name| in_call(text, name)) {
        return foreign_call(argument);
    }
    let (root, mut steps) = parts(text)?;
    let first = steps.first().cloned();
    let root = match (root.as_str(), first) {
        ("return" | "ret", _) => Root::Result,
        ("this", _) => Root::Position(0),
        ("args", Some(Step::Index(index))) => {
            steps.remove(0);
            Root::Position(usize::try_from(index).ok()?)
        }
        ("kwargs", Some(Step::Key(name))) => {
            steps.remove(0);
            Root::Parameter(name)
        }
        ("args" | "kwargs" | "duration", _) => return None,
        _ => Root::Parameter(root),
    };
    Some(Path {
        is_length: false,
        root,
        steps,
    })
}

/// Splits a path into its first name and its steps.
fn parts(text: &str) -> Option<(String, Vec<Step>)> {
    let text = text.trim();
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (root, mut rest) = text.split_at(end);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(named) = rest.strip_prefix('.') {
            let end = named.find(['.', '[']).unwrap_or(named.len());
            let (name, others) = named.split_at(end);
            steps.push(is_name(name).then(|| Step::Attribute(name.to_owned()))?);
            rest = others;
        } else {
            let (inside, others) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(bracketed(inside.trim())?);
            rest = others;
        }
    }
    is_name(root).then(|| (root.to_owned(), steps))
}

/// Returns the step that is written in brackets.
fn bracketed(text: &str) -> Option<Step> {
    if text.is_empty() {
        return Some(Step::Each);
    }
    let quoted = ['\'', '"']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    match quoted {
        Some(key) => Some(Step::Key(key.to_owned())),
        None => text.parse().ok().map(Step::Index),
    }
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    let is_letter = |letter: char| letter.is_alphabetic() || letter == '_';
    letters.next().is_some_and(is_letter)
        && letters.all(|letter| is_letter(letter) || letter.is_numeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a path in a form that is easy to compare.
    fn shown(path: &Path) -> String {
        let steps = path.steps.iter().map(|step| match step {
            Step::Attribute(name) => format!(".{name}"),
            Step::Index(index) => format!("[{index}]"),
            Step::Key(key) => format!("[{key:?}]"),
            Step::Each => "[]".to_owned(),
        });
        let length = if path.is_length { "#" } else { "" };
        let root = match &path.root {
            Root::Result => "RESULT".to_owned(),
            Root::Parameter(name) => name.clone(),
            Root::Position(position) => format!("ARG{position}"),
        };
        format!("{length}{root}{}", steps.collect::<String>())
    }

    #[test]
    fn paths_are_a_name_and_steps() {
        for (text, expected) in [
            ("batch", "batch"),
            ("self.x.y", "self.x.y"),
            ("result", "RESULT"),
            (
                "result.total_num_scheduled_tokens",
                "RESULT.total_num_scheduled_tokens",
            ),
            ("len(result.items)", "#RESULT.items"),
            ("len( rows )", "#rows"),
            ("length.x", "length.x"),
            ("batch.reqs[].rid", "batch.reqs[].rid"),
            ("x[0][-1]['a b'].c", "x[0][-1][\"a b\"].c"),
        ] {
            assert_eq!(
                Path::parse(text).as_ref().map(shown),
                Ok(expected.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            ".",
            "a.",
            "a..b",
            "a b",
            "f(x)",
            "len(x",
            "len(len(x))",
            "a + b",
            "a[",
            "a[x]",
            "a[1:2]",
            "1",
            "a.1",
            "a]",
        ] {
            assert!(
                Path::parse(text).unwrap_err().contains("expected a path"),
                "{text}"
            );
        }
    }

    #[test]
    fn expressions_of_other_profilers_become_paths() {
        for (text, expected) in [
            ("len(kwargs['input_ids'])", Some("#input_ids")),
            ("len(return) | str", Some("#RESULT")),
            ("return[0].input_ids", Some("RESULT[0].input_ids")),
            (
                "return[0] | attr input_ids | len",
                Some("#RESULT[0].input_ids"),
            ),
            ("args[0] | attr device | str", Some("ARG0.device")),
            ("str(args[1])", Some("ARG1")),
            ("this.model_name", Some("ARG0.model_name")),
            ("ret.method", Some("RESULT.method")),
            ("training | bool", Some("training")),
            ("duration", None),
            ("duration * 1000", None),
            ("a + b", None),
            ("x.method()", None),
            ("len(x) | attr y", None),
            ("args", None),
            ("args[-1]", None),
            ("x | upper", None),
        ] {
            assert_eq!(
                Path::parse_foreign(text).as_ref().map(shown).as_deref(),
                expected,
                "{text}"
            );
        }
    }
}
