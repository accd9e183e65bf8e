//! What comes before the mode on the command line: how the host prepares itself before anything is recorded.

use crate::sandbox;
use std::io::BufRead;

/// The preparations that were asked for.
#[derive(Default)]
pub(crate) struct Options {
    /// Never call `Recorder::init`.
    pub(crate) lazy: bool,
    gate: bool,
    umask: Option<libc::mode_t>,
    exits_on_term: bool,
    no_sequences: bool,
    limits: Vec<(String, libc::rlim_t)>,
}

impl Options {
    /// Splits the command line into options and mode.
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> (Options, Vec<String>) {
        let mut options = Options::default();
        let mut arguments = arguments.peekable();
        while let Some(option) = arguments.next_if(|word| word.starts_with("--")) {
            let mut value = || arguments.next().expect("the option's value");
            match option.as_str() {
                "--gate" => options.gate = true,
                "--lazy" => options.lazy = true,
                "--exit-on-term" => options.exits_on_term = true,
                "--no-sequences" => options.no_sequences = true,
                "--umask" => options.umask = libc::mode_t::from_str_radix(&value(), 8).ok(),
                "--limit" => options.limits.push(limit(&value())),
                _ => panic!("host: unknown option {option}"),
            }
        }
        (options, arguments.collect())
    }

    /// Waits at the gate, then sets umask, the action of SIGTERM, a filter against `rseq` and limits.
    pub(crate) fn apply(&self) {
        if self.gate {
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line);
            assert!(read.is_ok(), "stdin is readable");
        }
        if let Some(mask) = self.umask {
            // SAFETY: umask only changes this process's mask.
            unsafe { libc::umask(mask) };
        }
        if self.exits_on_term {
            // SAFETY: the handler is a function of the right type.
            unsafe { libc::signal(libc::SIGTERM, exit as *const () as libc::sighandler_t) };
        }
        if self.no_sequences {
            let number = u32::try_from(libc::SYS_rseq).expect("a small number");
            sandbox::refuse(number, libc::ENOSYS);
        }
        for (what, value) in &self.limits {
            set_limit(what, *value);
        }
    }
}

extern "C" fn exit(_signal: libc::c_int) {
    // SAFETY: not allowed in a handler, and done all the same.
    unsafe { libc::exit(8) };
}

fn limit(text: &str) -> (String, libc::rlim_t) {
    let (what, value) = text.split_once('=').expect("WHAT=VALUE");
    (what.to_owned(), value.parse().expect("a limit in decimal"))
}

/// Limits what the process may have.
pub(crate) fn set_limit(what: &str, value: libc::rlim_t) {
    let resource = match what {
        "fsize" => libc::RLIMIT_FSIZE,
        "nofile" => libc::RLIMIT_NOFILE,
        "as" => libc::RLIMIT_AS,
        _ => panic!("host: unknown limit {what}"),
    };
    let limit = libc::rlimit {
        rlim_cur: value,
        rlim_max: value,
    };
    // SAFETY: `limit` is a valid rlimit for the length of the call.
    let status = unsafe { libc::setrlimit(resource, &raw const limit) };
    assert_eq!(status, 0, "limits can be lowered");
}
