//! Spans of tasks: they nest on the row of their task, and end in any order, on any thread.

use sa_recorder::{Args, AsyncSpan, Level, Recorder, async_span};
use std::sync::Mutex;
use std::thread;

/// Spans of a task that are open at a time, at most.
const MOST_OPEN: usize = 200;

/// A small generator (splitmix64).
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = (mixed ^ (mixed >> 31)) % bound.max(1) as u64;
        usize::try_from(mixed).unwrap_or(0)
    }
}

fn open(label: &str, index: u64, parent: Option<&AsyncSpan>, lane: Option<&str>) -> AsyncSpan {
    let args = Args::new()
        .with("label", label)
        .with("index", index)
        .with("host_pid", std::process::id());
    AsyncSpan::open_at(Level::E2e, "host", label, parent, lane, &args)
}

/// Tasks whose spans are opened within the innermost one and ended mostly in order, by threads that take the next best task each time.
pub(crate) fn tasks(threads: u64, tasks: u64, spans: u64) {
    let stacks: Vec<Mutex<(u64, Vec<AsyncSpan>)>> = (0..tasks).map(|_| Mutex::default()).collect();
    thread::scope(|scope| {
        for seed in 0..threads {
            let stacks = &stacks;
            scope.spawn(move || work(stacks, spans, &mut Rng(seed)));
        }
    });
    stacks.into_iter().for_each(drop);
    println!("tasks {threads} {tasks} {spans}");
}

/// Until all tasks have opened their spans.
fn work(stacks: &[Mutex<(u64, Vec<AsyncSpan>)>], spans: u64, rng: &mut Rng) {
    let is_open = |stack: &Mutex<(u64, Vec<AsyncSpan>)>| {
        let stack = stack.lock().expect("no thread panics");
        stack.0 < spans
    };
    while stacks.iter().any(is_open) {
        let task = rng.below(stacks.len());
        let mut stack = stacks[task].lock().expect("no thread panics");
        let (opened, open_spans) = &mut *stack;
        if *opened < spans && open_spans.len() < MOST_OPEN && rng.below(2) == 0 {
            let (label, name) = (format!("task {task}"), format!("Task-{task}"));
            let span = open(&label, *opened, open_spans.last(), Some(&name));
            open_spans.push(span);
            *opened += 1;
        } else if !open_spans.is_empty() {
            let top = open_spans.len() - 1;
            let at = if rng.below(4) == 0 {
                rng.below(top + 1)
            } else {
                top
            };
            let ended = open_spans.remove(at);
            drop(stack);
            drop(ended); // while others open and end spans of the same task
        }
    }
}

/// Holds many requests open at once, each with a span within it.
pub(crate) fn requests(count: u64) {
    let outer: Vec<AsyncSpan> = (0..count)
        .map(|index| open("request", index, None, Some("requests")))
        .collect();
    let inner: Vec<AsyncSpan> = outer
        .iter()
        .zip(0..)
        .map(|(outer, index)| open("step", index, Some(outer), None))
        .collect();
    drop(inner);
    drop(outer);
    println!("requests {count}");
}

/// Is killed, or ends recording, with spans open within each other: one in order, one whose parent has ended.
pub(crate) fn open_then(ending: &str) {
    let outer = open("outer", 0, None, Some("Task-1"));
    let middle = open("middle", 0, Some(&outer), None);
    let inner = open("inner", 0, Some(&middle), None);
    let other = open("other", 0, None, Some("Task-2"));
    let _orphan = open("orphan", 0, Some(&other), None);
    drop(other);
    let _after = open("after", 0, None, Some("Task-3"));
    drop(open("done", 0, Some(&inner), None));
    if ending == "finish" {
        Recorder::get().finish();
    } else {
        crate::work::die();
    }
    println!("open-lanes {ending}");
}

/// Names rows in turn, over segments that are removed.
pub(crate) fn named(count: u64) {
    let kept = open("kept", 0, None, Some("Task-kept"));
    for index in 0..count {
        let name = format!("Task-{}", index / 1000);
        let task = open("task", index, None, Some(&name));
        drop(open("step", index, Some(&task), None));
        drop(task);
    }
    drop(async_span!("host", "unnamed")); // takes the lane of the tasks
    drop(kept);
    println!("named-lanes {count}");
}
