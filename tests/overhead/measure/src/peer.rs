//! Recorders: what can be measured.

mod contract;
mod control;
mod fastrace;
mod line;
mod measureme;
mod mutex_serde;
mod puffin;
mod tracing_chrome;

pub use contract::{Peer, each};
pub use control::Control;
pub use fastrace::Fastrace;
pub use line::finished_lines;
pub use measureme::Measureme;
pub use mutex_serde::MutexSerde;
pub use puffin::Puffin;
pub use tracing_chrome::TracingChrome;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Free, Kind};
    use std::path::PathBuf;

    // One test per recorder whose state is the process's: nextest gives each a process of its own.
    fn three_steps(peer: impl Peer) -> PathBuf {
        peer.record(Kind::Span1, 0..3, &mut Free);
        peer.settle();
        peer.finish().expect("it wrote a file")
    }

    #[test]
    fn tracing_chrome_writes_what_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = three_steps(TracingChrome::start(dir.path()).unwrap());
        assert_eq!(TracingChrome::finished(&path).unwrap(), [0, 1, 2]);
    }

    #[test]
    fn fastrace_writes_what_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = three_steps(Fastrace::start(dir.path()).unwrap());
        let mut finished = Fastrace::finished(&path).unwrap();
        finished.sort_unstable();
        assert_eq!(finished, [0, 1, 2]);
    }

    #[test]
    fn puffin_writes_what_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = three_steps(Puffin::start(dir.path()).unwrap());
        assert_eq!(Puffin::finished(&path).unwrap(), [0, 1, 2]);
    }

    #[test]
    fn measureme_writes_what_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = three_steps(Measureme::start(dir.path()).unwrap());
        assert_eq!(Measureme::finished(&path).unwrap(), [0, 1, 2]);
    }

    #[test]
    fn mutex_serde_writes_what_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = three_steps(MutexSerde::start(dir.path()).unwrap());
        assert_eq!(MutexSerde::finished(&path).unwrap(), [0, 1, 2]);
    }
}
