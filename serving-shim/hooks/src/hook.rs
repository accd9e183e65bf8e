//! The hooks of a file of ours, in which everything must be known and correct.

use crate::HookFile;
use crate::document::{Key, Node, Problem, Value};
use crate::path::Path;
use crate::version::Version;

const DEFAULT_CATEGORY: &str = "track";
const KEYS: [&str; 8] = [
    "symbol",
    "name",
    "category",
    "level",
    "args",
    "package",
    "min_version",
    "max_version",
];

/// A hook: functions whose calls are spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Line of the hook in its file, from 1.
    pub line: usize,
    /// Name of the functions' module. `*` matches any text.
    pub module: String,
    /// Qualified name of the functions in the module. `*` matches any text.
    pub function: String,
    /// Name of the spans, if it is not the qualified name of the function.
    pub name: Option<String>,
    /// Category of the spans.
    pub category: String,
    /// Level of the spans.
    pub level: Level,
    /// Args of the spans.
    pub args: Vec<Arg>,
    /// The package whose version counts.
    pub package: String,
    /// The first version that is hooked.
    pub min_version: Option<String>,
    /// The last version that is hooked.
    pub max_version: Option<String>,
}

/// Level of detail of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Requests, scheduling, steps.
    #[default]
    E2e,
    /// Kernel launches.
    Kernel,
    /// Everything else.
    Verbose,
}

impl Level {
    const ALL: [Level; 3] = [Level::E2e, Level::Kernel, Level::Verbose];

    /// Returns the name of the level.
    pub const fn name(self) -> &'static str {
        match self {
            Level::E2e => "e2e",
            Level::Kernel => "kernel",
            Level::Verbose => "verbose",
        }
    }
}

/// An arg of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg {
    /// Name of the arg.
    pub name: String,
    /// The path as it is written in the file.
    pub text: String,
    /// Path to the value.
    pub path: Path,
}

impl Hook {
    /// Creates a hook for this symbol, with the default for everything else.
    pub(crate) fn new(symbol: &str, line: usize) -> Result<Hook, Problem> {
        let parts = symbol.split_once(':');
        let (module, function) = parts
            .filter(|(module, function)| is_dotted(module) && is_dotted(function))
            .ok_or_else(|| {
                let problem = format!(
                    "expected a symbol such as package.module:Class.method, found `{symbol}`"
                );
                Problem::new(line, problem)
            })?;
        if module == "__main__" {
            let problem = "functions of the script itself cannot be hooked: move them to a module, or use @sa_profile.track";
            return Err(Problem::new(line, problem));
        }
        let package = module.split('.').next().unwrap_or(module);
        Ok(Hook {
            line,
            module: module.to_owned(),
            function: function.to_owned(),
            name: None,
            category: DEFAULT_CATEGORY.to_owned(),
            level: Level::default(),
            args: Vec::new(),
            package: package.to_owned(),
            min_version: None,
            max_version: None,
        })
    }

    /// Returns true if another hook is for the same symbol, in all versions.
    fn repeats(&self, other: &Hook) -> bool {
        let has_bounds = |hook: &Hook| hook.min_version.is_some() || hook.max_version.is_some();
        (&self.module, &self.function) == (&other.module, &other.function)
            && !has_bounds(self)
            && !has_bounds(other)
    }
}

/// Returns true for names with dots between them. A name may contain `*`.
fn is_dotted(text: &str) -> bool {
    let is_allowed = |letter: char| letter.is_alphanumeric() || "_*<>".contains(letter);
    text.split('.')
        .all(|name| !name.is_empty() && name.chars().all(is_allowed))
}

/// Reads the hooks of a file of ours.
pub(crate) fn from_map(members: &[(Key, Node)], line: usize) -> Result<HookFile, Problem> {
    if let Some((key, _)) = members.iter().find(|(key, _)| key.text != "hooks") {
        return Err(unknown_key(key, &["hooks"]));
    }
    let entries = match members.first().map(|(_, node)| node) {
        Some(Node {
            value: Value::List(entries),
            ..
        }) => entries,
        Some(other) => return Err(expected("a list of hooks", other)),
        None => return Err(Problem::new(line, "expected `hooks:` with a list")),
    };
    let mut hooks: Vec<Hook> = Vec::new();
    for entry in entries {
        let hook = from_entry(entry)?;
        if let Some(first) = hooks.iter().find(|first| first.repeats(&hook)) {
            let problem = format!(
                "{}:{} is already in line {}",
                hook.module, hook.function, first.line
            );
            return Err(Problem::new(hook.line, problem));
        }
        hooks.push(hook);
    }
    Ok(HookFile {
        hooks,
        ignored: None,
    })
}

fn from_entry(entry: &Node) -> Result<Hook, Problem> {
    let Value::Map(members) = &entry.value else {
        return Err(expected("a hook with `symbol:`", entry));
    };
    let Some((_, symbol)) = members.iter().find(|(key, _)| key.text == "symbol") else {
        let problem = "expected `symbol:` with package.module:Class.method";
        return Err(Problem::new(entry.line, problem));
    };
    let mut hook = Hook::new(text(symbol)?, symbol.line)?;
    for (key, node) in members {
        match key.text.as_str() {
            "symbol" => {}
            "name" => hook.name = Some(text(node)?.to_owned()),
            "category" => hook.category = text(node)?.to_owned(),
            "level" => hook.level = level(node)?,
            "args" => hook.args = args(node)?,
            "package" => hook.package = text(node)?.to_owned(),
            "min_version" => hook.min_version = Some(version(node)?),
            "max_version" => hook.max_version = Some(version(node)?),
            _ => return Err(unknown_key(key, &KEYS)),
        }
    }
    if hook.package.contains('*') && (hook.min_version.is_some() || hook.max_version.is_some()) {
        let problem = "expected `package:`, because the symbol names no package";
        return Err(Problem::new(hook.line, problem));
    }
    Ok(hook)
}

fn unknown_key(key: &Key, known: &[&str]) -> Problem {
    let known = known.join(", ");
    Problem::new(key.line, format!("expected {known}, found `{}`", key.text))
}

fn expected(what: &str, node: &Node) -> Problem {
    Problem::new(node.line, format!("expected {what}, found {}", node.kind()))
}

/// Returns the text of a value that may not be empty.
pub(crate) fn text(node: &Node) -> Result<&str, Problem> {
    match &node.value {
        Value::Text(text) if !text.trim().is_empty() => Ok(text.trim()),
        _ => Err(expected("a text", node)),
    }
}

fn level(node: &Node) -> Result<Level, Problem> {
    let name = text(node)?;
    let level = Level::ALL.into_iter().find(|level| level.name() == name);
    level.ok_or_else(|| expected("e2e, kernel or verbose", node))
}

pub(crate) fn version(node: &Node) -> Result<String, Problem> {
    let version = text(node)?;
    match Version::parse(version) {
        Some(_) => Ok(version.to_owned()),
        None => Err(expected("a version such as 0.9.1", node)),
    }
}

fn args(node: &Node) -> Result<Vec<Arg>, Problem> {
    let Value::Map(members) = &node.value else {
        return Err(expected("args as NAME: PATH", node));
    };
    let arg = |(key, node): &(Key, Node)| {
        let text = text(node)?;
        let path = Path::parse(text).map_err(|problem| Problem::new(node.line, problem))?;
        Ok(Arg {
            name: key.text.clone(),
            text: text.to_owned(),
            path,
        })
    };
    members.iter().map(arg).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks_in;

    #[test]
    fn a_hook_has_defaults_for_all_but_the_symbol() {
        let file = hooks_in("hooks:\n  - symbol: a.b:C.d\n").unwrap();
        assert_eq!(file.ignored, None);
        let expected = Hook {
            line: 2,
            module: "a.b".to_owned(),
            function: "C.d".to_owned(),
            name: None,
            category: "track".to_owned(),
            level: Level::E2e,
            args: Vec::new(),
            package: "a".to_owned(),
            min_version: None,
            max_version: None,
        };
        assert_eq!(file.hooks, [expected]);
    }

    #[test]
    fn every_key_of_a_hook_is_read() {
        let text = "hooks:
  - symbol: 'a.b:*.d'
    name: step
    category: scheduler
    level: verbose
    args: {n: len(result), request_id: request.id}
    package: a-b
    min_version: 0.10
    max_version: 1
";
        let hooks = hooks_in(text).unwrap().hooks;
        let hook = &hooks[0];
        assert_eq!(hook.name.as_deref(), Some("step"));
        assert_eq!(
            (hook.category.as_str(), hook.level),
            ("scheduler", Level::Verbose)
        );
        let args: Vec<_> = hook
            .args
            .iter()
            .map(|arg| (arg.name.as_str(), arg.text.as_str()))
            .collect();
        assert_eq!(args, [("n", "len(result)"), ("request_id", "request.id")]);
        assert!(hook.args[0].path.is_length);
        assert_eq!(hook.package, "a-b");
        assert_eq!(
            (hook.min_version.as_deref(), hook.max_version.as_deref()),
            (Some("0.10"), Some("1"))
        );
    }

    #[test]
    fn one_symbol_may_have_a_hook_for_each_version() {
        let text = "hooks:\n- {symbol: a:b, max_version: 1}\n- {symbol: a:b, min_version: 2}\n";
        assert_eq!(hooks_in(text).unwrap().hooks.len(), 2);
    }

    #[test]
    fn a_mistake_is_described_with_its_line() {
        for (text, line, problem) in [
            ("", 1, "expected `hooks:` with a list, found nothing"),
            ("7", 1, "expected `hooks:` with a list, found `7`"),
            ("{}", 1, "expected `hooks:` with a list"),
            ("hook: []", 1, "expected hooks, found `hook`"),
            ("hooks: a:b", 1, "expected a list of hooks, found `a:b`"),
            (
                "hooks:\n- a:b",
                2,
                "expected a hook with `symbol:`, found `a:b`",
            ),
            (
                "hooks:\n- name: x",
                2,
                "expected `symbol:` with package.module:Class.method",
            ),
            ("hooks:\n- symbol: [a]", 2, "expected a text, found a list"),
            (
                "hooks:\n- symbol: a.b",
                2,
                "expected a symbol such as package.module:Class.method, found `a.b`",
            ),
            ("hooks:\n- symbol: a.:b", 2, "expected a symbol such as"),
            ("hooks:\n- symbol: a:b()", 2, "expected a symbol such as"),
            (
                "hooks:\n- symbol: __main__:b",
                2,
                "functions of the script itself cannot be hooked",
            ),
            (
                "hooks:\n- symbol: a:b\n  catgory: x",
                3,
                "expected symbol, name, category, level, args, package, min_version, max_version, found `catgory`",
            ),
            (
                "hooks:\n- symbol: a:b\n  name:",
                3,
                "expected a text, found nothing",
            ),
            (
                "hooks:\n- symbol: a:b\n  level: e3",
                3,
                "expected e2e, kernel or verbose, found `e3`",
            ),
            (
                "hooks:\n- symbol: a:b\n  args: [x]",
                3,
                "expected args as NAME: PATH, found a list",
            ),
            (
                "hooks:\n- symbol: a:b\n  args:\n    x: f(y)",
                4,
                "expected a path such as request.request_id, result.items[0].size or len(result.items), found `f(y)`",
            ),
            (
                "hooks:\n- symbol: a:b\n  min_version: new",
                3,
                "expected a version such as 0.9.1, found `new`",
            ),
            (
                "hooks:\n- symbol: '*.a:b'\n  min_version: 1",
                2,
                "expected `package:`, because the symbol names no package",
            ),
            (
                "hooks:\n- symbol: a:b\n- symbol: a:b",
                3,
                "a:b is already in line 2",
            ),
        ] {
            let found = hooks_in(text).unwrap_err();
            assert!(
                found.line == line && found.text.starts_with(problem),
                "{text}: {found:?}"
            );
        }
    }
}
