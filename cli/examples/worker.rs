//! A recorded process for the tests of `sa-profile`. It executes its arguments one after the other.
//!
//! `worker NAME [spans=N | threads=N | requests=N | silent | say=TEXT | sleep=MS | steps | signals=FILE | until=FILE | daemon=FILE | open | kill | term | leave | exit=CODE]...`
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program whose output is compared"
)]

use nix::sys::signal::{SigSet, Signal, raise};
use sa_recorder::{Level, Recorder, begin, counter, instant, now_ns, span};
use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio, exit};
use std::time::{Duration, Instant};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let name = words.next().ok_or("usage: worker NAME [WORD]...")?;
    let recorder = Recorder::init();
    recorder.set_process_name(&name);
    let mut served = 0;
    for word in words {
        let (what, value) = word.split_once('=').unwrap_or((&word, ""));
        match what {
            "spans" => (0..value.parse()?).for_each(|index: u64| {
                drop(span!("worker", "work", index = index));
            }),
            // A process with more than one thread also has the recorder's thread, which flushes.
            "threads" => (1..value.parse()?).for_each(|_: u32| {
                std::thread::spawn(|| std::thread::sleep(Duration::from_secs(60)));
            }),
            "requests" => (0..value.parse()?).for_each(|_: u32| {
                serve(&name, served);
                served += 1;
            }),
            "say" => println!("{value}"),
            "sleep" => std::thread::sleep(Duration::from_millis(value.parse()?)),
            "steps" => record_steps(),
            "signals" => note_signals(value)?,
            "until" => wait_for(value),
            "daemon" => daemonise(&name, value)?,
            "open" => begin(Level::E2e, "worker", "open"),
            "kill" => raise(Signal::SIGKILL)?,
            "term" => raise(Signal::SIGTERM)?,
            // As with `_exit`, no exit handler runs.
            "leave" => return Err(Command::new("true").exec().into()),
            "exit" => return Ok(ExitCode::from(value.parse::<u8>()?)),
            _ => return Err(format!("unknown word {word}").into()),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Answers a request, as an engine in one process would.
fn serve(name: &str, number: u64) {
    let id = format!("{name}-{number}");
    let mut http = span!("http", "http.completions", request_id = id.as_str());
    instant!("serving", "request.queued", request_id = id.as_str());
    instant!("serving", "request.scheduled", request_id = id.as_str());
    counter!("requests", running = 1, waiting = number % 3);
    counter!("kv_cache", used_percent = 12.5);
    for token in 0..1 + number % 4 {
        let _step = span!("worker", "execute_step", request_ids = id.as_str());
        instant!("serving", "request.token", request_id = id.as_str());
        counter!(
            "tokens",
            prefill = if token == 0 { 7 } else { 0 },
            decode = 1
        );
    }
    http.arg("prompt_tokens", 7);
    http.arg("output_tokens", 1 + number % 4);
    http.arg("reason", if number % 10 == 9 { "abort" } else { "stop" });
}

/// Prints that it is ready, and records a step every ms until its standard input ends.
fn record_steps() {
    Recorder::get().flush();
    let waits = std::thread::spawn(|| io::copy(&mut io::stdin(), &mut io::sink()));
    eprintln!("ready");
    while !waits.is_finished() {
        let _step = span!("engine", "step", at = now_ns());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for a file, at most for a minute.
fn wait_for(file: &str) {
    let start = Instant::now();
    while !Path::new(file).exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts a process in its own session that records, waits for a file, records again, and ends.
fn daemonise(name: &str, file: &str) -> Result<(), Box<dyn Error>> {
    Command::new("setsid")
        .arg(std::env::current_exe()?)
        .args([&format!("{name}-daemon"), "spans=5"])
        .args([&format!("until={file}"), "spans=5"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(())
}

/// Appends the name of each signal that arrives to a file, after the line `ready`; SIGTERM ends the process with code 3.
fn note_signals(file: &str) -> Result<(), Box<dyn Error>> {
    use Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
    let set = SigSet::from_iter([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH]);
    set.thread_block()?;
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)?;
    writeln!(file, "ready")?;
    loop {
        let signal = set.wait()?;
        writeln!(file, "{signal}")?;
        if signal == SIGTERM {
            exit(3);
        }
    }
}
