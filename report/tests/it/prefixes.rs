//! What prompts have in common: small traces whose radix trees are known, and a naive count.

use crate::events::events;
use crate::oracle::Numbers;
use crate::reports::of_lines;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

const BLOCK: u64 = 16;

/// The hash of some words, one for each block: FNV.
fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What an engine records of a prompt of these words, and of 3 tokens more, which it schedules at once.
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

/// Words of a small alphabet, so that prompts meet and part everywhere.
fn by_chance() -> Vec<Value> {
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

/// Counts each way from the root by itself.
#[test]
fn a_naive_count_gives_the_same() {
    let lines = by_chance();
    let report = of_lines(&lines);
    let told = lines
        .iter()
        .filter(|line| line["name"] == "request.prompt_blocks");
    let prompts = told.map(|line| {
        let args = &line["args"];
        let [id, text] = ["request_id", "hashes"].map(|key| args[key].as_str().unwrap());
        let hashes = (0..text.len() / 16).map(|nth| text[16 * nth..][..16].to_owned());
        let [pid, ts] = ["pid", "ts"].map(|key| line[key].as_u64().unwrap());
        (pid, ts, id, hashes.collect::<Vec<_>>())
    });
    let mut prompts: Vec<_> = prompts.collect();
    prompts.sort();
    let (mut seen, mut shared) = (HashSet::new(), 0);
    let mut ways: BTreeMap<(u64, &[String]), u64> = BTreeMap::new();
    for (pid, _, _, hashes) in &prompts {
        for to in 1..=hashes.len() {
            shared += u64::from(!seen.insert((*pid, &hashes[to - 1]))) * BLOCK;
            *ways.entry((*pid, &hashes[..to])).or_default() += 1;
        }
    }
    // A node ends where no longer way has as many.
    let ends = ways.iter().filter(|((pid, way), n)| {
        let longer = ways.iter().filter(|((of, longer), _)| {
            of == pid && longer.len() == way.len() + 1 && longer.starts_with(way)
        });
        **n > 1 && longer.into_iter().all(|(_, of)| of < n)
    });
    let expected = ends.map(|((pid, way), n)| {
        let tokens = BLOCK * way.len() as u64;
        ((*pid, way.last().unwrap().clone()), (*n, tokens))
    });
    let expected: BTreeMap<(u64, String), (u64, u64)> = expected.collect();
    let of = &report.prefixes;
    assert_eq!((of.n, of.shared_tokens), (300, shared));
    assert_eq!(of.shared, expected.len() as u64);
    assert_eq!(of.prefixes.len(), expected.len().min(100));
    for of in &of.prefixes {
        let pid = u64::try_from(report.recorded.processes[of.engine].pid).unwrap();
        let found = (of.requests, of.tokens);
        assert_eq!(expected[&(pid, of.prefix.clone())], found);
        assert!(of.hit_tokens.unwrap_or(0) <= of.saved_tokens, "{of:?}");
    }
    let saves: Vec<u64> = of.prefixes.iter().map(|of| of.saved_tokens).collect();
    assert!(saves.is_sorted_by(|one, other| one >= other), "{saves:?}");
}
