//! The macros. Each use has one static [`Site`](crate::Site) and typed args, and evaluates nothing
//! while its level is off.

/// Opens a span of the calling thread that ends when the returned [`SpanGuard`](crate::SpanGuard)
/// is dropped.
///
/// `span!([level,] category, name, key = value, …)`; the level is `e2e` (default), `kernel` or
/// `verbose`. Values are not evaluated while the level is off.
///
/// ```
/// # let (prefill, decode) = (1, 7);
/// let mut step = sa_recorder::span!("worker", "WorkerProcess.execute_step", prefill = prefill, decode = decode);
/// {
///     let _kernel = sa_recorder::span!(kernel, "kernel", "matmul", m = 64, n = 64);
/// }
/// step.arg("tokens", 8);
/// ```
#[macro_export]
macro_rules! span {
    ($($rest:tt)*) => {
        $crate::__leveled!([$crate::SpanGuard::open, $crate::SpanGuard::off()] $($rest)*)
    };
}

/// Opens a span that lives across awaits or threads, on a virtual lane, until the returned
/// [`AsyncSpan`](crate::AsyncSpan) is dropped. Takes the same arguments as [`span!`](crate::span!).
#[macro_export]
macro_rules! async_span {
    ($($rest:tt)*) => {
        $crate::__leveled!([$crate::AsyncSpan::open, $crate::AsyncSpan::off()] $($rest)*)
    };
}

/// Records an instant on the calling thread. Takes the same arguments as [`span!`](crate::span!).
///
/// ```
/// sa_recorder::instant!("serving", "request.queued", request_id = "cmpl-1", prompt_tokens = 12);
/// ```
#[macro_export]
macro_rules! instant {
    ($($rest:tt)*) => {
        $crate::__leveled!([$crate::site_instant, ()] $($rest)*)
    };
}

/// Records a counter: `counter!(name, series = number, …)`.
///
/// A boolean counts as 0 or 1. A value that is not a finite number is left out and counted as
/// `bad_series`. A counter without any other value is not recorded.
///
/// ```
/// sa_recorder::counter!("requests", running = 3, waiting = 1);
/// ```
#[macro_export]
macro_rules! counter {
    ($name:literal $(, $key:ident = $value:expr)+ $(,)?) => {
        $crate::__at!([$crate::site_counter, ()] E2e, "counter", $name $(, $key = $value)+)
    };
}

/// Determines the level of an event.
#[doc(hidden)]
#[macro_export]
macro_rules! __leveled {
    ($event:tt e2e, $($rest:tt)*) => { $crate::__at!($event E2e, $($rest)*) };
    ($event:tt kernel, $($rest:tt)*) => { $crate::__at!($event Kernel, $($rest)*) };
    ($event:tt verbose, $($rest:tt)*) => { $crate::__at!($event Verbose, $($rest)*) };
    ($event:tt $($rest:tt)*) => { $crate::__at!($event E2e, $($rest)*) };
}

/// Creates one static site and calls a function that records. While the level is off, returns
/// another value instead.
#[doc(hidden)]
#[macro_export]
macro_rules! __at {
    ([$record:path, $off:expr] $level:ident, $category:literal, $name:literal $(, $key:ident = $value:expr)* $(,)?) => {{
        static SITE: $crate::Site = $crate::Site::new($crate::Level::$level, $category, $name);
        if $crate::__wants($crate::Level::$level) {
            // The values are evaluated first: they may record events of their own.
            match ($(&$value,)*) {
                ($($key,)*) => $record(&SITE, |args: &mut $crate::SiteArgs<'_>| {
                    let _ = &args;
                    $(args.add(concat!("\"", stringify!($key), "\":"), $key);)*
                }),
            }
        } else {
            $off
        }
    }};
}
