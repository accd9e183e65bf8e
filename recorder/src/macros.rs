//! The macros: one static [`Site`](crate::Site) per use, typed args, nothing evaluated while the level is off.

/// Opens a span of the calling thread that ends when the returned [`SpanGuard`](crate::SpanGuard) is dropped.
///
/// `span!([level,] category, name, key = value, …)`; the level is `e2e` (default), `kernel` or `verbose`. Values are not evaluated while the
/// level is off.
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
    (e2e, $($rest:tt)*) => { $crate::__at!(E2e, span, $($rest)*) };
    (kernel, $($rest:tt)*) => { $crate::__at!(Kernel, span, $($rest)*) };
    (verbose, $($rest:tt)*) => { $crate::__at!(Verbose, span, $($rest)*) };
    ($($rest:tt)*) => { $crate::__at!(E2e, span, $($rest)*) };
}

/// Opens a span that lives across awaits or threads, on a virtual lane, until the returned [`AsyncSpan`](crate::AsyncSpan) is dropped.
/// Takes what [`span!`](crate::span!) takes.
#[macro_export]
macro_rules! async_span {
    (e2e, $($rest:tt)*) => { $crate::__at!(E2e, async_span, $($rest)*) };
    (kernel, $($rest:tt)*) => { $crate::__at!(Kernel, async_span, $($rest)*) };
    (verbose, $($rest:tt)*) => { $crate::__at!(Verbose, async_span, $($rest)*) };
    ($($rest:tt)*) => { $crate::__at!(E2e, async_span, $($rest)*) };
}

/// Records an instant on the calling thread. Takes what [`span!`](crate::span!) takes.
///
/// ```
/// sa_recorder::instant!("serving", "request.queued", request_id = "cmpl-1", prompt_tokens = 12);
/// ```
#[macro_export]
macro_rules! instant {
    (e2e, $($rest:tt)*) => { $crate::__at!(E2e, instant, $($rest)*) };
    (kernel, $($rest:tt)*) => { $crate::__at!(Kernel, instant, $($rest)*) };
    (verbose, $($rest:tt)*) => { $crate::__at!(Verbose, instant, $($rest)*) };
    ($($rest:tt)*) => { $crate::__at!(E2e, instant, $($rest)*) };
}

/// Records a counter: `counter!(name, series = number, …)`.
///
/// A boolean counts as 0 or 1. A value that is not a finite number is left out, and counted as `bad_series`; so is a counter without any other.
///
/// ```
/// sa_recorder::counter!("requests", running = 3, waiting = 1);
/// ```
#[macro_export]
macro_rules! counter {
    ($name:literal $(, $key:ident = $value:expr)+ $(,)?) => {
        $crate::__at!(E2e, counter, "counter", $name $(, $key = $value)+)
    };
}

/// One static site and one call, for each kind of event.
#[doc(hidden)]
#[macro_export]
macro_rules! __at {
    ($level:ident, $kind:ident, $category:literal, $name:literal $(, $key:ident = $value:expr)* $(,)?) => {{
        static SITE: $crate::Site = $crate::Site::new($crate::Level::$level, $category, $name);
        if $crate::__wants($crate::Level::$level) {
            // The values are evaluated first: they may record events of their own.
            match ($(&$value,)*) {
                ($($key,)*) => $crate::__record!($kind, SITE, |args: &mut $crate::SiteArgs<'_>| {
                    let _ = &args;
                    $(args.add(concat!("\"", stringify!($key), "\":"), $key);)*
                }),
            }
        } else {
            $crate::__off!($kind)
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    (span, $site:ident, $args:expr) => {
        $crate::SpanGuard::open(&$site, $args)
    };
    (async_span, $site:ident, $args:expr) => {
        $crate::AsyncSpan::open(&$site, $args)
    };
    (instant, $site:ident, $args:expr) => {
        $crate::site_instant(&$site, $args)
    };
    (counter, $site:ident, $args:expr) => {
        $crate::site_counter(&$site, $args)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __off {
    (span) => {
        $crate::SpanGuard::off()
    };
    (async_span) => {
        $crate::AsyncSpan::off()
    };
    ($other:ident) => {
        ()
    };
}
