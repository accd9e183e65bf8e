//! What a dead victim left, judged by everybody who reads it.

use crate::ledger::{Seen, judge};
use crate::merged;
use crate::verdict::Verdict;
use crate::victim::Victim;
use format_oracle::reader::read_dir_as;

/// Judges a dead victim's files by the second reader, before and after the merge, and by the merge.
pub fn judge_both(victim: &Victim) -> (Verdict, Verdict) {
    let read = || {
        let seen = Seen::by_second_reader(read_dir_as(&victim.directory()));
        judge(&seen, &victim.progress, victim.order.threads)
    };
    let mut before = read();
    let merged = merged::merge(&victim.directory(), &victim.scratch("trace.json"));
    let merged = judge(&merged, &victim.progress, victim.order.threads);
    let after = read();
    before.damage.extend(
        after
            .damage
            .iter()
            .map(|damage| format!("after the merge: {damage}")),
    );
    before.open_wrong.extend(
        after
            .open_wrong
            .iter()
            .map(|wrong| format!("after the merge: {wrong}")),
    );
    before.lost += after.lost;
    before.doubled += after.doubled;
    before.torn += after.torn;
    (before, merged)
}
