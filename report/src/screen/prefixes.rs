//! What prompts have in common.

use super::amount::{counted, grouped, share, table};
use super::names::shown;
use crate::table::request::prefixes::{Prefix, Prefixes};
use crate::table::run_report::RunReport;

/// Prefixes that are shown.
const PREFIXES: usize = 5;

pub(super) fn put(report: &RunReport, out: &mut String) {
    let of = &report.prefixes;
    if of.n == 0 {
        return;
    }
    let prompts = counted(of.n, "prompt", "prompts");
    let tokens = grouped(of.prompt_tokens);
    let seen = share(of.shared_tokens as f64, of.prompt_tokens as f64);
    let hit = match of.cached_share {
        Some(part) => format!("the prefix cache had {}", share(part, 1.0)),
        None => "the trace does not say what the prefix cache had".to_owned(),
    };
    out.push_str(&format!(
        "prompts    {prompts}, {tokens} tokens; at best {seen} were seen before in their engine, {hit}\n"
    ));
    put_unique(of, out);
    put_prefixes(report, out);
    out.push('\n');
}

fn put_unique(of: &Prefixes, out: &mut String) {
    let unique = &of.unique;
    out.push_str(&format!(
        "  tokens of a prompt not seen before: p50 {:.0}, p90 {:.0}, p95 {:.0}, p99 {:.0}, at most {}\n",
        unique.p50,
        unique.p90,
        unique.p95,
        unique.p99,
        grouped(unique.max)
    ));
    if of.untold_tokens > 0 {
        out.push_str(&format!(
            "  {} tokens lie behind the blocks that are told of their prompts, and count as not seen before\n",
            grouped(of.untold_tokens)
        ));
    }
}

/// The prefixes that save most.
fn put_prefixes(report: &RunReport, out: &mut String) {
    let of = &report.prefixes;
    if of.prefixes.is_empty() {
        return;
    }
    let head = [
        "shared prefix",
        "prompts",
        "tokens",
        "own",
        "saves",
        "of all",
        "cache had",
        "in",
    ];
    let row = |prefix: &Prefix| {
        vec![
            prefix.prefix.clone(),
            grouped(prefix.requests),
            grouped(prefix.tokens),
            grouped(prefix.own_tokens),
            grouped(prefix.saved_tokens),
            share(prefix.saved_share, 1.0),
            prefix.hit_tokens.map(grouped).unwrap_or_default(),
            shown(&report.recorded.process_name(prefix.engine)),
        ]
    };
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(of.prefixes.iter().take(PREFIXES).map(row));
    out.push_str(&table(&rows, 1..7));
    let more = of.shared.saturating_sub(PREFIXES as u64);
    if more > 0 {
        let more = counted(more, "shared prefix", "shared prefixes");
        out.push_str(&format!("  {more} more (--csv prefixes)\n"));
    }
}
