//! The start of every child process: its role, its tie to the launcher's life, its name in the trace.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, io};

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use sa_recorder::Recorder;
use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::engine::EngineOptions;
use crate::worker::Place;
use crate::{api, engine, launcher, worker};

/// First argument of a child process; its second is the role as JSON.
const MARK: &str = "internal-child";

/// What a child process is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Child {
    /// The launcher's pid.
    pub(crate) launcher: i32,
    pub(crate) role: Role,
    /// The engine core's socket.
    pub(crate) engine: PathBuf,
}

/// The kinds of child processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    Api,
    Engine(EngineOptions),
    Worker(Place),
}

impl Role {
    /// Its name in the trace and in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Role::Api => "serving-api".to_owned(),
            Role::Engine(_) => "engine-core".to_owned(),
            Role::Worker(place) => format!("worker-{}", place.index),
        }
    }

    /// Whether it records itself.
    fn is_recorded(&self) -> bool {
        !matches!(self, Role::Worker(place) if !place.recorded)
    }
}

impl Child {
    /// The role in this process's arguments; `None` in the launcher.
    pub(crate) fn from_args() -> Option<Result<Child, String>> {
        let mut args = env::args_os().skip(1);
        if args.next()? != MARK {
            return None;
        }
        let json = args.next().unwrap_or_default();
        let child = serde_json::from_slice(json.as_encoded_bytes());
        Some(child.map_err(|error| format!("{MARK}: {error}")))
    }

    /// The arguments that make a new process this child.
    pub(crate) fn to_args(&self) -> io::Result<[OsString; 2]> {
        Ok([MARK.into(), serde_json::to_string(self)?.into()])
    }

    /// Runs the child to its end.
    pub(crate) fn run(self) -> ExitCode {
        if !self.tie_to_launcher() {
            return ExitCode::FAILURE;
        }
        let name = self.role.name();
        let recorder = self.role.is_recorded().then(Recorder::init);
        if let Some(recorder) = recorder {
            recorder.set_process_name(&name);
        }
        let done = Control::from_stdin().and_then(|control| self.serve(control));
        if let Some(recorder) = recorder {
            recorder.finish();
        }
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                launcher::complain(&format!("{name}: {error}"));
                ExitCode::FAILURE
            }
        }
    }

    /// Makes the kernel kill this process when the launcher dies; false if it is dead already.
    fn tie_to_launcher(&self) -> bool {
        let tied = prctl::set_pdeathsig(Signal::SIGKILL).is_ok();
        // The launcher may have died before the call above: then this process has another parent by now.
        tied && getppid() == Pid::from_raw(self.launcher)
    }

    fn serve(self, control: Control) -> io::Result<()> {
        match self.role {
            Role::Api => api::serve(&self.engine, &control),
            Role::Engine(options) => engine::serve(&self.engine, &options, &control),
            Role::Worker(place) => worker::serve(&self.engine, place, &control),
        }
    }
}
