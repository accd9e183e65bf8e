//! Decides which calls fail, and how. `SA_TEST_FAULTS` contains plans, separated by commas. Each is a call, an effect and a time: `writev=28@3` makes the third `writev` fail with
//! error 28, `writev=28@3+` that one and all later ones, `writev=28%50:7` one in 50 at random with the seed 7. Effects other than an error number: `short` makes a call do half of what
//! it was asked to, `hang` makes it wait for as long as the plan holds, `term` sends the process SIGTERM first, and 0 does nothing, so that calls are only counted.
//!
//! `SA_TEST_FAULTS_TOLD` is a file of three numbers: how many calls the plans have met, how many of them failed, and how many plans, counted from the last one, do not hold. A test may
//! change the last number at any time.

use libc::c_int;
use memmap2::MmapRaw;
use std::fs::File;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The process has read from its stdin.
static ARMED: AtomicBool = AtomicBool::new(false);
static PLANS: OnceLock<Vec<Plan>> = OnceLock::new();
/// The three numbers in the file.
static TOLD: OnceLock<MmapRaw> = OnceLock::new();

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// With this error.
    Error(c_int),
    /// It does half of what it was asked to.
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
    seen: AtomicU64,
}

/// Begins.
pub(crate) fn arm() {
    ARMED.store(true, Ordering::Release);
}

/// How this call fails, if it does.
pub(crate) fn fault(call: &str) -> Option<Fault> {
    if !ARMED.load(Ordering::Acquire) {
        return None;
    }
    let plans = PLANS.get()?;
    let at = plans.iter().position(|plan| plan.call == call)?;
    let plan = &plans[at];
    let holds = || {
        at as u64 + told(2).map_or(0, |left_out| left_out.load(Ordering::Relaxed))
            < plans.len() as u64
    };
    if !holds() {
        return None;
    }
    let number = plan.seen.fetch_add(1, Ordering::Relaxed) + 1;
    tell(0);
    let fails = match plan.when {
        When::At(at) => number == at,
        When::From(from) => number >= from,
        When::OneIn { many, seed } => mixed(number ^ seed << 32).is_multiple_of(many),
    };
    match plan.effect {
        Effect::Fault(fault) if fails => {
            tell(1);
            return Some(fault);
        }
        Effect::Hang if fails => {
            while holds() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Effect::Term if fails => {
            let own = std::process::id().cast_signed();
            // SAFETY: kill has no preconditions. The recorder's own thread has the signal blocked, so the host's takes it.
            unsafe { libc::kill(own, libc::SIGTERM) };
        }
        _ => {}
    }
    None
}

/// Reads the plans, before the program starts.
pub(crate) fn read() {
    let text = std::env::var("SA_TEST_FAULTS").unwrap_or_default();
    let _ = PLANS.set(text.split(',').filter_map(plan).collect()); // it is called once
    let told = std::env::var_os("SA_TEST_FAULTS_TOLD").and_then(|path| {
        let file = File::options().read(true).write(true).open(path);
        MmapRaw::map_raw(&file.ok()?).ok()
    });
    if let Some(told) = told {
        let _ = TOLD.set(told);
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
        seen: AtomicU64::new(0),
    })
}

/// A number that looks drawn, for each number another.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns one of the three numbers in the file.
fn told(which: usize) -> Option<&'static AtomicU64> {
    let numbers = TOLD.get()?.as_mut_ptr().cast::<u64>();
    // SAFETY: the file has three aligned numbers, mapped for the life of the process and only ever used as atomics.
    Some(unsafe { AtomicU64::from_ptr(numbers.wrapping_add(which)) })
}

/// Adds one to a number in the file.
fn tell(which: usize) {
    if let Some(number) = told(which) {
        number.fetch_add(1, Ordering::Relaxed);
    }
}
