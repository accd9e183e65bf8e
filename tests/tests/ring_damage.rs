//! A killed process's ring that is gone, cut or corrupted: only its tail is missing, that is counted, and every line of the fragment survives.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::chance::{Chance, rounds};
use e2e::ledger::{Event, Seen, judge};
use e2e::merged;
use e2e::order::{Ending, Order, Pattern};
use e2e::victim::{Victim, copy_fragments};
use format_oracle::reader::{checked_state, read_dir_as};

const VICTIM: &str = env!("CARGO_BIN_EXE_victim");
const THREADS: usize = 2;
/// Where FORMAT.md §3 puts the slot directory's offset, and in a slot the state and the flushed position.
const DIRECTORY_OFFSET_AT: usize = 52;
const DIRECTORY_COUNT_AT: usize = 56;
const FLUSHED_AT: usize = 8;
/// Where a slot's lines begin.
const CONTROL_BYTES: usize = 4096;

type Damage = fn(&Path);
type Spans = BTreeSet<(Option<usize>, Option<u64>)>;

/// A killed victim whose ring holds spans that its fragment does not.
struct Scene {
    victim: Victim,
    /// Spans of the whole recording, and of the fragment alone.
    all: Spans,
    in_fragment: Spans,
    cases: usize,
}

/// What one reader found in a damaged copy.
struct Found {
    reader: &'static str,
    spans: Vec<Event>,
    damage: Vec<String>,
}

fn spans_of(spans: &[Event]) -> Spans {
    spans
        .iter()
        .map(|event| (event.args.thread(), event.args.number()))
        .collect()
}

impl Scene {
    fn new() -> Scene {
        let mut chance = Chance::new();
        for _ in 0..100 {
            let order = Order {
                threads: THREADS,
                pattern: Pattern::Flat,
                ending: Ending::Never,
            };
            let mut victim = Victim::start(VICTIM, order).unwrap();
            victim.wait_ready().unwrap();
            std::thread::sleep(chance.pause(Duration::from_millis(3)));
            victim.kill().unwrap();
            let seen = Seen::by_second_reader(read_dir_as(&victim.directory()));
            let verdict = judge(&seen, &victim.progress, THREADS);
            assert!(verdict.is_clean(), "before any damage: {verdict}");
            let mut scene = Scene {
                victim,
                all: spans_of(&seen.spans),
                in_fragment: Spans::new(),
                cases: 0,
            };
            let [without_ring, _] = scene.find("baseline", |ring| fs::remove_file(ring).unwrap());
            scene.in_fragment = spans_of(&without_ring.spans);
            // A block that the kill cut short is in the ring too, and the ring's copy is the one that counts (FORMAT.md §4.6).
            let cut_short = without_ring
                .damage
                .iter()
                .any(|damage| damage.starts_with("bad_block"));
            if !cut_short
                && scene.in_fragment.len() + 100 < scene.all.len()
                && !scene.in_fragment.is_empty()
            {
                return scene;
            }
        }
        panic!("no victim of 100 left spans both in its fragment and in its ring");
    }

    fn ring_bytes(&self) -> Vec<u8> {
        fs::read(ring_of(&self.victim.directory())).unwrap()
    }

    /// Copies the recording, damages the copy's ring, and reads it with both readers.
    fn find(&mut self, case: &str, damage: impl Fn(&Path)) -> [Found; 2] {
        let copy = self.victim.scratch(&format!("copy {case} {}", self.cases));
        self.cases += 1;
        copy_fragments(&self.victim.directory(), &copy).unwrap();
        damage(&ring_of(&copy));
        let second = Seen::by_second_reader(read_dir_as(&copy));
        let second = Found {
            reader: "second reader",
            spans: second.spans,
            damage: second.damage,
        };
        let merge = merged::merge(&copy, &copy.join("trace.json"));
        fs::remove_dir_all(&copy).unwrap();
        [
            second,
            Found {
                reader: "merge",
                spans: merge.spans,
                damage: merge.damage,
            },
        ]
    }

    /// Checks that the fragment's lines survived and that no span shows twice; returns how many spans each reader missed.
    fn check(&self, case: &str, found: &[Found; 2]) -> [usize; 2] {
        self.check_but(0, case, found)
    }

    /// The same, but `doubles` spans may show twice.
    fn check_but(&self, doubles: usize, case: &str, found: &[Found; 2]) -> [usize; 2] {
        for found in found {
            let distinct = spans_of(&found.spans).len();
            assert!(
                distinct + doubles >= found.spans.len(),
                "{case}: {} shows {} of {distinct} spans twice",
                found.reader,
                found.spans.len() - distinct
            );
        }
        found.each_ref().map(|found| {
            let (spans, who) = (spans_of(&found.spans), found.reader);
            assert!(
                spans.is_superset(&self.in_fragment),
                "{case}: {who} lost lines of the fragment"
            );
            self.all.difference(&spans).count()
        })
    }

    /// Checks a case in which whatever is missing must be counted as damage.
    fn check_counted(&self, case: &str, found: &[Found; 2]) -> [usize; 2] {
        let missing = self.check(case, found);
        for (found, missing) in found.iter().zip(missing) {
            assert!(
                missing == 0 || !found.damage.is_empty(),
                "{case}: {} misses {missing} spans and reports no damage",
                found.reader
            );
        }
        missing
    }
}

fn ring_of(run: &Path) -> PathBuf {
    let entries = fs::read_dir(run.join("fragments")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let is_ring = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "ring")
    };
    paths.find(is_ring).unwrap()
}

fn patch(ring: &Path, at: usize, bytes: &[u8]) {
    let mut contents = fs::read(ring).unwrap();
    contents[at..at + bytes.len()].copy_from_slice(bytes);
    fs::write(ring, contents).unwrap();
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
        .try_into()
        .unwrap()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Offsets of the directory entries of slots that hold unflushed lines.
fn busy_entries(bytes: &[u8]) -> Vec<usize> {
    let directory = u32_at(bytes, DIRECTORY_OFFSET_AT);
    let entries = (0..u32_at(bytes, DIRECTORY_COUNT_AT)).map(|slot| directory + 16 * slot);
    let entries = entries.filter(|entry| u64_at(bytes, *entry) != 0);
    let is_busy = |at: usize| u64_at(bytes, at) >> 16 > u64_at(bytes, at + FLUSHED_AT);
    entries
        .filter(|entry| is_busy(slot_at(bytes, *entry)))
        .collect()
}

fn slot_at(bytes: &[u8], entry: usize) -> usize {
    usize::try_from(u64_at(bytes, entry)).unwrap()
}

/// Offsets of the slots that hold unflushed lines.
fn busy_slots(bytes: &[u8]) -> Vec<usize> {
    busy_entries(bytes)
        .into_iter()
        .map(|entry| slot_at(bytes, entry))
        .collect()
}

#[test]
fn ring_deleted_or_replaced() {
    let mut scene = Scene::new();
    let everything = scene.all.len() - scene.in_fragment.len();
    let cases: [(&str, Damage); 5] = [
        ("deleted", |ring| fs::remove_file(ring).unwrap()),
        ("empty", |ring| fs::write(ring, b"").unwrap()),
        ("text", |ring| {
            fs::write(ring, "no ring at all\n".repeat(4000)).unwrap();
        }),
        ("zeros", |ring| fs::write(ring, vec![0; 1 << 20]).unwrap()),
        ("directory", |ring| {
            fs::remove_file(ring).unwrap();
            fs::create_dir(ring).unwrap();
        }),
    ];
    for (case, damage) in cases {
        let found = scene.find(case, damage);
        assert_eq!(scene.check_counted(case, &found), [everything; 2], "{case}");
    }
    println!(
        "RING gone cases={} spans={} of_them_in_ring={everything}",
        cases.len(),
        scene.all.len()
    );
}

#[test]
fn ring_of_another_process() {
    let (mut scene, other) = (Scene::new(), Scene::new());
    let foreign = other.ring_bytes();
    let found = scene.find("foreign", |ring| fs::write(ring, &foreign).unwrap());
    let missing = scene.check_counted("foreign", &found);
    assert_eq!(missing, [scene.all.len() - scene.in_fragment.len(); 2]);
}

#[test]
fn ring_truncated() {
    let mut scene = Scene::new();
    let mut chance = Chance::new();
    let whole = scene.ring_bytes();
    let mut lengths = vec![
        1,
        7,
        8,
        16,
        28,
        59,
        60,
        63,
        64,
        4095,
        4096,
        4097,
        whole.len() / 2,
        whole.len() - 1,
    ];
    for slot in busy_slots(&whole) {
        lengths.extend([
            slot,
            slot + 1,
            slot + 16,
            slot + 64,
            slot + 4096,
            slot + 4097,
            slot + 50_000,
        ]);
    }
    lengths.extend((0..rounds(10)).map(|_| chance.below(whole.len())));
    lengths.retain(|length| *length < whole.len());
    let mut most = 0;
    for length in &lengths {
        let found = scene.find("cut", |ring| fs::write(ring, &whole[..*length]).unwrap());
        most = most.max(scene.check_counted(&format!("cut to {length} bytes"), &found)[0]);
    }
    println!(
        "RING cut lengths={} seed={} spans={} most_missing={most}",
        lengths.len(),
        chance.seed,
        scene.all.len()
    );
    assert!(most > 0);
}

/// Numbers of the ring changed to what cannot be.
#[test]
fn ring_with_impossible_numbers() {
    let mut scene = Scene::new();
    let whole = scene.ring_bytes();
    let entry = busy_entries(&whole)[0];
    let slot = slot_at(&whole, entry);
    let number = (entry - u32_at(&whole, DIRECTORY_OFFSET_AT)) / 16;
    let (head, flushed) = (
        u64_at(&whole, slot) >> 16,
        u64_at(&whole, slot + FLUSHED_AT),
    );
    let cases: Vec<(&str, usize, Vec<u8>)> = vec![
        ("magic", 0, b"SAPRING2".to_vec()),
        ("version", 8, 7_u32.to_ne_bytes().to_vec()),
        ("nonce", 16, (u64_at(&whole, 16) ^ 1).to_ne_bytes().to_vec()),
        ("sum", 28, 1_u32.to_ne_bytes().to_vec()),
        (
            "slot directory",
            DIRECTORY_OFFSET_AT,
            u32::MAX.to_ne_bytes().to_vec(),
        ),
        (
            "slot directory unaligned",
            DIRECTORY_OFFSET_AT,
            4097_u32.to_ne_bytes().to_vec(),
        ),
        ("slot offset", entry, u64::MAX.to_ne_bytes().to_vec()),
        ("slot size", entry + 8, 3_u32.to_ne_bytes().to_vec()),
        ("slot size zero", entry + 8, 0_u32.to_ne_bytes().to_vec()),
        (
            "slot size huge",
            entry + 8,
            (1_u32 << 31).to_ne_bytes().to_vec(),
        ),
        ("head below flushed", slot, 0_u64.to_ne_bytes().to_vec()),
        ("head far above", slot, u64::MAX.to_ne_bytes().to_vec()),
        (
            "head inside a line",
            slot,
            checked_state(number, 0, head - 5, 0).to_ne_bytes().to_vec(),
        ),
        (
            "head of another slot",
            slot,
            checked_state(number + 1, 0, head, 0).to_ne_bytes().to_vec(),
        ),
        (
            "flushed above head",
            slot + FLUSHED_AT,
            (head + 1).to_ne_bytes().to_vec(),
        ),
        (
            "flushed too high",
            slot + FLUSHED_AT,
            head.to_ne_bytes().to_vec(),
        ),
        (
            "flushed huge",
            slot + FLUSHED_AT,
            u64::MAX.to_ne_bytes().to_vec(),
        ),
        (
            "flushed too low",
            slot + FLUSHED_AT,
            flushed.saturating_sub(200).to_ne_bytes().to_vec(),
        ),
    ];
    for (case, at, bytes) in &cases {
        let found = scene.find(case, |ring| patch(ring, *at, bytes));
        let missing = scene.check_counted(case, &found);
        println!("  {case}: missing {missing:?} of {}", scene.all.len());
    }
    println!("RING impossible numbers cases={}", cases.len());
}

/// Bytes of the unflushed lines overwritten: the other lines survive, and the broken ones are counted.
#[test]
fn ring_with_corrupted_lines() {
    let mut scene = Scene::new();
    let mut chance = Chance::new();
    let whole = scene.ring_bytes();
    let count = rounds(10);
    for round in 0..count {
        let slots = busy_slots(&whole);
        let slot = slots[chance.below(slots.len())];
        let (head, flushed) = (
            u64_at(&whole, slot) >> 16,
            u64_at(&whole, slot + FLUSHED_AT),
        );
        let length = usize::try_from(head - flushed).unwrap();
        let wanted = flushed + u64::try_from(chance.below(length)).unwrap();
        let size = 256 << 10;
        let at = slot + 4096 + usize::try_from(wanted % size).unwrap();
        let garbage = [0_u8, 0xff, b'\n', b'{'][round % 4];
        let end = (at + 40).min(slot + 4096 + usize::try_from(size).unwrap());
        let found = scene.find("lines", |ring| patch(ring, at, &vec![garbage; end - at]));
        let case = format!("byte {garbage:#04x} at {at}");
        // Braces that hit nothing but a long string leave a whole line, with another text.
        let missing = match garbage {
            b'{' => scene.check(&case, &found),
            _ => scene.check_counted(&case, &found),
        };
        assert!(
            missing.iter().all(|missing| *missing <= 3),
            "{case}: {missing:?} spans missing for 40 bytes"
        );
    }
    println!("RING corrupted lines rounds={count} seed={}", chance.seed);
}

/// Any single bytes flipped anywhere: no reader panics, and the fragment's lines survive.
#[test]
fn ring_with_flipped_bytes() {
    let mut scene = Scene::new();
    let mut chance = Chance::new();
    let whole = scene.ring_bytes();
    let slots = busy_slots(&whole);
    let count = rounds(24);
    for round in 0..count {
        let at = match round % 3 {
            0 => chance.below(64),
            1 => slots[chance.below(slots.len())] + chance.below(128),
            _ => chance.below(whole.len()),
        };
        let flipped = whole[at] ^ (1 << chance.below(8));
        let found = scene.find("flip", |ring| patch(ring, at, &[flipped]));
        let case = format!("byte {at} from {:#04x} to {flipped:#04x}", whole[at]);
        // Nothing guards the text of a line until it is in a block: there a span's number may have become another's.
        let in_a_line = slots.iter().any(|slot| at >= slot + CONTROL_BYTES);
        scene.check_but(usize::from(in_a_line), &case, &found);
    }
    println!("RING flipped bytes rounds={count} seed={}", chance.seed);
}
