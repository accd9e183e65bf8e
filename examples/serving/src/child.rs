//! Start of every child process: reads its role, ties its life to the launcher's, and names it in the trace.

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
use crate::worker::WorkerOptions;
use crate::{api, engine, launcher, worker};

/// First argument of a child process. The second is the role as JSON.
const CHILD_ARGUMENT: &str = "internal-child";

/// The role and the connections of a child process.
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
    Worker(WorkerOptions),
}

impl Role {
    /// Returns the name of the process in the trace and in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Role::Api => "serving-api".to_owned(),
            Role::Engine(_) => "engine-core".to_owned(),
            Role::Worker(options) => format!("worker-{}", options.index),
        }
    }

    /// Returns true if the process records itself.
    fn is_recorded(&self) -> bool {
        !matches!(self, Role::Worker(options) if !options.recorded)
    }
}

impl Child {
    /// Parses this process's arguments. Returns `None` in the launcher.
    pub(crate) fn from_args() -> Option<Result<Child, String>> {
        let mut args = env::args_os().skip(1);
        if args.next()? != CHILD_ARGUMENT {
            return None;
        }
        let json = args.next().unwrap_or_default();
        let child = serde_json::from_slice(json.as_encoded_bytes());
        Some(child.map_err(|error| format!("{CHILD_ARGUMENT}: {error}")))
    }

    /// Returns the arguments with which a new process becomes this child.
    pub(crate) fn to_args(&self) -> io::Result<[OsString; 2]> {
        Ok([CHILD_ARGUMENT.into(), serde_json::to_string(self)?.into()])
    }

    /// Runs the child until it ends.
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
                launcher::print_error(&format!("{name}: {error}"));
                ExitCode::FAILURE
            }
        }
    }

    /// Makes the kernel kill this process when the launcher dies. Returns false if the launcher is already dead.
    fn tie_to_launcher(&self) -> bool {
        let tied = prctl::set_pdeathsig(Signal::SIGKILL).is_ok();
        // If the launcher died before the call above, this process has another parent by now.
        tied && getppid() == Pid::from_raw(self.launcher)
    }

    fn serve(self, control: Control) -> io::Result<()> {
        match self.role {
            Role::Api => api::serve(&self.engine, &control),
            Role::Engine(options) => engine::serve(&self.engine, &options, &control),
            Role::Worker(options) => worker::serve(&self.engine, options, &control),
        }
    }
}
