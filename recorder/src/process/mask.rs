//! The levels that are on: one word that every event checks. It contains the levels and, above
//! them, the recording that they belong to.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::process::start_lock;
use crate::run::config::Levels;
use crate::sys::clock;
use sa_format::Level;

/// Levels that are on, and above them the tag of the recording; [`UNKNOWN`] until the environment
/// was read.
static MASK: AtomicU32 = AtomicU32::new(UNKNOWN);
/// Every level on, and a mark that the environment was not read yet. The first event reads it.
const UNKNOWN: u32 = 0xff;
/// Nothing is on, and nothing requests recording.
const OFF: u32 = 0;
/// A recording has ended and no other has begun.
const ENDED: u32 = 0xffff_ff00;
const LEVELS: u32 = 0xff;
/// Time when recording was last switched off, in ns; 0 for never.
static STOPPED_NS: AtomicU64 = AtomicU64::new(0);
/// Time when each level was last switched off.
static LEVELS_STOPPED_NS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Returns true if events of this level of detail are recorded. Also returns true until the
/// environment has been read.
#[inline(always)]
pub(crate) fn wants(level: Level) -> bool {
    MASK.load(Ordering::Relaxed) & level.bit() != 0
}

/// Returns true if recording was switched off after `start_ns`, a time in ns.
#[inline(always)]
pub(crate) fn stopped_since(start_ns: u64) -> bool {
    STOPPED_NS.load(Ordering::Relaxed) > start_ns
}

/// Returns true if events of this level are recorded now, or were recorded at `start_ns`, when the
/// span to record began.
pub(crate) fn wants_since(level: Level, start_ns: u64) -> bool {
    let at = level.bit().trailing_zeros() as usize;
    let stopped = LEVELS_STOPPED_NS.get(at);
    wants(level) || stopped.is_some_and(|stopped| stopped.load(Ordering::Relaxed) > start_ns)
}

/// Returns the upper bits of the mask, which distinguish a recording from the one before it. They
/// are neither those in [`UNKNOWN`] and [`OFF`] nor those in [`ENDED`].
fn tag(epoch: u32) -> u32 {
    (epoch % 0xff_fffe + 1) << 8
}

/// Turns on the levels of detail (`e2e`, `kernel`, `verbose`) of a recording that begins.
pub(crate) fn open(epoch: u32, levels: Levels) {
    MASK.store(tag(epoch) | levels.0, Ordering::SeqCst);
}

/// Switches a recording to other levels, unless it has ended. Returns the time in ns of the switch:
/// levels that are switched on were not on before it, and no event of a level that is switched off
/// begins after it.
pub(crate) fn set_levels(epoch: u32, levels: Levels) -> u64 {
    let before_ns = clock::now_ns();
    let Some(old) = replace(epoch, tag(epoch) | levels.0) else {
        return before_ns;
    };
    let removed = old & LEVELS & !levels.0;
    if removed == 0 {
        return before_ns;
    }
    let at_ns = clock::now_ns();
    for (level, stopped) in (0..).zip(&LEVELS_STOPPED_NS) {
        if removed & (1 << level) != 0 {
            stopped.store(at_ns, Ordering::Relaxed);
        }
    }
    if levels == Levels::NONE {
        STOPPED_NS.store(at_ns, Ordering::Relaxed);
    }
    at_ns
}

/// Replaces the mask of the recording `epoch`, and returns the previous one. Returns `None` if that
/// recording has ended.
fn replace(epoch: u32, mask: u32) -> Option<u32> {
    let replaced = |old: u32| (old & !LEVELS == tag(epoch)).then_some(mask);
    MASK.fetch_update(Ordering::SeqCst, Ordering::Relaxed, replaced)
        .ok()
}

/// Switches off all levels of the recording `epoch`, because it has ended.
pub(crate) fn close(epoch: u32) {
    replace(epoch, ENDED);
}

/// Switches recording off because nothing requests it, or because it is impossible.
pub(crate) fn turn_off() {
    MASK.store(OFF, Ordering::Relaxed);
}

/// Returns true if no level is on, so that no event is recorded.
pub(crate) fn is_off() -> bool {
    MASK.load(Ordering::Relaxed) & LEVELS == 0
}

/// Makes the child of a fork read the environment again. If its parent's recording is switched off,
/// nothing else would start the child's own recorder, which may be switched on later.
/// Async-signal-safe.
pub(crate) unsafe extern "C" fn reset_in_child() {
    if MASK.load(Ordering::Relaxed) != ENDED || start_lock::is_restart_pending() {
        MASK.store(UNKNOWN, Ordering::Relaxed);
    }
}

/// Returns the levels of detail that are recorded now, or `None` if the environment has not been
/// read yet.
pub(crate) fn levels_if_known() -> Option<Levels> {
    match MASK.load(Ordering::Relaxed) {
        UNKNOWN => None,
        mask => Some(Levels(mask & LEVELS)),
    }
}

/// Returns the levels of detail that are recorded now, one bit each. Until the environment has been
/// read, all bits are set.
pub(crate) fn levels() -> u32 {
    MASK.load(Ordering::Relaxed) & LEVELS
}
