//! Captures, runs and destroys graphs.

use super::*;
use crate::capture::{Capture, valid_mode};
use crate::outcome;
use crate::work::Work;
use ascend_sys::types::*;

impl Runtime {
    /// Begins to capture a stream into a new graph.
    pub(crate) fn begin_capture(
        &self,
        context: &Context,
        stream: &Stream,
        mode: aclmdlRICaptureMode,
    ) -> Outcome {
        valid_mode(mode)?;
        if context.is_default(stream) {
            return Err(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
        }
        fail_if(stream.capture().is_some(), ACL_ERROR_RT_STREAM_CAPTURED)?;
        let new = |handle| Model::new(handle, context.handle, &context.device);
        let model = self.models.add(new);
        let capture = Arc::new(Capture::new(model, mode, stream.handle, context.handle));
        capture.join(stream.handle);
        stream.set_capture(Some(Arc::clone(&capture)));
        self.captures.add(capture);
        Ok(())
    }

    /// Ends the capture of a stream. Returns its graph.
    pub(crate) fn end_capture(&self, stream: &Stream) -> Outcome<Arc<Model>> {
        let capture = stream.capture().ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)?;
        let ended = self.captures.end(&capture, stream.handle)?;
        self.release(&capture, &ended.streams);
        let model = &capture.model;
        model.end_capture();
        outcome(ended.error)?;
        model.fill(ended.tasks, ended.groups, ended.streams.len())?;
        Ok(Arc::clone(model))
    }

    /// Closes the group of kernels that is open in a captured stream.
    pub(crate) fn end_group(&self, stream: &Stream) -> Outcome<Arc<Group>> {
        let capture = stream.capture().ok_or(ACL_ERROR_RT_STREAM_NOT_CAPTURED)?;
        capture.end_group(stream.handle, |indexes| {
            let new = |handle| Group::new(handle, &capture.model, indexes);
            self.groups.add(new)
        })
    }

    /// Runs a graph in a stream.
    pub(crate) fn execute(model: &Model, context: &Context, stream: &Arc<Stream>) -> Outcome {
        let replay = model.replay(context.handle)?;
        stream.submit(Work::Replay(replay))
    }

    /// Destroys a graph with its streams and groups. Submitted runs continue.
    pub(crate) fn destroy_model(&self, model: &Model) -> Outcome {
        model.not_capturing()?;
        self.models.remove(model.handle)?;
        let groups = model.end();
        groups
            .iter()
            .try_for_each(|group| self.groups.remove(group.handle).map(drop))
    }
}
