//! The rt level (libruntime.so), by group.
#![expect(
    non_camel_case_types,
    non_snake_case,
    reason = "the vendor's names, verbatim"
)]

use crate::Library;

/// Launches.
pub mod launch {
    use crate::types::*;

    for_each_rt_launch! { functions, /** Launches. */ Launch }
}

/// Models.
pub mod model {
    use crate::types::*;

    for_each_rt_model! { functions, /** Models. */ Model }
}

/// Where stubs and binaries get their names.
pub mod naming {
    use crate::types::*;

    for_each_rt_naming! { functions, /** Where stubs and binaries get their names. */ Naming }
}

/// What the calling thread did last.
pub mod thread {
    use crate::types::*;

    for_each_rt_thread! { functions, /** What the calling thread did last. */ Thread }
}

/// Events and devices.
pub mod event {
    use crate::types::*;

    for_each_rt_event! { functions, /** Events and devices. */ Event }
}

/// All functions of the rt level, by group.
#[derive(Clone, Copy, Debug)]
pub struct Rt {
    /// Launches.
    pub launch: launch::Launch,
    /// Models.
    pub model: model::Model,
    /// Where stubs and binaries get their names.
    pub naming: naming::Naming,
    /// What the calling thread did last.
    pub thread: thread::Thread,
    /// Events and devices.
    pub event: event::Event,
}

impl Rt {
    /// Looks all functions up in a library.
    pub fn load(library: &Library) -> Self {
        Self {
            launch: launch::Launch::load(library),
            model: model::Model::load(library),
            naming: naming::Naming::load(library),
            thread: thread::Thread::load(library),
            event: event::Event::load(library),
        }
    }
}
