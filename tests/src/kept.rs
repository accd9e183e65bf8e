//! What a bounded recording kept, held against what its victim acknowledged: of each thread the last spans without a hole, and all before them told.

use std::fmt;
use std::ops::AddAssign;

use crate::ledger::{FLAT, Seen, padding};

/// What was kept and what was not.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Spans acknowledged.
    pub acknowledged: u64,
    /// Spans read.
    pub read: u64,
    /// Spans that went with removed segments.
    pub removed: u64,
    /// What is wrong.
    pub wrong: Vec<String>,
}

impl AddAssign for Kept {
    fn add_assign(&mut self, other: Kept) {
        self.acknowledged += other.acknowledged;
        self.read += other.read;
        self.removed += other.removed;
        self.wrong.extend(other.wrong);
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kept {
            acknowledged,
            read,
            removed,
            wrong,
        } = self;
        let count = wrong.len();
        write!(
            out,
            "acknowledged={acknowledged} read={read} removed={removed} wrong={count}"
        )?;
        wrong
            .iter()
            .take(8)
            .try_for_each(|line| write!(out, "\n    {line}"))
    }
}

/// Judges what was read of a dead victim by what each of its threads had acknowledged; each may have recorded one span more.
pub fn judge_kept(seen: &Seen, floor: &[u64]) -> Kept {
    judge(seen, floor, 1)
}

/// Judges what was read of a victim that goes on by what each of its threads had acknowledged before.
pub fn judge_live(seen: &Seen, floor: &[u64]) -> Kept {
    judge(seen, floor, u64::MAX / 2)
}

fn judge(seen: &Seen, floor: &[u64], ahead: u64) -> Kept {
    let mut kept = Kept {
        acknowledged: floor.iter().sum(),
        read: count(seen.spans.len()),
        wrong: seen.damage.clone(),
        ..Kept::default()
    };
    let mut numbers: Vec<Vec<u64>> = vec![Vec::new(); floor.len()];
    for span in &seen.spans {
        match (span.args.thread(), span.args.number()) {
            (Some(thread), Some(n)) if span.name == FLAT && span.args.pad() == Some(padding(n)) => {
                numbers[thread].push(n);
            }
            _ => kept.wrong.push(format!("torn: {span:?}")),
        }
    }
    for (thread, (numbers, floor)) in numbers.iter_mut().zip(floor).enumerate() {
        numbers.sort_unstable();
        let first = numbers.first().copied().unwrap_or(*floor);
        let end = numbers.last().map_or(*floor, |last| last + 1);
        kept.removed += first;
        if count(numbers.len()) != end - first || !(*floor..=floor + ahead).contains(&end) {
            kept.wrong.push(format!(
                "thread {thread}: {} spans from {first} to {end}, acknowledged {floor}",
                numbers.len()
            ));
        }
    }
    // A thread of which a live victim's files hold nothing may have recorded more in removed segments than it had acknowledged.
    let unseen = ahead > 1 && numbers.iter().any(Vec::is_empty);
    if kept.removed != seen.told_lost && !(unseen && kept.removed < seen.told_lost) {
        let told = format!(
            "{} are told as lost, {} are missing",
            seen.told_lost, kept.removed
        );
        kept.wrong.push(told);
    }
    kept
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
