//! Random fragments of ours and of others, and random damage. The same seed produces the same
//! bytes.

use format_oracle::writer::line::{On, stream};
use format_oracle::writer::{Fragment, Lane, Open, Process, Ring, Slot};
use std::path::Path;

/// Small random number generator (splitmix64). Its first choices can be given.
pub(crate) struct Rng {
    choices: std::vec::IntoIter<u8>,
    state: u64,
}

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng {
            choices: Vec::new().into_iter(),
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// Creates a generator that takes a choice from each pair of bytes. After them the sequence is
    /// always the same.
    #[allow(dead_code, reason = "for the fuzz target, which shares this file")]
    pub(crate) fn with_choices(bytes: Vec<u8>) -> Rng {
        Rng {
            choices: bytes.into_iter(),
            ..Rng::new(1)
        }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let choice = match (self.choices.next(), self.choices.next()) {
            (Some(low), Some(high)) => u64::from(u16::from_le_bytes([low, high])),
            _ => self.next(),
        };
        usize::try_from(choice % bound.max(1) as u64).unwrap()
    }

    /// Returns one of these words, which are separated by spaces.
    pub(crate) fn word<'a>(&mut self, words: &'a str) -> &'a str {
        let words: Vec<&str> = words.split(' ').collect();
        words[self.below(words.len())]
    }

    /// Returns true once in `times`, on average.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Generator of the events of a fragment.
struct EventMaker<'a> {
    rng: &'a mut Rng,
    serial: u64,
}

const TEXTS: [&str; 5] = [
    "plain",
    "q\\\"uote \\\\ \\n \\u0007",
    "ключ 数 🚀",
    "}{\\\"ph\\\":",
    "",
];

impl EventMaker<'_> {
    fn args(&mut self) -> String {
        self.serial += 1;
        let text = TEXTS[self.rng.below(TEXTS.len())];
        let more = match self.rng.below(4) {
            0 => String::new(),
            1 => r#","tokens":[1,2.5,null,true],"inner":{"pid":7,"ts":-1.5}"#.to_owned(),
            2 => {
                let (us, ns) = (self.rng.below(900), self.rng.below(1000));
                format!(r#","text":"{text}","host_wall_us":{us}.{ns:03}"#)
            }
            _ => format!(r#","request_id":"cmpl-{}""#, self.rng.below(50)),
        };
        format!(r#""serial":{}{more}"#, self.serial)
    }

    fn line(&mut self, on: On) -> String {
        let ts_ns = 5_000_000_000 + self.rng.next() % 1_000_000_000;
        match self.rng.below(10) {
            0 => on.instant(ts_ns, "token", &self.args()),
            1 => {
                let series = format!(r#""running":{},"waiting":2"#, self.rng.below(9));
                on.counter(ts_ns, "requests", &series)
            }
            2 => {
                let phase = ["s", "t", "f"][self.rng.below(3)];
                let scope = ["local", "global"][self.rng.below(2)];
                on.flow(phase, ts_ns, scope, self.rng.next() % 6)
            }
            3 => on.begin(ts_ns, &format!("begun {}", self.rng.below(1000))),
            4 => on.metadata("thread_name", &format!(r#""name":"thread-{}""#, on.tid)),
            _ => on.span(ts_ns, self.rng.next() % 1_000_000, "step", &self.args()),
        }
    }

    fn lines(&mut self, on: On, most: usize) -> Vec<u8> {
        let count = 1 + self.rng.below(most);
        let lines: Vec<String> = (0..count).map(|_| self.line(on)).collect();
        stream(&lines)
    }
}

/// Returns random lines of a thread, at most `most`.
pub(crate) fn lines(rng: &mut Rng, on: On, most: usize) -> Vec<u8> {
    EventMaker { rng, serial: 0 }.lines(on, most)
}

/// Writes a fragment of ours into `folder`, damaged unless `whole`, with a ring most of the time.
pub(crate) fn write_own(rng: &mut Rng, folder: &Path, pid: u32, whole: bool) {
    let mut process = Process {
        offset_ns: if rng.one_in(4) { 1_000_000 } else { 0 },
        ..Process::with_ring(pid)
    };
    process.main = rng.one_in(3);
    let mut fragment = process.fragment();
    let header = fragment.bytes.len();
    fragment.line(&process.anchor(5_000_000_000));
    let mut ring = Ring::new(&process);
    let site = ring.site("WorkerProcess.execute_step", "worker");
    let mut maker = EventMaker {
        rng,
        serial: u64::from(pid) << 20,
    };
    let slots = u32::try_from(1 + maker.rng.below(3)).unwrap();
    for index in 0..slots {
        let tid = if index == 2 {
            (1 << 22) + 3
        } else {
            pid + index
        };
        let slot = write_slot(&mut maker, &process, &mut fragment, (index, tid), site);
        ring.slots.push(slot);
    }
    if maker.rng.one_in(2) {
        write_lanes(&mut Rng::new(maker.rng.next()), &mut ring);
    }
    if !whole {
        harm(rng, &mut fragment.bytes, header);
    }
    fragment.write_here(folder);
    if !rng.one_in(8) {
        ring.write_here(folder);
    }
}

/// Adds open spans on lanes, some nested, some closed.
fn write_lanes(rng: &mut Rng, ring: &mut Ring) {
    for lane in 0..1 + rng.below(4) {
        let start_ns = 5_100_000_000 + rng.next() % 1000;
        let open = Open::named(start_ns, &format!("http.completions {lane}"));
        ring.lanes.push(Lane {
            closes_at: rng.next() % 4000 * (rng.next() % 2),
            parent: u32::try_from(rng.below(6)).unwrap(),
            ..Lane::open(lane, open)
        });
    }
}

/// Writes the blocks of one slot, and returns the contents of the ring.
fn write_slot(
    maker: &mut EventMaker,
    process: &Process,
    fragment: &mut Fragment,
    (slot, tid): (u32, u32),
    site: u32,
) -> Slot {
    let on = process.thread(tid);
    let generation = u32::from(maker.rng.one_in(6));
    if generation == 1 {
        // The slot belonged to another thread before.
        fragment.block(slot, 0, &maker.lines(process.thread(tid + 50), 3));
    }
    let mut position = 0;
    for _ in 0..maker.rng.below(4) {
        let content = maker.lines(on, 6);
        if maker.rng.one_in(5) {
            short_write(maker, fragment, (slot, generation), position, &content);
        }
        if maker.rng.one_in(6) {
            let to = position + content.len() as u64;
            let place = format!(r#","slot":{slot},"gen":{generation},"from":{position},"to":{to}"#);
            let on = process.main_thread();
            fragment.line(&on.loss(5_000_000_100, "disk_full", 3, &place));
        } else {
            fragment.block_of(slot, generation, position, &content);
        }
        if maker.rng.one_in(6) {
            fragment.block_of(slot, generation, position, &content);
        }
        position += content.len() as u64;
    }
    let mut result = Slot {
        generation,
        ..Slot::flushed(tid, position)
    };
    if maker.rng.one_in(2) {
        // Some tails wrap around the end of the ring.
        result.stream = maker.lines(on, 12);
        if maker.rng.one_in(3) {
            fragment.block_of(slot, generation, position, &result.stream.clone());
        }
    }
    if maker.rng.one_in(3) {
        result.open = vec![
            Open {
                site,
                ..Open::named(5_200_000_000, "")
            },
            Open::named(5_200_000_500, "open by name"),
        ];
    }
    result
}

/// Writes a block that the disk cut short, followed by a newline as the format requires.
fn short_write(
    maker: &mut EventMaker,
    fragment: &mut Fragment,
    (slot, generation): (u32, u32),
    position: u64,
    content: &[u8],
) {
    let start = fragment.bytes.len();
    fragment.block_of(slot, generation, position, content);
    let written = fragment.bytes.len() - start;
    let end = start + 1 + maker.rng.below(written - 1);
    fragment.bytes.truncate(end);
    fragment.raw(b"\n");
}

/// Writes a fragment without our header into `folder`, damaged unless `whole`.
pub(crate) fn write_foreign(rng: &mut Rng, folder: &Path, pid: u32, lines: usize, whole: bool) {
    let mut fragment = Fragment::foreign(pid);
    fragment.line(&format!(r#"{{"name":"process_name","ph":"M","pid":{pid},"tid":0,"args":{{"name":"foreign-{pid}"}}}}"#));
    for serial in 0..lines {
        let tid = 140_000_000_000_000 + 4096 * rng.below(3);
        let ts = 5_000_000 + rng.below(1_000_000);
        let id = rng.below(5);
        fragment.line(&match rng.below(8) {
            0 => format!(r#"{{"name":"queued","cat":"serving","ph":"i","s":"t","ts":{ts},"pid":{pid},"tid":{tid},"args":{{"serial":{serial}}}}}"#),
            1 => format!(r#"{{"name":"link","cat":"flow","ph":"s","id":{id},"ts":{ts}.5,"pid":{pid},"tid":{tid},"args":{{"serial":{serial}}}}}"#),
            2 => format!(r#"{{ "pid": {pid}, "tid": {tid}, "ts": {ts}, "ph": "b", "id": "0x{id:x}", "cat": "a", "name": "async", "args": {{"serial": {serial}}} }}"#),
            3 => format!(r#"{{"args":{{"tid":1,"serial":{serial}}},"name":"nested","cat":"x","ph":"X","dur":7,"ts":{ts},"tid":{tid},"pid":{pid}}}"#),
            _ => format!(r#"{{"name":"step {serial}","cat":"kernel","ph":"X","ts":{ts},"dur":{},"pid":{pid},"tid":{tid},"args":{{}}}}"#, rng.below(5000)),
        });
    }
    if !whole {
        harm(rng, &mut fragment.bytes, 0);
    }
    fragment.write_here(folder);
}

/// Flips, cuts, inserts and doubles bytes at or after `from`.
pub(crate) fn harm(rng: &mut Rng, bytes: &mut Vec<u8>, from: usize) {
    for _ in 0..1 + rng.below(4) {
        if bytes.len() <= from + 1 {
            return;
        }
        let at = from + rng.below(bytes.len() - from);
        let some = (1 + rng.below(300)).min(bytes.len() - at);
        match rng.below(7) {
            0 | 1 => bytes[at] ^= 1 << rng.below(8),
            2 => drop(bytes.drain(at..at + some)),
            3 => bytes.truncate(at),
            4 => {
                let odd = (0..some % 20).map(|_| b"\0\n\xff{}x\"\r"[rng.below(8)]);
                let odd: Vec<u8> = odd.collect();
                drop(bytes.splice(at..at, odd));
            }
            5 => bytes[at..at + some].fill(0),
            _ => double_line(bytes, at, from),
        }
    }
}

fn double_line(bytes: &mut Vec<u8>, at: usize, from: usize) {
    let is_newline = |byte: &u8| *byte == b'\n';
    let before = bytes[from..at].iter().rposition(is_newline);
    let start = before.map_or(from, |found| from + found + 1);
    let after = bytes[at..].iter().position(is_newline);
    let end = after.map_or(bytes.len(), |found| at + found + 1);
    let line = bytes[start..end].to_vec();
    bytes.splice(start..start, line);
}
