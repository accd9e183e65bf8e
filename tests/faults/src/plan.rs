//! Decides which calls fail, and how. `SA_TEST_FAULTS` contains plans separated by commas. Each plan has a call, an effect and a time: `writev=28@3` makes the third `writev` fail
//! with error 28, `writev=28@3+` that one and all later ones, and `writev=28%50:7` one in 50 at random with seed 7. Other effects than an error number: `short` completes half of the
//! request, `hang` blocks the call while the plan is active, `term` sends SIGTERM to the process first, and 0 has no effect, so that calls are only counted.
//!
//! `SA_TEST_FAULTS_TOLD` is a file with three numbers: the number of calls that matched plans, the number of failed calls, and the number of inactive plans, counted from the last
//! one. A test may change the last number at any time.

use libc::c_int;
use memmap2::MmapRaw;
use std::fs::File;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// True once the process has read from stdin.
static ARMED: AtomicBool = AtomicBool::new(false);
static PLANS: OnceLock<Vec<Plan>> = OnceLock::new();
/// The file with the three numbers.
static COUNTERS: OnceLock<MmapRaw> = OnceLock::new();

/// The failure mode of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call fails with this error.
    Error(c_int),
    /// The call completes half of the request.
    Short,
}

#[derive(Clone, Copy, Debug)]
enum When {
    At(u64),
    From(u64),
    OneIn { many: u64, seed: u64 },
}

/// The effect of a plan on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The call is only counted.
    None,
    Fault(Fault),
    Hang,
    Term,
}

#[derive(Debug)]
struct Plan {
    call: String,
    effect: Effect,
    when: When,
    calls: AtomicU64,
}

/// Activates the plans.
pub(crate) fn arm() {
    ARMED.store(true, Ordering::Release);
}

/// Returns the failure of this call, if it fails.
pub(crate) fn fault(call: &str) -> Option<Fault> {
    if !ARMED.load(Ordering::Acquire) {
        return None;
    }
    let plans = PLANS.get()?;
    let at = plans.iter().position(|plan| plan.call == call)?;
    let plan = &plans[at];
    let is_active = || {
        at as u64 + counter(2).map_or(0, |inactive| inactive.load(Ordering::Relaxed))
            < plans.len() as u64
    };
    if !is_active() {
        return None;
    }
    let number = plan.calls.fetch_add(1, Ordering::Relaxed) + 1;
    increment(0);
    let fails = match plan.when {
        When::At(at) => number == at,
        When::From(from) => number >= from,
        When::OneIn { many, seed } => mixed(number ^ seed << 32).is_multiple_of(many),
    };
    match plan.effect {
        Effect::Fault(fault) if fails => {
            increment(1);
            return Some(fault);
        }
        Effect::Hang if fails => {
            while is_active() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Effect::Term if fails => {
            let own = std::process::id().cast_signed();
            // SAFETY: kill has no preconditions. The recorder's own thread blocks the signal, so one of the host's threads receives it.
            unsafe { libc::kill(own, libc::SIGTERM) };
        }
        _ => {}
    }
    None
}

/// Reads the plans before the program starts.
pub(crate) fn read() {
    let text = std::env::var("SA_TEST_FAULTS").unwrap_or_default();
    let _ = PLANS.set(text.split(',').filter_map(plan).collect()); // read() is called once
    let file = std::env::var_os("SA_TEST_FAULTS_TOLD").and_then(|path| {
        let file = File::options().read(true).write(true).open(path);
        MmapRaw::map_raw(&file.ok()?).ok()
    });
    if let Some(file) = file {
        let _ = COUNTERS.set(file);
    }
}

fn plan(text: &str) -> Option<Plan> {
    let (call, rest) = text.split_once('=')?;
    let (fault, when) = match rest.split_once('@') {
        Some((fault, from)) if from.ends_with('+') => {
            (fault, When::From(from.trim_end_matches('+').parse().ok()?))
        }
        Some((fault, at)) => (fault, When::At(at.parse().ok()?)),
        None => {
            let (fault, chance) = rest.split_once('%')?;
            let (many, seed) = chance.split_once(':')?;
            let (many, seed) = (many.parse().ok()?, seed.parse().ok()?);
            (fault, When::OneIn { many, seed })
        }
    };
    let effect = match fault {
        "short" => Effect::Fault(Fault::Short),
        "hang" => Effect::Hang,
        "term" => Effect::Term,
        "0" => Effect::None,
        error => Effect::Fault(Fault::Error(error.parse().ok()?)),
    };
    Some(Plan {
        call: call.to_owned(),
        effect,
        when,
        calls: AtomicU64::new(0),
    })
}

/// Returns a pseudo-random number that is different for each input.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns one of the three numbers in the file.
fn counter(which: usize) -> Option<&'static AtomicU64> {
    let numbers = COUNTERS.get()?.as_mut_ptr().cast::<u64>();
    // SAFETY: the file has three aligned numbers. It stays mapped as long as the process lives, and is only accessed with atomics.
    Some(unsafe { AtomicU64::from_ptr(numbers.wrapping_add(which)) })
}

/// Increments a number in the file.
fn increment(which: usize) {
    if let Some(number) = counter(which) {
        number.fetch_add(1, Ordering::Relaxed);
    }
}
