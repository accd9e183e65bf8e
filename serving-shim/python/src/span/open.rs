//! [`OpenSpan`]: a span that one function opens and another one closes. Observers of other code's calls need it.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use sa_recorder::now_ns;

use crate::engine::step::Step;
use crate::event::Event;
use crate::lane::{self, Missed};
use crate::scratch::Scratch;
use crate::span::push_error;
use crate::{names, value};

/// A span that is open from its creation. Only the thread or task that created it may close it.
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct OpenSpan {
    missed: Missed,
    /// End time of the observed call by the recorder's clock, or 0 if it was not set.
    ended_ns: AtomicU64,
}

#[pymethods]
impl OpenSpan {
    /// Sets the end of the span, which is the end of the observed call, to now. Returns this time in ns. Work between this and `close` is not part of the
    /// span.
    pub(crate) fn set_end(&self) -> u64 {
        let ended_ns = now_ns();
        self.ended_ns.store(ended_ns, Ordering::Relaxed);
        ended_ns
    }

    /// Ends the span. Adds the args of `step`, the further args in `args`, and the type of the exception `error` that ended the observed call, if they are
    /// given.
    #[pyo3(signature = (error=None, args=None, step=None, /))]
    pub(crate) fn close(
        slf: &Bound<'_, Self>,
        error: Option<&Bound<'_, PyAny>>,
        args: Option<&Bound<'_, PyDict>>,
        step: Option<&Bound<'_, Step>>,
    ) {
        let mut text = Scratch::empty();
        if let Some(step) = step {
            Step::push_args(step, &mut text.0);
        }
        if let Some(args) = args {
            value::push_all(&mut text.0, args);
        }
        OpenSpan::close_with(slf, error, &mut text.0);
    }

    /// Ends the span of a call that has processed a step's results, with the number of `outputs` and of their tokens. `graph` is true if a captured graph has
    /// computed the step, and `None` if that is unknown. Adds the further args in `args`, if they are given.
    #[pyo3(signature = (error, outputs, output_tokens, graph=None, args=None, /))]
    fn close_outputs(
        slf: &Bound<'_, Self>,
        error: Option<&Bound<'_, PyAny>>,
        outputs: u64,
        output_tokens: u64,
        graph: Option<bool>,
        args: Option<&Bound<'_, PyDict>>,
    ) {
        let mut text = Scratch::empty();
        value::push_native(&mut text.0, "outputs", &outputs);
        value::push_native(&mut text.0, "output_tokens", &output_tokens);
        if let Some(graph) = graph {
            value::push_native(&mut text.0, "graph", &graph);
        }
        if let Some(args) = args {
            value::push_all(&mut text.0, args);
        }
        OpenSpan::close_with(slf, error, &mut text.0);
    }

    /// Ends the span when the observed call ends. A hook that has no further args returns this function, which is then called with the result or the error of
    /// the call.
    #[pyo3(signature = (result, error, /))]
    fn leave(slf: &Bound<'_, Self>, result: &Bound<'_, PyAny>, error: Option<&Bound<'_, PyAny>>) {
        let _ = result;
        OpenSpan::close(slf, error, None, None);
    }
}

impl OpenSpan {
    /// Ends the span and adds the encoded args in `text`. If an exception `error` ended the observed call, adds its type too.
    pub(crate) fn close_with(
        slf: &Bound<'_, Self>,
        error: Option<&Bound<'_, PyAny>>,
        text: &mut Vec<u8>,
    ) {
        let open = slf.get();
        let ended_ns = Some(open.ended_ns.load(Ordering::Relaxed));
        let ended_ns = ended_ns.filter(|ns| *ns > 0).unwrap_or_else(now_ns);
        if let Some(error) = error {
            push_error(text, error.get_type().as_any());
        }
        let end = lane::End {
            args: text,
            ns: Some(ended_ns),
        };
        lane::exit_at(slf.py(), slf.as_ptr().addr(), &open.missed, end);
    }

    /// Opens a span, as `event` describes it, in the running task or thread.
    pub(crate) fn open<'py>(event: &Event<'_, 'py>) -> PyResult<Bound<'py, OpenSpan>> {
        let open = OpenSpan {
            missed: Missed::new(0),
            ended_ns: AtomicU64::new(0),
        };
        let open = Bound::new(event.py(), open)?;
        lane::enter(event, open.as_ptr().addr(), &open.get().missed);
        Ok(open)
    }
}

/// Opens a span with these args, for code that ends it in another function.
#[pyfunction]
#[pyo3(
    signature = (name, /, *, cat=None, level=None, **args),
    text_signature = "(name, /, *, cat='e2e', level='e2e', **args)"
)]
pub(crate) fn open_span<'py>(
    name: &Bound<'py, PyAny>,
    cat: Option<&Bound<'py, PyAny>>,
    level: Option<&Bound<'py, PyAny>>,
    args: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, OpenSpan>> {
    let text = Scratch::encode(args);
    OpenSpan::open(&Event::new(names::level(level)?, cat, name, &text.0)?)
}
