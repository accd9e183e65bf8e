//! A request that an engine's frontend starts to wait for.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sa_recorder::{Args, FLOW_CATEGORY, FlowPhase, Level, now_ns};

use super::{FrontRequest, REQUEST, open};
use crate::async_span::{self, AsyncSpan};
use crate::attached::Attached;
use crate::call::{id, misuse};
use crate::engine::http::exchange::Exchange;
use crate::engine::http::signed;
use crate::engine::outputs::OutputCounts;
use crate::point::{flow_id, write_duration, write_flow};
use crate::scratch::Scratch;
use crate::span::open::OpenSpan;
use crate::value::{self, push_native as push};

/// A request that an engine's frontend starts to wait for.
pub(super) struct Admitted<'py> {
    pub(super) request_id: Bound<'py, PyAny>,
    pub(super) external_id: Bound<'py, PyAny>,
    pub(super) prompt_tokens: Option<u64>,
}

impl<'py> Admitted<'py> {
    fn py(&self) -> Python<'py> {
        self.request_id.py()
    }

    /// Opens the span of the call that accepts the request.
    pub(super) fn open_span(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, OpenSpan>> {
        let mut text = Scratch::empty();
        value::push_named(&mut text.0, "request_id", &self.request_id);
        self.push_request_args(&mut text.0);
        open(name, &text.0)
    }

    fn push_request_args(&self, text: &mut Vec<u8>) {
        value::push_named(text, "external_id", &self.external_id);
        match self.prompt_tokens {
            Some(tokens) => push(text, "prompt_tokens", &tokens),
            None => text.extend_from_slice(b",\"prompt_tokens\":null"),
        }
    }

    /// Records a span for the work from the engine's own arrival stamp until now: templates, tokeniser (including the wait for it) and checks. The engine's
    /// TTFT and E2E latency start at that stamp. Records nothing without a stamp.
    pub(super) fn record_preprocessing(
        &self,
        arrival_ns: Option<u64>,
        exchange: Option<&Bound<'_, Exchange>>,
    ) {
        const NAME: &str = "request.preprocess";
        let py = self.py();
        let Some(since_ns) = arrival_ns else {
            return;
        };
        let mut text = Vec::new();
        value::push_named(&mut text, "request_id", &self.request_id);
        value::push_named(&mut text, "external_id", &self.external_id);
        let args = Args::from_text(text);
        let took_ns = now_ns().saturating_sub(since_ns);
        let is_on_track = exchange.is_some_and(|exchange| {
            exchange.get().write(py, since_ns, |track| {
                track.duration(Level::E2e, REQUEST, NAME, since_ns, took_ns, &args);
            })
        });
        if !is_on_track && sa_recorder::__wants(Level::E2e) {
            let times = (Some(since_ns), signed(took_ns));
            write_duration(py, Level::E2e, (REQUEST, NAME), times, &args);
        }
    }

    /// Opens the request's span and adds the request to `open`, the dict of open requests. `options` returns the client's options as a dict, and `stamps` is
    /// the engine's object with the request's stamps.
    pub(super) fn begin(
        &self,
        open: &Bound<'py, PyDict>,
        options: &Bound<'py, PyAny>,
        stamps: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let py = self.py();
        let tally = OutputCounts::new(0);
        let mut text = Scratch::empty();
        let id = id::text("request_id", &self.request_id)?;
        value::push_named(&mut text.0, "request_id", id.as_any());
        push(&mut text.0, "number", &tally.number());
        self.push_request_args(&mut text.0);
        match options
            .call0()
            .and_then(|found| Ok(found.cast_into::<PyDict>()?))
        {
            Ok(options) => value::push_all(&mut text.0, &options),
            Err(error) => misuse::failed(py, "FrontRequests.admit", error)?,
        }
        let name = intern!(py, REQUEST).as_any();
        let span = async_span::open(name, (REQUEST, Level::E2e), None, &text.0)?;
        let request = FrontRequest {
            request_id: self.request_id.clone().unbind(),
            external_id: self.external_id.clone().unbind(),
            stamps: stamps.unwrap_or_else(|| py.None()),
            span: AsyncSpan::new(span),
            cached_tokens: Attached::new(None),
        };
        open.set_item(&self.request_id, Bound::new(py, (request, tally))?)
    }

    /// Starts the request's flow arrow in the span of the HTTP request `exchange`, or in the current span if there is none.
    pub(super) fn link(&self, exchange: Option<&Bound<'py, Exchange>>) -> PyResult<()> {
        let py = self.py();
        let id = || flow_id(&self.request_id, false);
        let names = (FLOW_CATEGORY, REQUEST);
        let is_started = match exchange {
            Some(exchange) => {
                let exchange = exchange.get();
                exchange.add_request(&self.request_id, &self.external_id, id()?)?
            }
            None => false,
        };
        if !is_started && sa_recorder::__wants(Level::E2e) {
            write_flow(py, Level::E2e, FlowPhase::Start, names, id()?, None);
        }
        if exchange.is_some() && sa_recorder::__wants(Level::Verbose) {
            write_flow(py, Level::Verbose, FlowPhase::Step, names, id()?, None);
        }
        Ok(())
    }
}
