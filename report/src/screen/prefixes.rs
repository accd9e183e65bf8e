//! What prompts have in common.

use super::amount::{cells, counted, figures_table, grouped, share};
use super::names::process_name;
use crate::gather::prompt_blocks::MOST_BLOCKS;
use crate::table::{Prefix, Prefixes, RunReport};

/// Prefixes that are shown.
const PREFIXES: usize = 5;

pub(super) fn put(report: &RunReport, out: &mut String) {
    let of = &report.prefixes;
    if of.n == 0 {
        return;
    }
    let prompts = match of.requests > of.n {
        true => format!(
            "{} of {}",
            grouped(of.n),
            counted(of.requests, "prompt has", "prompts have")
        ),
        false => counted(of.n, "prompt has", "prompts have"),
    };
    let tokens = of.prompt_tokens.saturating_sub(of.tokens_without_hash);
    let seen = share(of.shared_share, 1.0);
    let hit = match of.cached_share {
        Some(part) => format!("the cache had {}", share(part, 1.0)),
        None => "the trace does not say what the cache had".to_owned(),
    };
    out.push_str(&format!(
        "prompts    {prompts} recorded hashes; of {} tokens at best {seen} were seen before in their engine, {hit}\n",
        grouped(tokens)
    ));
    put_unique(of, out);
    put_prefixes(report, out);
    out.push('\n');
}

fn put_unique(of: &Prefixes, out: &mut String) {
    let unique = &of.unique;
    let whole = |tokens: f64| grouped(nearest(tokens));
    out.push_str(&format!(
        "  tokens of a prompt not seen before: p50 {}, p90 {}, p95 {}, p99 {}, at most {}\n",
        whole(unique.p50),
        whole(unique.p90),
        whole(unique.p95),
        whole(unique.p99),
        grouped(unique.max)
    ));
    if of.tokens_without_hash > 0 {
        out.push_str(&format!(
            "  {} more tokens are left out: only the first blocks of a prompt have hashes, at most {MOST_BLOCKS}\n",
            grouped(of.tokens_without_hash)
        ));
    }
}

/// The nearest whole number of tokens; the page rounds the same way.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tokens are not negative, and a double has them exactly"
)]
fn nearest(tokens: f64) -> u64 {
    tokens.round() as u64
}

/// The prefixes that save most.
fn put_prefixes(report: &RunReport, out: &mut String) {
    let of = &report.prefixes;
    if of.prefixes.is_empty() {
        return;
    }
    let row = |prefix: &Prefix| {
        vec![
            prefix.prefix.clone(),
            grouped(prefix.requests),
            grouped(prefix.tokens),
            grouped(prefix.own_tokens),
            grouped(prefix.saved_tokens),
            share(prefix.saved_share, 1.0),
            prefix.hit_tokens.map(grouped).unwrap_or_default(),
            process_name(report, prefix.engine),
        ]
    };
    let mut rows = vec![cells(
        "shared prefix|prompts|tokens|own|saves|of all|cache had|in",
    )];
    rows.extend(of.prefixes.iter().take(PREFIXES).map(row));
    out.push_str(&figures_table(&rows, 1..7));
    let more = of.shared.saturating_sub(PREFIXES as u64);
    if more > 0 {
        let more = counted(more, "shared prefix", "shared prefixes");
        out.push_str(&format!("  {more} more (--csv prefixes)\n"));
    }
}
