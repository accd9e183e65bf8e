//! Measures our own recorder.

use std::hint::black_box;
use std::ops::Range;
use std::path::PathBuf;

use sa_recorder::{FlowId, FlowPhase, Recorder, async_span, counter, flow, instant, span};

use super::{Beat, Kind, Peer, each};

/// `sa-recorder`, as the environment asks for it.
impl Peer for Recorder {
    fn record(&self, kind: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        match kind {
            Kind::Span => each(steps, beat, |_| {
                black_box(&span!("bench", "decode"));
            }),
            Kind::Span1 | Kind::Off => each(steps, beat, |step| {
                black_box(&span!("bench", "decode", step = step));
            }),
            Kind::Span3 => each(steps, beat, |step| {
                let (phase, share) = (black_box("prefill"), black_box(0.25));
                black_box(&span!(
                    "bench",
                    "decode",
                    step = step,
                    phase = phase,
                    share = share
                ));
            }),
            Kind::Filtered => each(steps, beat, |step| {
                black_box(&span!(verbose, "bench", "decode", step = step));
            }),
            Kind::Instant => each(steps, beat, |step| {
                instant!("bench", "token", step = black_box(step));
            }),
            Kind::Counter => each(steps, beat, |step| {
                counter!("requests", waiting = black_box(step));
            }),
            Kind::Flow => each(steps, beat, |step| {
                flow(FlowPhase::Start, "request", FlowId::Process(step));
            }),
            Kind::Async => each(steps, beat, |step| {
                black_box(&async_span!("bench", "request", step = step));
            }),
        }
    }

    fn settle(&self) {
        self.flush();
    }

    fn finish(self) -> Option<PathBuf> {
        let fragment = self.fragment();
        Recorder::finish(self);
        fragment
    }
}
