//! Prefixes that prompts share, in small traces with known radix trees, and compared with a naive count.

use crate::events::events;
use crate::oracle::Numbers;
use crate::reports::report_from_events;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

const BLOCK: u64 = 16;

/// Returns the FNV hash of some words, one for each block.
fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the events of a prompt with these words and 3 more tokens, which the engine schedules at once.
fn queued(pid: u64, ts: u64, id: &str, words: &[u64]) -> String {
    let hashes = (1..=words.len()).map(|to| format!("{:016x}", hash(&words[..to])));
    let (hashes, blocks) = (hashes.collect::<String>(), words.len());
    let tokens = BLOCK * words.len() as u64 + 3;
    format!(
        "i {pid} {ts} request.queued request_id={id}
        i {pid} {ts} request.scheduled request_id={id}
        i {pid} {ts} request.prompt_blocks request_id={id} prompt_tokens={tokens} block_tokens=16 blocks={blocks} hashes='{hashes}'\n"
    )
}

fn finished(pid: u64, id: &str, cached: u64) -> String {
    format!("i {pid} 1000000 request.finished request_id={id} reason=stop cached_tokens={cached}\n")
}

/// Returns prompts of random words from a small alphabet, so that they share many prefixes and diverge at any block.
fn random_prompts() -> Vec<Value> {
    let mut numbers = Numbers::new(7);
    let mut text = String::new();
    for nth in 0..300 {
        let count = 1 + numbers.below(9);
        let words: Vec<u64> = (0..count).map(|_| numbers.below(3)).collect();
        let (pid, id) = (10 + numbers.below(2), format!("r{nth}"));
        let ts = numbers.below(100) * u64::from(nth > 0);
        text += &queued(pid, ts, &id, &words);
        if numbers.below(3) > 0 {
            text += &finished(pid, &id, BLOCK * numbers.below(10));
        }
    }
    events(&text)
}

/// Counts each path from the root separately.
#[test]
fn prefixes_equal_a_naive_count() {
    let lines = random_prompts();
    let report = report_from_events(&lines);
    let recorded = lines
        .iter()
        .filter(|line| line["name"] == "request.prompt_blocks");
    let prompts = recorded.map(|line| {
        let args = &line["args"];
        let [id, text] = ["request_id", "hashes"].map(|key| args[key].as_str().unwrap());
        let hashes = (0..text.len() / 16).map(|nth| text[16 * nth..][..16].to_owned());
        let [pid, ts] = ["pid", "ts"].map(|key| line[key].as_u64().unwrap());
        (pid, ts, id, hashes.collect::<Vec<_>>())
    });
    let mut prompts: Vec<_> = prompts.collect();
    prompts.sort();
    let (mut distinct, mut shared) = (HashSet::new(), 0);
    let mut paths: BTreeMap<(u64, &[String]), u64> = BTreeMap::new();
    for (pid, _, _, hashes) in &prompts {
        for to in 1..=hashes.len() {
            shared += u64::from(!distinct.insert((*pid, &hashes[to - 1]))) * BLOCK;
            *paths.entry((*pid, &hashes[..to])).or_default() += 1;
        }
    }
    // A node ends where no longer path is shared by as many prompts.
    let ends = paths.iter().filter(|((pid, path), n)| {
        let longer = paths.iter().filter(|((other, longer), _)| {
            other == pid && longer.len() == path.len() + 1 && longer.starts_with(path)
        });
        **n > 1 && longer.into_iter().all(|(_, other)| other < n)
    });
    let expected = ends.map(|((pid, path), n)| {
        let tokens = BLOCK * path.len() as u64;
        ((*pid, path.last().unwrap().clone()), (*n, tokens))
    });
    let expected: BTreeMap<(u64, String), (u64, u64)> = expected.collect();
    let prefixes = &report.prefixes;
    assert_eq!((prefixes.n, prefixes.shared_tokens), (300, shared));
    assert_eq!(prefixes.shared, expected.len() as u64);
    assert_eq!(prefixes.prefixes.len(), expected.len().min(100));
    for prefix in &prefixes.prefixes {
        let pid = u64::try_from(report.recorded.processes[prefix.engine].pid).unwrap();
        let found = (prefix.requests, prefix.tokens);
        assert_eq!(expected[&(pid, prefix.prefix.clone())], found);
        assert!(
            prefix.hit_tokens.unwrap_or(0) <= prefix.saved_tokens,
            "{prefix:?}"
        );
    }
    let saves = prefixes.prefixes.iter().map(|prefix| prefix.saved_tokens);
    let saves: Vec<u64> = saves.collect();
    assert!(saves.is_sorted_by(|one, other| one >= other), "{saves:?}");
}
