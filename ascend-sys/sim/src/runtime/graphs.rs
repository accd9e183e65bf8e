//! Graphs: captured, run, and destroyed with everything that belongs to them.

use super::*;
use crate::capture::{Capture, valid_mode};
use crate::handle::Handle;
use crate::work::Work;
use ascend_sys::types::*;

impl Runtime {
    /// Begins to capture a stream, into a new graph or at the end of an existing one.
    pub(crate) fn begin_capture(
        &self,
        context: &Context,
        stream: &Stream,
        model: Option<Arc<Model>>,
        mode: aclmdlRICaptureMode,
    ) -> Outcome {
        valid_mode(mode)?;
        if context.is_default(stream) {
            return Err(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
        }
        fail_if(stream.capture().is_some(), ACL_ERROR_RT_STREAM_CAPTURED)?;
        let new = |handle| Model::new(handle, context.handle);
        let model = model.unwrap_or_else(|| self.models.add(new));
        model.begin_capture()?;
        let capture = Arc::new(Capture::new(model, mode, stream.handle, context.handle));
        capture.join(stream.handle);
        stream.set_capture(Some(Arc::clone(&capture)));
        self.captures.add(capture);
        Ok(())
    }

    /// Ends the capture of a stream. Returns its graph.
    pub(crate) fn end_capture(&self, context: &Context, stream: &Stream) -> Outcome<Arc<Model>> {
        let capture = stream.capture().ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)?;
        let ended = self.captures.end(&capture, stream.handle)?;
        self.release(&capture, &ended.streams);
        let model = &capture.model;
        let outcome = match ended.broken {
            ACL_SUCCESS => {
                model.extend(ended.tasks, ended.groups);
                self.add_streams(context, model, ended.streams.len())
            }
            code => Err(code),
        };
        model.end_capture();
        outcome.map(|()| Arc::clone(model))
    }

    /// Gives a graph at least this many streams of its own.
    fn add_streams(&self, context: &Context, model: &Model, streams: usize) -> Outcome {
        for _ in model.streams().len()..streams {
            let stream = self.new_stream(context, true)?;
            model.add_stream(stream.handle, stream.id);
        }
        Ok(())
    }

    /// Closes the group of kernels that is open in a captured stream.
    pub(crate) fn end_group(&self, stream: &Stream) -> Outcome<Arc<Group>> {
        let capture = stream.capture().ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)?;
        capture.end_group(stream.handle, |places| {
            let new = |handle| Group::new(handle, &capture.model, places);
            self.groups.add(new)
        })
    }

    /// Runs a graph in a stream.
    pub(crate) fn execute(model: &Model, context: &Context, stream: &Arc<Stream>) -> Outcome {
        let replay = model.replay(context.handle)?;
        stream.submit(Work::Replay(replay))
    }

    /// Returns handles of the tasks that came from the captured stream that `stream` represents.
    pub(crate) fn tasks_of(&self, stream: aclrtStream) -> Outcome<Vec<Handle>> {
        let give = |kind, seq| {
            let new = |handle| Task { handle, kind, seq };
            self.tasks.add(new).handle
        };
        let models = self.models.all();
        let mut tasks = models.iter();
        let own = tasks.find_map(|model| model.tasks_of(stream.into(), give));
        own.ok_or(ACL_ERROR_RT_STREAM_MODEL)
    }

    /// Destroys a graph, with its streams, tasks and groups. Runs under way go on.
    pub(crate) fn destroy_model(&self, model: &Model) -> Outcome {
        model.not_capturing()?;
        self.models.remove(model.handle)?;
        let content = model.take();
        self.destroy_streams(content.streams.iter().map(|(stream, _)| *stream));
        for (_, task) in &content.handles {
            self.tasks.remove(*task)?;
        }
        for group in &content.groups {
            self.groups.remove(group.handle)?;
        }
        content.call_back();
        Ok(())
    }
}
