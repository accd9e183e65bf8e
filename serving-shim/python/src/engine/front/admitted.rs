//! A request that an API server starts to wait for, read from vLLM's object.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sa_recorder::{Args, FLOW_CATEGORY, FlowPhase, Level, now_ns};

use super::{FrontRequest, REQUEST, attribute, open};
use crate::async_span::{self, AsyncSpan};
use crate::attached::Attached;
use crate::call::{id, misuse};
use crate::engine::http::exchange::Exchange;
use crate::engine::http::signed;
use crate::engine::outputs::OutputCounts;
use crate::engine::stamps;
use crate::point::{flow_id, write_duration, write_flow};
use crate::scratch::Scratch;
use crate::span::open::OpenSpan;
use crate::value::{self, push_native as push};

/// A request that vLLM starts to wait for.
pub(super) struct Admitted<'a, 'py> {
    new: &'a Bound<'py, PyAny>,
    parent: Option<&'a Bound<'py, PyAny>>,
    pub(super) request_id: Bound<'py, PyAny>,
    external_id: Bound<'py, PyAny>,
    prompt_tokens: Option<usize>,
}

impl<'a, 'py> Admitted<'a, 'py> {
    pub(super) fn read(
        new: &'a Bound<'py, PyAny>,
        parent: Option<&'a Bound<'py, PyAny>>,
    ) -> PyResult<Admitted<'a, 'py>> {
        let py = new.py();
        let request_id = new.getattr(intern!(py, "request_id"))?;
        // Without internal ids, vLLM derives the ids of several answers from the id of the client's request.
        let mut external_id = attribute(new, intern!(py, "external_req_id"))?;
        if !is_true(external_id.as_ref())
            && let Some(parent) = parent
        {
            external_id = attribute(parent, intern!(py, "request_id"))?;
        }
        let external_id = external_id.filter(|id| is_true(Some(id)));
        let prompt = attribute(new, intern!(py, "prompt_token_ids"))?;
        Ok(Admitted {
            new,
            parent,
            external_id: external_id.unwrap_or_else(|| request_id.clone()),
            request_id,
            prompt_tokens: prompt.map(|prompt| prompt.len()).transpose()?,
        })
    }

    fn py(&self) -> Python<'py> {
        self.new.py()
    }

    pub(super) fn open_span(&self) -> PyResult<Bound<'py, OpenSpan>> {
        let mut text = Scratch::empty();
        value::push_named(&mut text.0, "request_id", &self.request_id);
        self.push_request_args(&mut text.0);
        open(intern!(self.py(), "OutputProcessor.add_request"), &text.0)
    }

    fn push_request_args(&self, text: &mut Vec<u8>) {
        value::push_named(text, "external_id", &self.external_id);
        match self.prompt_tokens {
            Some(tokens) => push(text, "prompt_tokens", &tokens),
            None => text.extend_from_slice(b",\"prompt_tokens\":null"),
        }
    }

    /// Records a span for the work from vLLM's own arrival stamp until now: templates, tokeniser (including the wait for it) and checks. vLLM's TTFT and E2E
    /// latency start at that stamp.
    pub(super) fn record_preprocessing(&self, exchange: Option<&Bound<'_, Exchange>>) {
        const NAME: &str = "request.preprocess";
        let py = self.py();
        let stamp = attribute(self.new, intern!(py, "arrival_time"))
            .ok()
            .flatten();
        let Some(since_ns) = stamp.and_then(|stamp| stamps::from_wall_clock(&stamp)) else {
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

    /// Opens the request's span and adds the request to `open`, the dict of open requests.
    pub(super) fn begin(&self, open: &Bound<'py, PyDict>) -> PyResult<()> {
        let py = self.py();
        let tally = OutputCounts::new(0);
        let mut text = Scratch::empty();
        let id = id::text("request_id", &self.request_id)?;
        value::push_named(&mut text.0, "request_id", id.as_any());
        push(&mut text.0, "number", &tally.number());
        self.push_request_args(&mut text.0);
        let required = text.0.len();
        if let Err(error) = self.push_options(&mut text.0) {
            text.0.truncate(required);
            misuse::failed(py, "FrontRequests.admit", error)?;
        }
        let name = intern!(py, REQUEST).as_any();
        let span = async_span::open(name, (REQUEST, Level::E2e), None, &text.0)?;
        let request = FrontRequest {
            request_id: self.request_id.clone().unbind(),
            external_id: self.external_id.clone().unbind(),
            span: AsyncSpan::new(span),
            cached_tokens: Attached::new(None),
        };
        open.set_item(&self.request_id, Bound::new(py, (request, tally))?)
    }

    /// Appends args for the client's options, such as `max_tokens` and `priority`, as far as they affect how the request is served.
    fn push_options(&self, text: &mut Vec<u8>) -> PyResult<()> {
        let py = self.py();
        let params = attribute(self.new, intern!(py, "sampling_params"))?;
        if let Some(params) = &params
            && let Some(tokens) = attribute(params, intern!(py, "max_tokens"))?
        {
            value::push_named(text, "max_tokens", &tokens);
        }
        self.push_samples(text)?;
        if let Some(params) = &params {
            // Looking up a missing attribute creates an exception.
            let structured = match params.getattr_opt(intern!(py, "structured_outputs"))? {
                Some(structured) => Some(structured),
                None => params.getattr_opt(intern!(py, "guided_decoding"))?, // older versions
            };
            if structured.is_some_and(|structured| !structured.is_none()) {
                push(text, "structured", &true);
            }
        }
        let priority = attribute(self.new, intern!(py, "priority"))?;
        if let Some(priority) = priority.filter(|priority| is_true(Some(priority))) {
            value::push_named(text, "priority", &priority);
        }
        if let Some(adapter) = attribute(self.new, intern!(py, "lora_request"))?
            && let Some(name) = attribute(&adapter, intern!(py, "lora_name"))?
        {
            value::push_named(text, "lora", &name);
        }
        Ok(())
    }

    /// Appends the arg `n`, the number of answers that the client wants, if it is more than one.
    fn push_samples(&self, text: &mut Vec<u8>) -> PyResult<()> {
        let py = self.py();
        if let Some(parent) = self.parent
            && let Some(params) = attribute(parent, intern!(py, "sampling_params"))?
            && let Some(samples) = attribute(&params, intern!(py, "n"))?
            && samples.gt(1)?
        {
            value::push_named(text, "n", &samples);
        }
        Ok(())
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

fn is_true(object: Option<&Bound<'_, PyAny>>) -> bool {
    object.is_some_and(|object| object.is_truthy().unwrap_or(false))
}
