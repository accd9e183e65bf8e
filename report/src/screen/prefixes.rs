//! Prefixes that prompts share.

use super::amount::{cells, counted, figures_table, grouped, share};
use super::names::process_name;
use crate::gather::prompt_blocks::MOST_BLOCKS;
use crate::table::{Prefix, Prefixes, RunReport};

/// Maximum number of prefixes that are shown.
const PREFIXES: usize = 5;

pub(super) fn write(report: &RunReport, out: &mut String) {
    let prefixes = &report.prefixes;
    if prefixes.n == 0 {
        return;
    }
    let prompts = match prefixes.requests > prefixes.n {
        true => format!(
            "{} of {}",
            grouped(prefixes.n),
            counted(prefixes.requests, "prompt has", "prompts have")
        ),
        false => counted(prefixes.n, "prompt has", "prompts have"),
    };
    let tokens = prefixes
        .prompt_tokens
        .saturating_sub(prefixes.tokens_without_hash);
    let repeated = share(prefixes.shared_share, 1.0);
    let hit = match prefixes.cached_share {
        Some(part) => format!("cache hits: {}", share(part, 1.0)),
        None => "cache hits are not recorded".to_owned(),
    };
    out.push_str(&format!(
        "prompts    {prompts} recorded hashes; of {} tokens, at most {repeated} had been seen before by their engine; {hit}\n",
        grouped(tokens)
    ));
    write_unique(prefixes, out);
    write_prefixes(report, out);
    out.push('\n');
}

/// Writes how many tokens of a prompt no earlier prompt of its engine had.
fn write_unique(prefixes: &Prefixes, out: &mut String) {
    let unique = &prefixes.unique;
    let whole = |tokens: f64| grouped(nearest(tokens));
    out.push_str(&format!(
        "  new tokens of a prompt: p50 {}, p90 {}, p95 {}, p99 {}, at most {}\n",
        whole(unique.p50),
        whole(unique.p90),
        whole(unique.p95),
        whole(unique.p99),
        grouped(unique.max)
    ));
    if prefixes.tokens_without_hash > 0 {
        out.push_str(&format!(
            "  {} more tokens are left out: only the first blocks of a prompt have hashes, at most {MOST_BLOCKS}\n",
            grouped(prefixes.tokens_without_hash)
        ));
    }
}

/// Rounds a quantile to a whole number of tokens. The page rounds in the same way.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tokens are not negative, and a double represents them exactly"
)]
fn nearest(tokens: f64) -> u64 {
    tokens.round() as u64
}

/// Writes the prefixes that save the most tokens.
fn write_prefixes(report: &RunReport, out: &mut String) {
    let prefixes = &report.prefixes;
    if prefixes.prefixes.is_empty() {
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
        "shared prefix|prompts|tokens|own|saves|share|in cache|engine",
    )];
    rows.extend(prefixes.prefixes.iter().take(PREFIXES).map(row));
    out.push_str(&figures_table(&rows, 1..7));
    let more = prefixes.shared.saturating_sub(PREFIXES as u64);
    if more > 0 {
        let more = counted(more, "shared prefix", "shared prefixes");
        out.push_str(&format!("  {more} more (--csv prefixes)\n"));
    }
}
