//! Creates and destroys streams and events, and submits the records, waits and resets of events.

use super::*;
use crate::capture::Capture;
use crate::handle::Handle;
use crate::work::Work;
use ascend_sys::types::*;

impl Runtime {
    /// Creates a stream in a context.
    pub(crate) fn new_stream(&self, context: &Context) -> Outcome<Arc<Stream>> {
        let id = context.device.allocate_stream_id()?;
        let new = |handle| Stream::new(handle, id, context.home());
        Ok(self.streams.add(new))
    }

    /// Notifies the listeners of a new stream. They may call the runtime again, so no lock may be held.
    pub(crate) fn announce(&self, stream: &Stream) {
        let state = ACL_RT_STREAM_STATE_CREATE_POST;
        self.listeners.stream(stream.handle, state);
    }

    /// Notifies the listeners that a stream will be destroyed, while it still works. As with `announce`, no lock may be held.
    pub(crate) fn announce_end(&self, stream: &Stream) {
        let state = ACL_RT_STREAM_STATE_DESTROY_PRE;
        self.listeners.stream(stream.handle, state);
    }

    /// Destroys a stream and drops its work. Invalidates the capture to which it belongs.
    pub(crate) fn destroy_stream(&self, stream: &Stream) {
        if self.streams.remove(stream.handle).is_err() {
            return;
        }
        stream.close();
        if let Some(capture) = stream.capture() {
            let ended = self.captures.remove_stream(&capture, stream.handle);
            if !ended.streams.is_empty() {
                stream.set_capture(None);
            }
            self.release(&capture, &ended.streams);
        }
    }

    /// Frees the streams of a capture that has ended. The handle of a destroyed stream may belong to another stream by now.
    pub(super) fn release(&self, capture: &Arc<Capture>, streams: &[Handle]) {
        let streams = streams
            .iter()
            .filter_map(|stream| self.streams.get(*stream).ok());
        let is_in = |stream: &Arc<Stream>| {
            stream
                .capture()
                .is_some_and(|own| Arc::ptr_eq(&own, capture))
        };
        streams
            .filter(is_in)
            .for_each(|stream| stream.set_capture(None));
    }

    /// Creates an event of a context's device.
    pub(crate) fn new_event(&self, context: &Context, flags: u32, ex: bool) -> Arc<Event> {
        let new = |handle| Event::new(handle, &context.device, flags, ex);
        self.events.add(new)
    }

    /// Records an event in a stream. In a capture, a timed event is not recorded: the call succeeds and does nothing.
    pub(crate) fn record(&self, event: &Arc<Event>, stream: &Arc<Stream>) -> Outcome {
        if let Some(capture) = stream.capture() {
            fail_if(!event.ex, ACL_ERROR_RT_FEATURE_NOT_SUPPORT)?;
            if !event.is_timed() {
                stream.submitted_last(capture.record(stream.handle, event.handle)?);
                event.record_captured(&capture.status);
            }
            return Ok(());
        }
        let record = event.begin_record();
        let submitted = stream.submit(Work::Record {
            event: Arc::clone(event),
            record,
        });
        submitted.inspect_err(|_| event.drop_record(record))
    }

    /// Makes the later work of a stream wait for the last record of an event. An event that was never recorded delays nothing.
    pub(crate) fn wait(&self, event: &Arc<Event>, stream: &Arc<Stream>) -> Outcome {
        let captured = event.capture();
        let capture = captured.and_then(|status| self.captures.by_status(&status));
        match (capture, stream.capture()) {
            (Some(capture), own) => {
                match own {
                    None => {
                        capture.join(stream.handle);
                        stream.set_capture(Some(Arc::clone(&capture)));
                    }
                    Some(own) if Arc::ptr_eq(&own, &capture) => {}
                    Some(_) => return Err(ACL_ERROR_STREAM_CAPTURE_CONFLICT),
                }
                stream.submitted_last(capture.wait(stream.handle, event.handle)?);
                return Ok(());
            }
            (None, Some(capture)) => {
                capture.status.invalidate();
                return Err(ACL_ERROR_RT_CAPTURE_DEPENDENCY);
            }
            (None, None) => {}
        }
        let record = event.begin_wait();
        let submitted = stream.submit(Work::Wait {
            event: Arc::clone(event),
            record,
        });
        submitted.inspect_err(|_| event.drop_wait())
    }

    /// Resets an event in a stream.
    pub(crate) fn reset(&self, event: &Arc<Event>, stream: &Arc<Stream>) -> Outcome {
        event.not_ex()?;
        event.not_captured()?;
        let covers = match stream.capture() {
            Some(_) => None,
            None => Some(event.last_record()),
        };
        stream.submit(Work::Reset {
            event: Arc::clone(event),
            covers,
        })
    }
}
