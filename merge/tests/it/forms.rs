//! The ways of reading a line agree: by the front it shares with an earlier line, by its own front, and as a line of which nothing is
//! known. The same events go each way, and come out as the same bytes and in the same report.

use crate::full::cases;
use crate::invocation::RunDir;
use crate::random::{Rng, lines};
use format_oracle::writer::{Fragment, Process};
use serde_json::Value;

const CASES: u64 = 100;
/// What a worker takes at a time: lines that stand so far behind the header are in another portion than it.
const PORTION: usize = 1 << 20;

/// Which way lines go in the first and the second pass.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// By shared fronts in both passes.
    Shared,
    /// By shared fronts, then each by its own: something foreign stands beside them.
    Own,
    /// Scanned.
    Foreign,
}

/// The slot and the lines of each block.
type Blocks = Vec<(u32, Vec<u8>)>;

fn fragment(process: &Process, blocks: &Blocks, way: Way) -> Fragment {
    let mut fragment = process.fragment();
    if matches!(way, Way::Shared) {
        fragment.raw(&vec![b'\n'; PORTION]);
    }
    let mut positions = [0; 3];
    for (slot, content) in blocks {
        let position = &mut positions[*slot as usize];
        match way {
            Way::Foreign => _ = fragment.raw(content),
            Way::Shared | Way::Own => *position = fragment.block(*slot, *position, content),
        }
        fragment.raw(b"\n\n\n");
    }
    fragment
}

/// The lines of the trace that hold events, and what the report says of them.
fn merged(process: &Process, blocks: &Blocks, way: Way) -> (Vec<String>, Vec<Value>) {
    let merged = RunDir::of(&fragment(process, blocks, way)).merge();
    let text = String::from_utf8(merged.bytes).unwrap();
    let events = text.lines().filter(|line| line.starts_with(r#"{"ph":"#));
    let events = events.map(|line| line.trim_end_matches(',').to_owned());
    let told = "events_total events_by_phase processes damage_by_kind unfinished_spans lost_events \
        base_ns overlapping_spans rows_added";
    let told = told.split(' ').map(|key| merged.report.0[key].clone());
    (events.collect(), told.collect())
}

/// Blocks of lines of a thread, with lines of a lane among them.
fn random_blocks(process: &Process, rng: &mut Rng) -> Blocks {
    let mut blocks = Blocks::new();
    for _ in 0..1 + rng.below(12) {
        let slot = u32::try_from(rng.below(3)).unwrap();
        let mut content = Vec::new();
        for _ in 0..1 + rng.below(8) {
            let tid = match rng.one_in(3) {
                true => (1 << 22) + slot,
                false => process.pid + slot,
            };
            content.extend(lines(rng, process.thread(tid), 8));
        }
        blocks.push((slot, content));
    }
    blocks
}

/// Asserts that blocks are the same events and report whichever way they go; gives these.
fn assert_same_bytes(process: &Process, blocks: &Blocks, what: &str) -> (Vec<String>, Vec<Value>) {
    let shared = merged(process, blocks, Way::Shared);
    for way in [Way::Own, Way::Foreign] {
        assert_eq!(shared, merged(process, blocks, way), "{what}: {way:?}");
    }
    shared
}

#[test]
fn every_way_gives_the_same_bytes() {
    let (mut events, mut moved) = (0, 0);
    let cases = cases(CASES);
    for seed in 0..cases {
        let process = Process::new(7000);
        let blocks = random_blocks(&process, &mut Rng::new(seed));
        let shared = assert_same_bytes(&process, &blocks, &seed.to_string());
        events += shared.0.len() as u64;
        moved += u64::from(shared.1.last().and_then(Value::as_u64) > Some(0));
    }
    assert!(events > 50 * cases, "{events}");
    assert!(moved > cases / 10, "{moved} runs with spans that clash");
}

/// What begins like another line may go on differently.
#[test]
fn a_front_vouches_for_nothing_behind_the_time() {
    let process = Process::new(7000);
    let on = process.main_thread();
    let lines = [
        on.span(5_000_000_000, 1000, "a", r#""n":1"#),
        on.instant(5_000_000_000, "a", r#""n":1"#),
        on.counter(5_000_000_000, "a", r#""n":1"#),
        on.flow("s", 5_000_000_000, "local", 7),
    ];
    let rests = [
        r#","dur":2.000,"name":"as it should","cat":""}"#,
        r#","dur":1.5,"name":"one decimal","cat":""}"#,
        r#","dur":7,"name":"none","cat":""}"#,
        r#","name":"later","cat":"","dur":2.000,"s":"t","id2":{"local":"0x5"}}"#,
        r#"1,"dur":2.000,"name":"four decimals","cat":"","s":"t"}"#,
        r#","dur":2.000,"name":"space behind","cat":"","s":"t"} "#,
        r#","dur":-2.000,"name":"negative","cat":""}"#,
        r#","dur":2.000,"name":"not closed","cat":"""#,
        r#","s":"t","name":"sa_loss","cat":"sa_profile","args":{"cause":"disk_full","events":3}}"#,
        r#","s":"thread","name":"odd","cat":""}"#,
        r#","s":"g","name":"quote \" in it","cat":""}"#,
        r#","id2":{"global":"0xf"},"name":"request","cat":"flow"}"#,
        r#","id2":{"global":"a text"},"name":"request","cat":"flow"}"#,
        r#","id2":{"other":1},"name":"request","cat":"flow"}"#,
        r#","id":7,"name":"request","cat":"flow"}"#,
        r#","name":"request","cat":"flow"}"#,
        "}\r",
        "}",
        "",
    ];
    for line in &lines {
        let at = line.find(r#","ts":5000000.000"#).unwrap() + r#","ts":5000000.000"#.len();
        let content = |rest| format!("{line}\n{}{rest}\n{line}\n", &line[..at]);
        let content: String = rests.into_iter().map(content).collect();
        assert_same_bytes(&process, &vec![(0, content.into_bytes())], line);
    }
}
