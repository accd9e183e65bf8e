//! The trace may not be written over what it is made of.

use crate::Error;
use crate::fragment::recording::Recording;
use crate::write::output::Destination;
use std::path::Path;

/// The trace may not be written over what it is made of.
pub(crate) fn refuse_inputs(
    destination: &Destination,
    recordings: &[Recording],
) -> Result<(), Error> {
    let Some(id) = destination.replaced() else {
        return Ok(());
    };
    let of_recording = |recording: &Recording| {
        let ring = recording.ring.iter().any(|(_, ring)| *ring == id);
        ring || recording.left_out_files.contains(&id)
            || recording.fragments.iter().any(|fragment| fragment.id == id)
    };
    if recordings.iter().any(of_recording) {
        return Err(Error::Usage(format!(
            "{}: the output is one of the inputs",
            destination.path().unwrap_or(Path::new("")).display()
        )));
    }
    Ok(())
}
