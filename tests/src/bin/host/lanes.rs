//! Spans of asyncio-like tasks. They nest on the lane of their task, and end in any order and on any thread.

use e2e::chance::Chance;
use sa_recorder::{Args, AsyncSpan, Level, async_span};
use std::mem::ManuallyDrop;
use std::sync::Mutex;
use std::thread;

/// Maximum number of open spans per task.
const MOST_OPEN: usize = 200;

pub(crate) fn open(
    label: &str,
    index: u64,
    parent: Option<&AsyncSpan>,
    lane: Option<&str>,
) -> AsyncSpan {
    let args = Args::new()
        .with("label", label)
        .with("index", index)
        .with("host_pid", std::process::id());
    AsyncSpan::open_at(Level::E2e, "host", label, parent, lane, &args)
}

/// Runs tasks whose spans are opened inside the innermost open one and mostly ended in order. Each thread picks a random task for every step.
pub(crate) fn tasks(threads: u64, tasks: u64, spans: u64) {
    let stacks: Vec<Mutex<(u64, Vec<AsyncSpan>)>> = (0..tasks).map(|_| Mutex::default()).collect();
    thread::scope(|scope| {
        for seed in 0..threads {
            let stacks = &stacks;
            scope.spawn(move || work(stacks, spans, &mut Chance::from_seed(seed)));
        }
    });
    stacks.into_iter().for_each(drop);
}

/// Opens and ends spans of random tasks until all tasks have opened all their spans.
fn work(stacks: &[Mutex<(u64, Vec<AsyncSpan>)>], spans: u64, chance: &mut Chance) {
    let is_open = |stack: &Mutex<(u64, Vec<AsyncSpan>)>| {
        let stack = stack.lock().expect("no thread panics");
        stack.0 < spans
    };
    while stacks.iter().any(is_open) {
        let task = chance.below(stacks.len());
        let mut stack = stacks[task].lock().expect("no thread panics");
        let (opened, open_spans) = &mut *stack;
        if *opened < spans && open_spans.len() < MOST_OPEN && chance.below(2) == 0 {
            let (label, name) = (format!("task {task}"), format!("Task-{task}"));
            let span = open(&label, *opened, open_spans.last(), Some(&name));
            open_spans.push(span);
            *opened += 1;
        } else if !open_spans.is_empty() {
            let top = open_spans.len() - 1;
            let at = if chance.below(4) == 0 {
                chance.below(top + 1)
            } else {
                top
            };
            let ended = open_spans.remove(at);
            drop(stack);
            drop(ended); // outside the lock, so that other threads can open and end spans of the same task meanwhile
        }
    }
}

/// Leaves nested spans open, including one whose parent has ended.
pub(crate) fn open_some() {
    let outer = open("outer", 0, None, Some("Task-1"));
    let middle = open("middle", 0, Some(&outer), None);
    let inner = open("inner", 0, Some(&middle), None);
    let other = open("other", 0, None, Some("Task-2"));
    let orphan = open("orphan", 0, Some(&other), None);
    drop(other);
    let after = open("after", 0, None, Some("Task-3"));
    drop(open("done", 0, Some(&inner), None));
    let _left = ManuallyDrop::new([outer, middle, inner, orphan, after]);
}

/// Opens tasks with changing lane names, across segments that are removed.
pub(crate) fn named(count: u64) {
    let kept = open("kept", 0, None, Some("Task-kept"));
    for index in 0..count {
        let name = format!("Task-{}", index / 1000);
        let task = open("task", index, None, Some(&name));
        drop(open("step", index, Some(&task), None));
        drop(task);
    }
    drop(async_span!("host", "unnamed")); // reuses the lane of the tasks
    drop(kept);
}
