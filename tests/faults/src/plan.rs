//! Which calls fail, and how. `SA_TEST_FAULTS` has plans, separated by commas, each a call, an error and a time: `writev=28@3` lets the third `writev` fail with error 28, `writev=28@3+`
//! that and all later ones, `writev=28%50:7` one in 50 at random with the seed 7. The error `short` makes a call do half of what it was asked to, and 0 none: then calls are only counted.
//! `SA_TEST_FAULTS_TOLD` is a file of 16 bytes: how many calls of the plans there were, and how many of them failed.

use libc::c_int;
use std::ffi::CString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// The process has read from its stdin.
static ARMED: AtomicBool = AtomicBool::new(false);
static PLANS: OnceLock<Vec<Plan>> = OnceLock::new();
/// The numbers that are told; null for none.
static TOLD: AtomicPtr<u64> = AtomicPtr::new(std::ptr::null_mut());

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

#[derive(Debug)]
struct Plan {
    call: String,
    /// None to count only.
    fault: Option<Fault>,
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
    let plan = plans.iter().find(|plan| plan.call == call)?;
    let number = plan.seen.fetch_add(1, Ordering::Relaxed) + 1;
    tell(0);
    let fails = match plan.when {
        When::At(at) => number == at,
        When::From(from) => number >= from,
        When::OneIn { many, seed } => mixed(number ^ seed << 32).is_multiple_of(many),
    };
    let fault = plan.fault.filter(|_| fails)?;
    tell(1);
    Some(fault)
}

/// Reads the plans, before the program starts.
pub(crate) fn read() {
    let text = std::env::var("SA_TEST_FAULTS").unwrap_or_default();
    let _ = PLANS.set(text.split(',').filter_map(plan).collect()); // it is called once
    TOLD.store(
        map_told().unwrap_or(std::ptr::null_mut()),
        Ordering::Release,
    );
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
    let fault = match fault {
        "short" => Some(Fault::Short),
        number => Some(number.parse().ok()?)
            .filter(|error| *error != 0)
            .map(Fault::Error),
    };
    Some(Plan {
        call: call.to_owned(),
        fault,
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

/// Adds one to a number of the file that is told.
fn tell(which: usize) {
    let told = TOLD.load(Ordering::Acquire);
    if told.is_null() {
        return;
    }
    // SAFETY: the file has two aligned numbers, mapped for the life of the process and only ever used as atomics.
    let number = unsafe { AtomicU64::from_ptr(told.wrapping_add(which)) };
    number.fetch_add(1, Ordering::Relaxed);
}

/// Maps the file that is told.
fn map_told() -> Option<*mut u64> {
    let path = CString::new(std::env::var("SA_TEST_FAULTS_TOLD").ok()?).ok()?;
    // SAFETY: the path is a C string.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: the kernel chooses the place; a bad descriptor is an error.
    let map = unsafe { libc::mmap(std::ptr::null_mut(), 16, access, shared, file, 0) };
    // SAFETY: the map stays; nobody else has the number.
    unsafe { libc::close(file) };
    (map != libc::MAP_FAILED).then_some(map.cast())
}
