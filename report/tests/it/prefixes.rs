//! What prompts have in common: small traces whose radix trees are known, and a naive count.

use crate::golden::of_lines;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use trace_report::screen::{self, Table};
use trace_report::{Prefix, RunReport};

const BLOCK: u64 = 16;

/// The hash of some words, one for each block: FNV.
fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What an engine tells of a prompt of these words, and of 3 tokens more.
fn queued(pid: u64, ts: u64, id: &str, words: &[u64]) -> Vec<Value> {
    let told = words.len().min(512);
    let hashes: String = (1..=told)
        .map(|to| format!("{:016x}", hash(&words[..to])))
        .collect();
    let tokens = BLOCK * words.len() as u64 + 3;
    vec![
        at(pid, ts, "request.queued", json!({"request_id": id})),
        at(
            pid,
            ts,
            "request.prompt_blocks",
            json!({"request_id": id, "prompt_tokens": tokens, "block_tokens": BLOCK, "blocks": words.len(), "hashes": hashes}),
        ),
    ]
}

fn at(pid: u64, ts: u64, name: &str, args: Value) -> Value {
    json!({"ph": "i", "pid": pid, "tid": 1, "ts": ts, "s": "t", "name": name, "args": args})
}

fn finished(pid: u64, id: &str, cached: u64) -> Value {
    let args = json!({"request_id": id, "reason": "stop", "cached_tokens": cached});
    at(pid, 1_000_000, "request.finished", args)
}

/// Two engines. In the first, four prompts begin with 10 blocks, two of them go on together for 2; one has nothing in common with them.
/// In the second, two have the 10 blocks, and one has more blocks than are told.
pub(crate) fn in_common() -> Vec<Value> {
    let system: Vec<u64> = (0..10).collect();
    let with = |more: &[u64]| [&system, more].concat();
    let mut lines = vec![
        json!({"ph": "M", "pid": 10, "name": "process_name", "args": {"name": "EngineCore_DP0"}}),
        json!({"ph": "M", "pid": 11, "name": "process_name", "args": {"name": "EngineCore_DP1"}}),
    ];
    let first = [
        ("a", with(&[20, 21, 22]), Some(0)),
        // Queued at one time: the one with the lesser id counts as the earlier one.
        ("c", with(&[20, 21, 30]), Some(176)),
        ("b", with(&[40]), Some(100)),
        ("d", system.clone(), None),
        ("e", vec![50, 51], Some(500)),
    ];
    for (nth, (id, words, cached)) in (0_u64..).zip(first) {
        let ts = nth.min(1) + 7 * nth.saturating_sub(2);
        lines.extend(queued(10, ts, id, &words));
        lines.extend(cached.map(|cached| finished(10, id, cached)));
    }
    // What a preempted request had computed itself is no hit of the cache.
    lines.push(at(
        10,
        900,
        "request.resumed",
        json!({"request_id": "b", "cached_tokens": 170}),
    ));
    let long: Vec<u64> = (100..700).collect();
    lines.extend(queued(11, 300, "f", &system));
    lines.extend(queued(11, 200, "g", &system));
    lines.extend(queued(11, 400, "h", &long));
    lines
}

fn named(report: &RunReport, of: &Prefix) -> (String, u64, u64, u64, u64, Option<u64>) {
    let engine = report.recorded.processes[of.engine].name.clone().unwrap();
    (
        engine,
        of.requests,
        of.tokens,
        of.own_tokens,
        of.saved_tokens,
        of.hit_tokens,
    )
}

#[test]
fn prompts_share_the_nodes_of_a_radix_tree() {
    let report = of_lines(&in_common());
    let of = &report.prefixes;
    let found: Vec<_> = of.prefixes.iter().map(|of| named(&report, of)).collect();
    let (first, second) = ("EngineCore_DP0".to_owned(), "EngineCore_DP1".to_owned());
    // Of c 160 and 16, of b 100; a computed all of it, and of d nothing is told.
    let expected = [
        (first.clone(), 4, 160, 160, 480, Some(260)),
        (second, 2, 160, 160, 160, None),
        (first, 2, 192, 32, 32, Some(16)),
    ];
    assert_eq!(found, expected);
    let system: Vec<u64> = (0..10).collect();
    assert_eq!(of.prefixes[0].prefix, format!("{:016x}", hash(&system)));
    assert_eq!(of.prefixes[0].prefix, of.prefixes[1].prefix);
    let blocks = 13 + 13 + 11 + 10 + 2 + 10 + 10 + 600;
    assert_eq!(
        (of.n, of.shared, of.prompt_tokens, of.shared_tokens),
        (8, 3, BLOCK * blocks + 8 * 3, 480 + 160 + 32)
    );
    let saved: u64 = of.prefixes.iter().map(|of| of.saved_tokens).sum();
    assert_eq!(saved, of.shared_tokens);
    assert_eq!(of.untold_tokens, BLOCK * (600 - 512));
    // a, c, b and e tell what the cache had.
    assert_eq!(of.cached_tokens, 776);
    let of_tokens = BLOCK * (13 + 13 + 11 + 2) + 4 * 3;
    assert_eq!(of.cached_share, Some(776.0 / of_tokens as f64));
    // a 211, b 19, c 19, d 3, e 35, g 163, f 3, h 9603
    let unique = of.unique;
    assert_eq!((unique.p50, unique.max), (27.0, 9603));
    assert_eq!(
        unique.mean,
        f64::from(211 + 19 + 19 + 3 + 35 + 163 + 3 + 9603) / 8.0
    );
    let text = screen::text(&report);
    for words in [
        "prompts    8 prompts, 10,728 tokens; at best 6.3 % were seen before in their engine, the prefix cache had 122.0 %\n",
        "  tokens of a prompt not seen before: p50 27, ",
        "  1,408 tokens lie behind the blocks that are told of their prompts, and count as not seen before\n",
        "        4     160  160    480   4.5 %        260  EngineCore_DP0\n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let csv = screen::table_csv(&report, Table::Prefixes).unwrap();
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("engine,hit_tokens,own_tokens,prefix,requests,saved_share,saved_tokens,tokens")
    );
    assert!(lines.next().unwrap().starts_with("EngineCore_DP0"), "{csv}");
    assert_eq!(lines.count(), 2);
}

#[test]
fn nothing_is_said_where_no_blocks_are_told() {
    let mut lines = in_common();
    lines.retain(|line| line["name"] != "request.prompt_blocks");
    // Neither of a span of that name, nor of one whose args are no blocks.
    lines.push(json!({"ph": "X", "pid": 10, "tid": 1, "ts": 1, "dur": 5, "name": "request.prompt_blocks", "args": {"request_id": "x", "prompt_tokens": 20, "block_tokens": 16, "blocks": 1, "hashes": "00000000000000ff"}}));
    lines.push(at(
        10,
        2,
        "request.prompt_blocks",
        json!({"request_id": "y", "hashes": 7}),
    ));
    lines.push(at(
        10,
        2,
        "request.prompt_blocks",
        json!({"request_id": "y", "hashes": "00000000000000ff"}),
    ));
    let report = of_lines(&lines);
    assert_eq!(report.prefixes, Default::default());
    assert!(!screen::text(&report).contains("seen before"));
}

/// Words of a small alphabet, so that prompts meet and part everywhere.
pub(crate) fn by_chance() -> Vec<Value> {
    let mut state = 7_u64;
    let mut chance = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut lines = Vec::new();
    for nth in 0..300 {
        let words: Vec<u64> = (0..1 + chance(9)).map(|_| chance(3)).collect();
        let (pid, id) = (10 + chance(2), format!("r{nth}"));
        lines.extend(queued(pid, chance(100) * u64::from(nth > 0), &id, &words));
        if chance(3) > 0 {
            lines.push(finished(pid, &id, BLOCK * chance(10)));
        }
    }
    lines
}

/// Counts each way from the root by itself.
#[test]
fn a_naive_count_gives_the_same() {
    let lines = by_chance();
    let report = of_lines(&lines);
    let told = lines
        .iter()
        .filter(|line| line["name"] == "request.prompt_blocks");
    let mut prompts: Vec<(u64, u64, String, Vec<String>)> = told
        .map(|line| {
            let args = &line["args"];
            let text = args["hashes"].as_str().unwrap();
            let hashes = (0..text.len() / 16).map(|nth| text[16 * nth..][..16].to_owned());
            (
                line["pid"].as_u64().unwrap(),
                line["ts"].as_u64().unwrap(),
                args["request_id"].as_str().unwrap().to_owned(),
                hashes.collect(),
            )
        })
        .collect();
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
    let expected: BTreeMap<(u64, String), (u64, u64)> = ends
        .map(|((pid, way), n)| {
            let tokens = BLOCK * way.len() as u64;
            ((*pid, way.last().unwrap().clone()), (*n, tokens))
        })
        .collect();
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
