//! What else joins fragments into one trace, beside the merge in the same run. A peer that is not there is skipped by name.
//!
//! None of them does what a merge must: ids stay as they are, so that processes of one pid become one; spans that were open are lost; all events
//! are in memory at once.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::input::{self, Form, Input};
use crate::measure::{Scratch, best, merge_command, remove};
use crate::process;

const MEGABYTES: u64 = 100;
const ROUNDS: u32 = 3;
/// The packages of the peers in Python.
const PACKAGES: [&str; 2] = ["orjson==3.13.0", "viztracer==1.1.1"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Merge,
    Json,
    Orjson,
    Viztracer,
    Jq,
}

const PEERS: [Peer; 5] = [
    Peer::Merge,
    Peer::Json,
    Peer::Orjson,
    Peer::Viztracer,
    Peer::Jq,
];

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Peer::Merge => "trace_merge",
            Peer::Json => "python_json",
            Peer::Orjson => "python_orjson",
            Peer::Viztracer => "viztracer_combine",
            Peer::Jq => "jq",
        }
    }
}

/// Where the peers in Python are.
struct Environment {
    python: PathBuf,
    viztracer: PathBuf,
}

/// Measures both forms of input.
pub(crate) fn run() -> Result<(), String> {
    let environment = environment();
    let mut results = Vec::new();
    for form in [Form::Own, Form::Foreign] {
        let input = input::open(form, MEGABYTES).map_err(|error| format!("generating: {error}"))?;
        results.extend(measure(&input, environment.as_ref())?);
    }
    println!("\nbest of {ROUNDS}, MB/s of input, and times the time of trace-merge");
    results.iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn measure(input: &Input, environment: Option<&Environment>) -> Result<Vec<String>, String> {
    let output = Scratch(input.directory.with_extension("peer.json"));
    let documents = documents(input, environment)?;
    let peers: Vec<Peer> = PEERS
        .into_iter()
        .filter(|peer| is_there(*peer, environment))
        .collect();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); peers.len()];
    for round in 0..ROUNDS {
        for (peer, times) in peers.iter().zip(&mut times) {
            eprintln!(
                "{} {} {}/{ROUNDS}",
                input.form.name(),
                peer.name(),
                round + 1
            );
            remove(&output.0)?;
            let command = command(*peer, input, &documents, &output.0, environment)?;
            times.push(process::timed(command)?);
            let written = output.0.metadata().map_or(0, |file| file.len());
            if written < input.bytes / 2 {
                return Err(format!("{}: wrote {written} bytes only", peer.name()));
            }
        }
    }
    let ours = best(&times[0]);
    let line = |(peer, times): (&Peer, &Vec<Duration>)| {
        let (best, megabytes) = (best(times), input.bytes as f64 / 1e6);
        format!(
            "RESULT merge_{}_by_{} {:.0} {:.1}",
            input.form.name(),
            peer.name(),
            megabytes / best,
            best / ours
        )
    };
    Ok(peers.iter().zip(&times).map(line).collect())
}

fn command(
    peer: Peer,
    input: &Input,
    documents: &[PathBuf],
    output: &Path,
    environment: Option<&Environment>,
) -> Result<Command, String> {
    let of_python = |way: &str| python(environment, &[way], output, &input.files);
    match peer {
        Peer::Merge => Ok(merge_command(input, output, "none")),
        Peer::Json => of_python("json"),
        Peer::Orjson => of_python("orjson"),
        Peer::Viztracer => {
            let environment = environment.ok_or("viztracer is not there")?;
            let mut command = Command::new(&environment.viztracer);
            command.args(["--quiet", "--output_file"]).arg(output);
            command.arg("--combine").args(documents);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            Ok(command)
        }
        Peer::Jq => {
            let file = File::create(output).map_err(|error| error.to_string())?;
            let mut command = Command::new("jq");
            command.args(["-c", "-n", "{traceEvents: [inputs]}"]);
            command.args(&input.files).stdout(file);
            Ok(command)
        }
    }
}

fn python(
    environment: Option<&Environment>,
    way: &[&str],
    target: &Path,
    files: &[PathBuf],
) -> Result<Command, String> {
    let environment = environment.ok_or("no Python environment")?;
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/merge/peers.py");
    let mut command = Command::new(&environment.python);
    command.arg(program).args(way).arg(target).args(files);
    Ok(command)
}

/// One trace of each fragment, made once.
fn documents(input: &Input, environment: Option<&Environment>) -> Result<Vec<PathBuf>, String> {
    let directory = input.directory.join("documents");
    if environment.is_none() {
        return Ok(Vec::new());
    }
    let name = |file: &PathBuf| file.file_stem().map(|stem| directory.join(stem));
    let documents: Vec<PathBuf> = input
        .files
        .iter()
        .filter_map(name)
        .map(|path| path.with_added_extension("json"))
        .collect();
    if !documents.iter().all(|document| document.exists()) {
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        process::timed(python(
            environment,
            &["documents"],
            &directory,
            &input.files,
        )?)?;
    }
    Ok(documents)
}

fn is_there(peer: Peer, environment: Option<&Environment>) -> bool {
    let found = match peer {
        Peer::Merge => true,
        Peer::Json | Peer::Orjson | Peer::Viztracer => environment.is_some(),
        Peer::Jq => runs(Command::new("jq").arg("--version")),
    };
    if !found {
        eprintln!("SKIP: {}: not there", peer.name());
    }
    found
}

/// Makes the environment once; `None`, and a word why, if that fails.
fn environment() -> Option<Environment> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("merge-bench-peers");
    let (python, done) = (folder.join("bin/python"), folder.join("installed"));
    let versions = PACKAGES.join(" ");
    if std::fs::read_to_string(&done).ok().as_ref() != Some(&versions) {
        let made = runs(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&folder),
        ) && runs(
            Command::new(&python)
                .args([
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                ])
                .args(PACKAGES),
        ) && std::fs::write(&done, versions).is_ok();
        if !made {
            eprintln!("merge: no environment for {PACKAGES:?} could be made");
            return None;
        }
    }
    let viztracer = folder.join("bin/viztracer");
    Some(Environment { python, viztracer })
}

/// Whether a command can be run and ends well.
fn runs(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
