//! What prompts have in common: small traces whose radix trees are known, and a naive count.

use crate::golden::of_lines;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use trace_report::screen::{self, Table};
use trace_report::{Prefix, Prefixes, RunReport};

const BLOCK: u64 = 16;

/// The hash of some words, one for each block: FNV.
fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What an engine records of a prompt of these words, and of 3 tokens more, which it schedules at once.
fn queued(pid: u64, ts: u64, id: &str, words: &[u64]) -> Vec<Value> {
    let told = words.len().min(512);
    let hashes: String = (1..=told)
        .map(|to| format!("{:016x}", hash(&words[..to])))
        .collect();
    let tokens = BLOCK * words.len() as u64 + 3;
    vec![
        at(pid, ts, "request.queued", json!({"request_id": id})),
        at(pid, ts, "request.scheduled", json!({"request_id": id})),
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
/// In the second, two have the 10 blocks, and one has more blocks than hashes.
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
    lines.push(finished(11, "h", BLOCK * 600));
    // A recorder without `resumed`: the second `scheduled` is of what the request had computed itself.
    for (ts, name, cached) in [
        (905, "scheduled", 0),
        (910, "preempted", 0),
        (920, "scheduled", 16),
    ] {
        let args = json!({"request_id": "f", "cached_tokens": cached});
        lines.push(at(11, ts, name, args));
    }
    // It was given up before it was scheduled. And one has no hashes.
    let given_up = queued(11, 450, "i", &system);
    lines.extend(
        given_up
            .into_iter()
            .filter(|line| line["name"] != "request.scheduled"),
    );
    lines.extend(
        queued(11, 460, "j", &[])
            .into_iter()
            .filter(|line| line["name"] != "request.prompt_blocks"),
    );
    lines.extend(incomplete());
    lines
}

/// What lacks something, is of another type, or does not fit. Nothing of it counts, though its requests were scheduled.
fn incomplete() -> Vec<Value> {
    let mut lines = vec![
        at(
            11,
            500,
            "request.scheduled",
            json!({"request_ids": ["z", "y", 7, true, -1]}),
        ),
        at(11, 500, "request.scheduled", json!({"request_id": 1.5})),
    ];
    for (name, values) in [
        ("request_id", json!([true, -1, 1.5])),
        ("request_ids", json!([["z", "y"], []])),
        ("prompt_tokens", json!([true, -1, 1.5, "40", 31])),
        ("block_tokens", json!([true, -1, 1.5])),
        ("blocks", json!([true, -1, 1.5])),
        (
            "hashes",
            json!([true, -1, 1.5, "", 7, "00000000000000f", "0".repeat(48)]),
        ),
    ] {
        let mut args = json!({"request_id": "z", "prompt_tokens": 40, "block_tokens": 16, "blocks": 2, "hashes": "00000000000000ff"});
        let absent = name.strip_suffix('s').filter(|one| *one == "request_id");
        args.as_object_mut().unwrap().remove(absent.unwrap_or(name));
        lines.push(at(11, 510, "request.prompt_blocks", args.clone()));
        for value in values.as_array().unwrap() {
            args[name] = value.clone();
            lines.push(at(11, 510, "request.prompt_blocks", args.clone()));
        }
    }
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
    // Of c 160 and 16, of b 100; a computed all of it, and of d the trace does not say.
    let expected = [
        (first.clone(), 4, 160, 160, 480, Some(260)),
        (second, 2, 160, 160, 160, Some(0)),
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
    assert_eq!(of.tokens_without_hash, BLOCK * (600 - 512));
    let counted = of.prompt_tokens - of.tokens_without_hash;
    assert_eq!(of.shared_share, 672.0 / counted as f64);
    // With the one that has no hashes, and those of incomplete events; not the one that was given up.
    assert_eq!(of.requests, 9 + 3);
    // Of a 0, of c 176, of b 100 and of f 0; of e and h no more than what has hashes.
    let cached = 176 + 100 + BLOCK * (2 + 512);
    assert_eq!(of.cached_tokens, cached);
    let of_tokens = BLOCK * (13 + 13 + 11 + 2 + 10 + 512) + 6 * 3;
    assert_eq!(of.cached_share, Some(cached as f64 / of_tokens as f64));
    // a 211, b 19, c 19, d 3, e 35, g 163, f 3, h 8195
    let unique = of.unique;
    assert_eq!((unique.p50, unique.max), (27.0, 8195));
    assert_eq!(
        unique.mean,
        f64::from(211 + 19 + 19 + 3 + 35 + 163 + 3 + 8195) / 8.0
    );
    let text = screen::text(&report);
    for words in [
        "prompts    8 of 12 prompts have recorded hashes; of 9,320 tokens at best 7.2 % were seen before in their engine, the cache had 94.5 %\n",
        "  tokens of a prompt not seen before: p50 27, p90 2,606, ",
        "  1,408 more tokens are left out: only the first blocks of a prompt have hashes, at most 512\n",
        "        4     160  160    480   5.2 %        260  EngineCore_DP0\n",
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
fn nothing_is_said_where_no_blocks_have_hashes() {
    let mut lines = in_common();
    lines.retain(|line| line["name"] != "request.prompt_blocks");
    // Nor of a span of that name.
    lines.push(json!({"ph": "X", "pid": 10, "tid": 1, "ts": 1, "dur": 5, "name": "request.prompt_blocks", "args": {"request_id": "x", "prompt_tokens": 20, "block_tokens": 16, "blocks": 1, "hashes": "00000000000000ff"}}));
    let report = of_lines(&lines);
    let of_none = Prefixes {
        requests: 12,
        ..Prefixes::default()
    };
    assert_eq!(report.prefixes, of_none);
    assert!(!screen::text(&report).contains("seen before"));
}

#[test]
fn ties_are_in_the_order_of_processes() {
    let two =
        |pid: u64| (0..2).flat_map(move |nth| queued(pid, nth, &format!("{pid} {nth}"), &[7]));
    let found = of_lines(&(1..=20).flat_map(two).collect::<Vec<_>>());
    let engines = found.prefixes.prefixes.iter().map(|of| of.engine);
    assert_eq!(engines.collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
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
