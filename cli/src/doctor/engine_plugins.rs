//! Checks whether each engine would load the plugin of the Python package.

use super::finding::{Check, Finding};
use sa_hooks::is_version_between;

/// An engine that loads plugins by entry points.
struct Engine {
    check: Check,
    name: &'static str,
    /// Name of its Python package.
    package: &'static str,
    /// Group of entry points that it loads.
    group: &'static str,
    /// Variable with the names of the plugins to load. Without it, all are loaded.
    variable: &'static str,
    /// True if an empty variable is the same as none.
    empty_is_none: bool,
    /// First version that loads plugins.
    since: &'static str,
}

const ENGINES: [Engine; 2] = [
    Engine {
        check: Check("vLLM plugin"),
        name: "vLLM",
        package: "vllm",
        group: "vllm.general_plugins",
        variable: "VLLM_PLUGINS",
        empty_is_none: false,
        since: "0",
    },
    Engine {
        check: Check("SGLang plugin"),
        name: "SGLang",
        package: "sglang",
        group: "sglang.srt.plugins",
        variable: "SGLANG_PLUGINS",
        empty_is_none: true,
        since: "0.5.12",
    },
];

/// Returns a script that prints the name of each engine's plugin and the version of the engine. It uses the function
/// `say` of [`super::torch_npu::PYTHON`].
pub(super) fn python() -> String {
    let pairs = ENGINES.map(|engine| format!("('{}', '{}')", engine.package, engine.group));
    format!(
        "
points = importlib.metadata.entry_points()
group = lambda name: points.select(group=name) if hasattr(points, 'select') else points.get(name, [])
for package, name in [{}]:
    say(package + '-plugin', lambda: [point.name for point in group(name) if 'sa_profile' in point.value][0])
    say(package, lambda: importlib.metadata.version(package))",
        pairs.join(", ")
    )
}

/// Returns a finding for each engine. `said` is the output of the script, or `None` if Python did not answer. `lookup`
/// returns environment variables.
pub(super) fn examine(
    said: Option<&str>,
    lookup: impl Fn(&str) -> Option<String>,
) -> impl Iterator<Item = Finding> {
    ENGINES.into_iter().map(move |engine| match said {
        None => engine.check.ok("not installed: python3 does not answer"),
        Some(said) => engine.finding(said, lookup(engine.variable)),
    })
}

impl Engine {
    fn finding(&self, said: &str, chosen: Option<String>) -> Finding {
        let value = |what: &str| {
            let mut lines = said.lines();
            lines.find_map(|line| line.strip_prefix(what)?.strip_prefix(' '))
        };
        let (name, variable) = (self.name, self.variable);
        let Some(plugin) = value(&format!("{}-plugin", self.package)) else {
            return self.check.ok("not installed");
        };
        let Some(version) = value(self.package) else {
            return self.check.ok(format!("installed, but {name} is not"));
        };
        let since = self.since;
        if is_version_between(version, Some(since), None) == Some(false) {
            return self.check.warn(
                format!("{name} {version} does not load plugins"),
                format!("record it with sa-profile run --python, or use {name} {since} or later"),
            );
        }
        let chosen = chosen.filter(|chosen| !(self.empty_is_none && chosen.is_empty()));
        match chosen {
            Some(chosen) if !chosen.split(',').any(|one| one.trim() == plugin) => self.check.warn(
                format!("{name} {version} does not load it: {variable}={chosen} leaves it out"),
                format!("add {plugin} to {variable}"),
            ),
            _ => self.check.ok(format!("loaded by {name} {version}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Status;

    #[test]
    fn the_plugin_is_loaded_unless_the_engine_is_too_old_or_a_variable_leaves_it_out() {
        let installed = |version: &str| format!("sglang-plugin sa_profile\nsglang {version}");
        for (said, chosen, status, found) in [
            ("-".to_owned(), None, Status::Ok, "not installed"),
            (
                "sglang-plugin sa_profile".to_owned(),
                None,
                Status::Ok,
                "installed, but SGLang is not",
            ),
            (
                installed("0.5.12.post1"),
                Some(""),
                Status::Ok,
                "loaded by SGLang 0.5.12.post1",
            ),
            (
                installed("0.6.0rc1"),
                Some("other, sa_profile"),
                Status::Ok,
                "loaded by SGLang 0.6.0rc1",
            ),
            (
                installed("0.5.9"),
                None,
                Status::Warn,
                "SGLang 0.5.9 does not load plugins",
            ),
            (
                installed("0.5.23"),
                Some("other"),
                Status::Warn,
                "SGLang 0.5.23 does not load it: SGLANG_PLUGINS=other leaves it out",
            ),
        ] {
            let lookup = |name: &str| {
                let chosen = chosen.filter(|_| name == "SGLANG_PLUGINS");
                chosen.map(str::to_owned)
            };
            let finding = examine(Some(&said), lookup).nth(1).unwrap();
            assert_eq!((finding.status, &*finding.found), (status, found));
        }
        // For vLLM, an empty list loads no plugin.
        let said = "vllm-plugin sa_profile\nvllm 0.32.0";
        let finding = examine(Some(said), |_| Some(String::new())).next().unwrap();
        assert_eq!(finding.hint.unwrap(), "add sa_profile to VLLM_PLUGINS");
    }
}
