//! Calls in the [format of callgrind](https://valgrind.org/docs/manual/cl-format.html).

use crate::table::{RunReport, subtrees_ns};
use std::collections::BTreeMap;

/// What is called from a function: calls, and the time of all that they did.
#[derive(Default)]
struct Called {
    calls: u64,
    inclusive_ns: i64,
}

/// A name in a process.
#[derive(Default)]
struct Function<'a> {
    self_ns: i64,
    called: BTreeMap<&'a str, Called>,
}

/// Every name of a process is a function of a file that is called as the process. There are no lines.
pub(super) fn text(report: &RunReport) -> String {
    let mut functions: BTreeMap<(usize, &str), Function<'_>> = BTreeMap::new();
    let inclusive_ns = subtrees_ns(&report.stacks);
    for (stack, inclusive_ns) in report.stacks.iter().zip(inclusive_ns) {
        let function = functions.entry((stack.process, &stack.name)).or_default();
        function.self_ns = function.self_ns.saturating_add(stack.tsub_ns);
        if let Some(parent) = stack.parent.map(|parent| &report.stacks[parent]) {
            let around = functions.entry((parent.process, &parent.name)).or_default();
            let called = around.called.entry(&stack.name).or_default();
            called.calls += stack.ncall;
            called.inclusive_ns = called.inclusive_ns.saturating_add(inclusive_ns);
        }
    }
    let all = functions.values();
    let total = all.fold(0_i64, |sum, of| sum.saturating_add(of.self_ns));
    let mut out = format!(
        "# callgrind format\nversion: 1\ncreator: sa-profile {}\npositions: line\nevents: ns\nsummary: {total}\n",
        env!("CARGO_PKG_VERSION")
    );
    for ((process, name), function) in &functions {
        let file = report.recorded.process_name(*process);
        out.push_str(&format!("\nfl={file}\nfn={name}\n0 {}\n", function.self_ns));
        for (name, called) in &function.called {
            let (calls, ns) = (called.calls, called.inclusive_ns);
            out.push_str(&format!("cfn={name}\ncalls={calls} 0\n0 {ns}\n"));
        }
    }
    out
}
