//! The lists of symbols of msServiceProfiler and `ms_service_metric`. Whatever has no meaning here is ignored and reported.
//!
//! Both profilers call their own Python functions (`handler`) for many symbols. Such a symbol gets a span here, without what the handler adds.

use crate::HookFile;
use crate::document::{Key, Node, Value};
use crate::hook::{Arg, Hook, text, version};
use crate::ignored::Ignored;
use crate::path::Path;

/// Packages whose symbols have bounds for the version of another one.
const VERSIONED_BY: [(&str, &str); 1] = [("vllm_ascend", "vllm")];
/// The value of `handler` that means a span.
const TIMER: &str = "timer";
/// The values of `enabled` that mean no hook, in lower case. The other profilers read YAML 1.1.
const OFF: [&str; 3] = ["false", "no", "off"];

/// Returns true if a mapping has symbols as keys, as files of `ms_service_metric` may.
pub(crate) fn is_map_of_symbols(members: &[(Key, Node)]) -> bool {
    members.iter().any(|(key, _)| key.text.contains(':'))
}

/// Reads a mapping from symbols to entries.
pub(crate) fn from_map(members: &[(Key, Node)]) -> HookFile {
    let mut reader = Reader::default();
    for (key, node) in members {
        let entries = match &node.value {
            Value::List(entries) => entries.as_slice(),
            _ => std::slice::from_ref(node),
        };
        for entry in entries {
            reader.add(Some(&key.text), entry);
        }
    }
    reader.file()
}

/// Reads a list of entries.
pub(crate) fn from_list(entries: &[Node]) -> HookFile {
    let mut reader = Reader::default();
    for entry in entries {
        reader.add(None, entry);
    }
    reader.file()
}

#[derive(Default)]
struct Reader {
    hooks: Vec<Hook>,
    ignored: Ignored,
}

impl Reader {
    fn file(self) -> HookFile {
        HookFile {
            ignored: self.ignored.text(),
            hooks: self.hooks,
        }
    }

    fn add(&mut self, symbol: Option<&str>, entry: &Node) {
        let members: &[_] = match &entry.value {
            Value::Map(members) => members,
            _ => &[],
        };
        let symbol = symbol.or_else(|| text(member(members, "symbol")?).ok());
        let Some(symbol) = symbol else {
            return self.ignored.add("an entry without symbol", entry.line);
        };
        let Ok(mut hook) = Hook::new(symbol, entry.line) else {
            return self.ignored.add(format!("symbol {symbol}"), entry.line);
        };
        let versioned_by = VERSIONED_BY.iter().find(|(own, _)| *own == hook.package);
        if let Some((_, package)) = versioned_by {
            hook.package = (*package).to_owned();
        }
        let enabled = member(members, "enabled").and_then(|node| text(node).ok());
        if enabled.is_some_and(|text| OFF.contains(&&*text.to_ascii_lowercase())) {
            return;
        }
        for (key, node) in members {
            self.add_member(&mut hook, key, node);
        }
        self.hooks.push(hook);
    }

    fn add_member(&mut self, hook: &mut Hook, key: &Key, node: &Node) {
        let is_read = match (key.text.as_str(), text(node)) {
            ("symbol" | "enabled", _) | ("handler", Ok(TIMER)) => true,
            ("name", Ok(name)) => {
                hook.name = Some(name.to_owned());
                true
            }
            ("domain", Ok(domain)) => {
                domain.clone_into(&mut hook.category);
                true
            }
            ("min_version", _) => store(&mut hook.min_version, version(node).ok()),
            ("max_version", _) => store(&mut hook.max_version, version(node).ok()),
            ("attributes" | "metrics", _) => {
                self.add_expressions(hook, node);
                true
            }
            _ => false,
        };
        if !is_read {
            self.ignored.add(&key.text, key.line);
        }
    }

    /// Adds the args of `attributes`, or of `metrics` and their `labels`. A metric without an expression, or with `duration`, is the span itself.
    fn add_expressions(&mut self, hook: &mut Hook, node: &Node) {
        let Value::List(items) = &node.value else {
            return self.ignored.add("a value that is no list", node.line);
        };
        for item in items {
            let Value::Map(members) = &item.value else {
                self.ignored.add("an item that is no mapping", item.line);
                continue;
            };
            self.add_arg(hook, members);
            for (key, node) in members {
                match key.text.as_str() {
                    "name" | "expr" | "type" => {}
                    "labels" => self.add_expressions(hook, node),
                    other => self.ignored.add(other, key.line),
                }
            }
        }
    }

    fn add_arg(&mut self, hook: &mut Hook, members: &[(Key, Node)]) {
        let Some(node) = member(members, "expr") else {
            return;
        };
        let expression = text(node).unwrap_or_default();
        if matches!(expression, "" | "duration") {
            return;
        }
        let name = member(members, "name").and_then(|node| text(node).ok());
        let (Some(name), Some(path)) = (name, Path::parse_foreign(expression)) else {
            return self.ignored.add(format!("expr `{expression}`"), node.line);
        };
        hook.args.push(Arg {
            name: name.to_owned(),
            text: expression.to_owned(),
            path,
        });
    }
}

/// Stores a value if there is one. Returns true if so.
fn store(place: &mut Option<String>, value: Option<String>) -> bool {
    *place = value;
    place.is_some()
}

fn member<'a>(members: &'a [(Key, Node)], name: &str) -> Option<&'a Node> {
    let found = members.iter().find(|(key, _)| key.text == name);
    found.map(|(_, node)| node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks_in;

    /// Returns symbol, name, category, args and bounds of each hook.
    fn shown(file: &HookFile) -> Vec<String> {
        let hook = |hook: &Hook| {
            let args: Vec<_> = hook
                .args
                .iter()
                .map(|arg| format!("{}={}", arg.name, arg.text))
                .collect();
            let name = hook.name.as_deref().unwrap_or("-");
            let least = hook.min_version.as_deref().unwrap_or_default();
            let greatest = hook.max_version.as_deref().unwrap_or_default();
            let package = &hook.package;
            format!(
                "{}:{} {name} {} [{}] {package} {least}..{greatest}",
                hook.module,
                hook.function,
                hook.category,
                args.join(", ")
            )
        };
        file.hooks.iter().map(hook).collect()
    }

    #[test]
    fn a_list_for_the_profiler_of_spans_is_read() {
        let text = "
- symbol: kitchen.oven:Oven.bake
  min_version: '0.9.1'
  handler: other.handlers:bake
  name: baking
  domain: Heat
  trace: {name: x}
- symbol: vllm_ascend.worker:Runner.run
  max_version: 0.14.0rc1
  handler: timer
  caller_filter: main
  attributes:
    - name: device
      expr: args[0] | attr device | str
    - name: load
      expr: a + b
- symbol: 'models.*:*.embed'
  handler: other.handlers:embed
- name: no symbol
- just a text
- symbol: nothing
- symbol: a:off
  enabled: False
";
        let file = hooks_in(text).unwrap();
        assert_eq!(
            shown(&file),
            [
                "kitchen.oven:Oven.bake baking Heat [] kitchen 0.9.1..",
                "vllm_ascend.worker:Runner.run - track [device=args[0] | attr device | str] vllm ..0.14.0rc1",
                "models.*:*.embed - track [] models ..",
            ]
        );
        assert_eq!(
            file.ignored.as_deref(),
            Some(
                "an entry without symbol (2 times, first in line 19), caller_filter (line 11), expr `a + b` (line 16), \
                 handler (2 times, first in line 4), symbol nothing (line 21), trace (line 7)"
            )
        );
    }

    #[test]
    fn a_list_for_the_profiler_of_metrics_is_read() {
        let text = "
- symbol: kitchen.oven:Oven.bake
  metrics:
    - name: oven:bake:duration
      type: timer
      labels:
        - {name: kind, expr: ret.kind}
    - {name: loaves, type: histogram, expr: len(loaves), buckets: [1, 2]}
    - {name: seconds, expr: duration}
";
        let expected =
            ["kitchen.oven:Oven.bake - track [kind=ret.kind, loaves=len(loaves)] kitchen .."];
        let file = hooks_in(text).unwrap();
        assert_eq!(shown(&file), expected);
        assert_eq!(file.ignored.as_deref(), Some("buckets (line 8)"));

        let text = "
kitchen.oven:Oven.bake:
  - metrics: [{name: kind, expr: ret.kind}, {name: loaves, expr: len(loaves)}]
kitchen.oven:Oven.cool: {name: cooling}
";
        let file = hooks_in(text).unwrap();
        assert_eq!(shown(&file)[0], expected[0]);
        assert_eq!(
            shown(&file)[1],
            "kitchen.oven:Oven.cool cooling track [] kitchen .."
        );
        assert_eq!(file.ignored, None);
    }
}
