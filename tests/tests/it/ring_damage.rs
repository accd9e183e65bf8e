//! A killed process's ring with a flipped bit: no reader panics, and every line of the fragment survives.

use crate::victim;
use e2e::chance::{Chance, rounds};
use e2e::host_support::ring_files;
use e2e::ledger::{Event, Readout};
use e2e::order::Pattern;
use e2e::victim::Victim;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

const THREADS: usize = 2;
/// Offsets from FORMAT.md §3: of the slot directory's offset and length in the ring, and of the flushed position in a slot.
const DIRECTORY_OFFSET_AT: usize = 52;
const DIRECTORY_COUNT_AT: usize = 56;
const FLUSHED_AT: usize = 8;
/// Offset of the lines in a slot.
const CONTROL_BYTES: usize = 4096;

type Spans = BTreeSet<(Option<usize>, Option<u64>)>;

/// A killed victim whose ring contains spans that its fragment does not.
struct Scene {
    victim: Victim,
    in_fragment: Spans,
}

fn spans_of(spans: &[Event]) -> Spans {
    let spans = spans.iter();
    spans.map(|event| (event.args.t, event.args.n)).collect()
}

impl Scene {
    fn new(chance: &mut Chance) -> Scene {
        for _ in 0..100 {
            let mut victim = victim(THREADS, Pattern::Flat, &[]);
            std::thread::sleep(chance.pause(Duration::from_millis(3)));
            victim.kill();
            let readout = Readout::by_oracle(&victim.directory());
            let mut scene = Scene {
                victim,
                in_fragment: Spans::new(),
            };
            let [without_ring, _] = scene.read_damaged(|ring| fs::remove_file(ring).unwrap());
            scene.in_fragment = spans_of(&without_ring.spans);
            // If the kill cut a block short, the block is in the ring as well, and the ring's copy counts (FORMAT.md §4.6).
            let is_bad_block = |damage: &String| damage.starts_with("bad_block");
            let is_cut_short = without_ring.damage.iter().any(is_bad_block);
            let is_split = !scene.in_fragment.is_empty()
                && scene.in_fragment.len() + 100 < spans_of(&readout.spans).len();
            if is_split && !is_cut_short {
                return scene;
            }
        }
        panic!("no victim of 100 left spans both in its fragment and in its ring");
    }

    /// Copies the recording, damages the copy's ring, and reads the copy with both readers.
    fn read_damaged(&self, damage: impl Fn(&Path)) -> [Readout; 2] {
        let copy = self.victim.scratch("copy");
        let (from, to) = (self.victim.directory(), copy.join("fragments"));
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(from.join("fragments")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
        damage(&ring_files(&copy)[0]);
        let oracle = Readout::by_oracle(&copy);
        let merge = Readout::by_merge(&copy);
        fs::remove_dir_all(&copy).unwrap();
        [oracle, merge]
    }

    /// Checks that the fragment's lines survived, and that at most `doubles` spans are shown twice.
    fn check(&self, doubles: usize, case: &str, found: &[Readout; 2]) {
        for (reader, found) in ["oracle", "merge"].iter().zip(found) {
            let spans = spans_of(&found.spans);
            let twice = found.spans.len() - spans.len();
            assert!(twice <= doubles, "{case}: {reader} shows {twice} twice");
            let is_whole = spans.is_superset(&self.in_fragment);
            assert!(is_whole, "{case}: {reader} lost lines of the fragment");
        }
    }
}

/// Returns the offsets of the slots that contain unflushed lines.
fn busy_slots(bytes: &[u8]) -> Vec<usize> {
    let u32_at = |at| u32::from_ne_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let u64_at = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().unwrap());
    let directory = u32_at(DIRECTORY_OFFSET_AT);
    let slots = (0..u32_at(DIRECTORY_COUNT_AT)).map(|slot| u64_at(directory + 16 * slot) as usize);
    let is_busy = |slot: &usize| *slot != 0 && u64_at(*slot) >> 16 > u64_at(slot + FLUSHED_AT);
    slots.filter(is_busy).collect()
}

/// Flips bits at random places.
#[test]
fn ring_with_flipped_bytes() {
    let mut chance = Chance::new();
    let scene = Scene::new(&mut chance);
    let whole = fs::read(&ring_files(&scene.victim.directory())[0]).unwrap();
    let slots = busy_slots(&whole);
    let count = rounds(24, 72);
    for round in 0..count {
        let at = match round % 3 {
            0 => chance.below(64),
            1 => slots[chance.below(slots.len())] + chance.below(128),
            _ => chance.below(whole.len()),
        };
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << chance.below(8);
        let (from, to) = (whole[at], bytes[at]);
        let found = scene.read_damaged(|ring| fs::write(ring, &bytes).unwrap());
        let case = format!("byte {at} from {from:#04x} to {to:#04x}");
        // Before a line is in a block, no checksum protects its text. A flip can turn a span's number into that of another span.
        let in_a_line = slots.iter().any(|slot| at >= slot + CONTROL_BYTES);
        scene.check(usize::from(in_a_line), &case, &found);
    }
    println!("RING flipped bytes rounds={count} seed={}", chance.seed);
}
