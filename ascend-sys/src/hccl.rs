//! Collectives (libhccl.so), by group.
#![expect(non_snake_case, reason = "the vendor's names, verbatim")]

use crate::Library;

/// Collectives, submitted to a stream.
pub mod collective {
    use crate::types::*;

    for_each_collective! { functions, /** Collectives, submitted to a stream. */ Collective }
}

/// Communicators.
pub mod comm {
    use crate::types::*;

    for_each_comm! { functions, /** Communicators. */ Comm }
}

/// All functions of HCCL, by group.
#[derive(Clone, Copy, Debug)]
pub struct Hccl {
    /// Collectives, submitted to a stream.
    pub collective: collective::Collective,
    /// Communicators.
    pub comm: comm::Comm,
}

impl Hccl {
    /// Looks all functions up in a library.
    pub fn load(library: &Library) -> Self {
        Self {
            collective: collective::Collective::load(library),
            comm: comm::Comm::load(library),
        }
    }
}
