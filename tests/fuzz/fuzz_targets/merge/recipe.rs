//! A run of two processes of ours and one of another recorder, from a recipe: stretches that end in 0xFF, the first byte of each says what becomes
//! of it and where. No mutation guesses a checksum or writes many whole lines.

use super::process::{Ours, line};
use std::collections::BTreeSet;
use std::path::Path;

/// Time of the first events, and what the wall clock shows at 0.
pub(crate) const START_NS: i64 = 5_000_000_000;
pub(crate) const WALL_NS: i64 = 1_795_248_902_000_000_000;

/// The run that a recipe makes.
pub(crate) struct Run {
    ours: [Ours; 2],
    foreign: Vec<u8>,
    /// Serials of the lines that must be in the trace.
    pub(crate) good: BTreeSet<u64>,
    /// Number of events that must be reported as lost: the counts of the loss records, and one for each gap that no record explains.
    pub(crate) lost: u64,
    /// At least so many places are damaged.
    pub(crate) least_damage: u64,
    /// Whether text of the recipe may be a record that takes other lines away, or looks like ours.
    pub(crate) is_hostile: bool,
}

impl Run {
    pub(crate) fn new(recipe: &[u8]) -> Run {
        let mut run = Run {
            ours: [Ours::new(100), Ours::new(200)],
            foreign: Vec::new(),
            good: BTreeSet::new(),
            lost: 0,
            least_damage: 0,
            is_hostile: false,
        };
        for stretch in recipe.split(|byte| *byte == 0xff) {
            if let Some((kind, text)) = stretch.split_first() {
                run.add(*kind, text);
            }
        }
        run
    }

    fn add(&mut self, kind: u8, text: &[u8]) {
        let at = usize::from(kind >> 4 & 1);
        match kind & 0xf {
            0 | 1 => self.raw(kind, text),
            2..=5 => {
                let lines = self.lines(900, text);
                self.foreign.extend_from_slice(&lines);
            }
            6..=9 => {
                let lines = self.lines(self.ours[at].pid(), text);
                self.ours[at].block(kind >> 5, &lines);
            }
            10 => {
                let lines = self.lines(self.ours[at].pid(), text);
                if !self.ours[at].keep_in_ring(&lines) {
                    self.ours[at].block(kind >> 5, &lines);
                }
            }
            11 => self.ours[at].bad_block(kind >> 5, text),
            12 => self.lost += self.ours[at].loss(kind >> 5, text),
            13 => {
                // Unless a block comes behind it, nobody knows of the gap.
                self.lost += u64::from(self.ours[at].skip(kind >> 5));
                let lines = self.lines(self.ours[at].pid(), b"\0");
                self.ours[at].block(kind >> 5, &lines);
                self.least_damage = 1;
            }
            14 => self.ours[at].open_span(text),
            _ => self.ours[at].anchor(text),
        }
    }

    fn raw(&mut self, kind: u8, text: &[u8]) {
        let holds = |words: &[u8]| text.windows(words.len()).any(|window| window == words);
        self.is_hostile |= holds(b"sa_") || holds(b"serial") || holds(b"\\");
        let to = match kind & 1 {
            0 => &mut self.foreign,
            _ => &mut self.ours[usize::from(kind >> 4 & 1)].body.bytes,
        };
        to.extend_from_slice(text);
        to.push(b'\n');
    }

    /// A good line for each seven bytes.
    fn lines(&mut self, pid: u32, text: &[u8]) -> Vec<u8> {
        let mut lines = Vec::new();
        for choice in text.chunks(7).take(40) {
            let serial = self.good.len() as u64;
            self.good.insert(serial);
            line(pid, serial, choice, &mut lines);
        }
        lines
    }

    /// Writes the fragments, and rings where there are some.
    pub(crate) fn write(&self, folder: &Path) {
        let put = |name: String, bytes: &[u8]| {
            let path = folder.join(name);
            match bytes.is_empty() {
                true => drop(std::fs::remove_file(path)),
                false => std::fs::write(path, bytes).expect("room"),
            }
        };
        put("trace.900.jsonl".to_owned(), &self.foreign);
        for ours in &self.ours {
            put(format!("trace.{}.jsonl", ours.pid()), &ours.fragment());
            put(format!("trace.{}.ring", ours.pid()), &ours.ring());
        }
    }
}
