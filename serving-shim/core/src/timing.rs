//! The parts that the launching threads share with the devices' threads: the runtime, the gate, the counts and MSPTI.

use crate::config::{Choice, Config};
use crate::gate::Gate;
use crate::mspti::Mspti;
use crate::runtime::ascend::Runtime;
use crate::tally::Tally;
use sa_recorder::host;

/// The shared parts. The default is for a process without a runtime.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    pub(crate) runtime: Runtime,
    pub(crate) gate: Gate,
    pub(crate) tally: Tally,
    pub(crate) mspti: Mspti,
}

impl Timing {
    /// Opens the device runtime that the settings select. `at_exit` ends MSPTI at the exit of the process, if it is used.
    pub(crate) fn open(config: &Config, at_exit: extern "C" fn()) -> Timing {
        for warning in &config.warnings {
            host::warn_once(warning);
        }
        let runtime = match config.choice {
            Choice::Off => Ok(Runtime::default()),
            Choice::Sim => Runtime::simulator(),
            Choice::Vendor => Runtime::vendor(),
        };
        let runtime = runtime.unwrap_or_else(|error| {
            host::warn_once(&format!("launches are only recorded on the host: {error}"));
            Runtime::default()
        });
        let uses_mspti = config.mspti && !runtime.is_absent();
        Timing {
            mspti: Mspti::new(uses_mspti.then_some(at_exit)),
            runtime,
            ..Timing::default()
        }
    }
}
