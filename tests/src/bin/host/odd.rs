//! Oversized events, values that panic, and more call sites than a ring can list.

use crate::sandbox::set_limit;
use crate::work::record;
use sa_recorder::{
    Args, AsyncSpan, Level, Recorder, Site, SpanGuard, Value, counter, instant, span,
};

/// A value written by a function.
struct Written(fn(&mut Vec<u8>));

impl Value for Written {
    fn write(&self, out: &mut Vec<u8>) {
        (self.0)(out);
    }
}

/// Writes more bytes than a line may contain.
const ENDLESS: Written = Written(|out| {
    out.push(b'"');
    out.resize(out.len() + (17 << 20), b'x');
    out.push(b'"');
});
/// Panics after writing part of its text.
const PANICKING: Written = Written(|out| {
    out.extend_from_slice(b"\"half");
    panic!("a value's own panic");
});
/// Writes invalid JSON.
const NO_JSON: Written = Written(|out| out.extend_from_slice(b"\"half\n"));

/// Records names and a span that exceed a slot, and an event that exceeds the maximum line length.
pub(crate) fn oversized() {
    let name = "n".repeat(400 << 10);
    Recorder::get().set_process_name(&name);
    Recorder::get().set_thread_name(&name);
    let mut large = crate::lanes::open("large", 0, None, None);
    for number in 0..20 {
        large.arg(&format!("key{number}"), "x".repeat(16 << 10));
    }
    drop(large);
    instant!("host", "endless", value = ENDLESS);
    record("after", 10);
}

/// Records a span that is too large for any ring.
pub(crate) fn large() {
    let mut large = crate::work::open("large", 0);
    for number in 0..20 {
        large.arg(&format!("key{number}"), "x".repeat(16 << 10));
    }
}

/// Reports whether the kernel gave the program rights that its caller lacks.
pub(crate) fn rights() -> String {
    // SAFETY: `getauxval` reads a value from the auxiliary vector.
    let raised = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    format!("rights raised: {raised}")
}

/// Records a span while no memory is available for its args, and is killed inside it.
pub(crate) fn little_memory_then_killed() {
    record("work", 10);
    let text = "x".repeat(16 << 10);
    let mut span = span!("host", "short of memory");
    set_limit("as", 1);
    for _ in 0..1000 {
        span.arg("key", text.as_str());
    }
    crate::work::die();
}

/// Records values that panic, then ordinary spans.
pub(crate) fn panicking() {
    std::panic::set_hook(Box::new(|_| {}));
    for _ in 0..10 {
        // The value is only written if the event is recorded.
        let _panic = std::panic::catch_unwind(|| instant!("host", "panic", value = PANICKING));
    }
    record("after", 100);
}

/// Records a text and two lists that are too long, three invalid values, and counters with eight values that cannot be drawn.
pub(crate) fn unfit() {
    let (text, list) = ("x".repeat(20 << 10), vec![7; 5000]);
    instant!("host", "cut", text = text, list = list, lists = [&list[..]]);
    for _ in 0..3 {
        instant!("host", "no json", before = 1, value = NO_JSON, after = 2);
    }
    counter!("odd", nan = f64::NAN, busy = true, idle = false, n = 2);
    counter!("odd", text = "7", list = [1], none = None::<u8>, half = 0.5);
    counter!("undrawn", nan = f32::NAN, infinite = f64::INFINITY);
    let series = Args::new().with("nan", f64::NAN).with("busy", true);
    let recorder = Recorder::get();
    recorder.counter(Level::E2e, "odd", &series);
    if let Some(track) = recorder.thread_track(std::process::id()) {
        track.counter(Level::E2e, "odd", sa_recorder::now_ns(), &series);
    }
    record("after", 10);
}

fn site(name: String) -> &'static Site {
    let name: &'static str = Box::leak(name.into_boxed_str());
    Box::leak(Box::new(Site::new(Level::E2e, "host", name)))
}

/// Opens spans from more call sites than the ring can list, then is killed while two of the last ones are open.
pub(crate) fn many_sites_then_killed() {
    // Long names come first, then short ones fill the rest of the table.
    for number in 0..200 {
        let length = if number < 100 { 1000 } else { 1 };
        let name = format!("{number}-{}", "s".repeat(length));
        drop(SpanGuard::open(site(name), |_| {}));
    }
    drop(Recorder::get().span(Level::E2e, "host", "before"));
    let _stack = SpanGuard::open(site("beyond on the stack".to_owned()), |_| {});
    let _lane = AsyncSpan::open(site("beyond on a lane".to_owned()), |_| {});
    let _known = SpanGuard::open(site("after".to_owned()), |_| {});
    crate::work::die();
}

/// Exchanges two file names repeatedly until the file `stop` exists.
pub(crate) fn exchange(one: &str, other: &str, stop: &str) {
    let text = |name: &str| std::ffi::CString::new(name).expect("a path without NUL");
    let (one, other) = (text(one), text(other));
    let (here, flags) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
    while !std::path::Path::new(stop).exists() {
        for _ in 0..64 {
            // SAFETY: both names are C strings.
            unsafe { libc::renameat2(here, one.as_ptr(), here, other.as_ptr(), flags) };
        }
    }
}
