//! The measurement: merges and `cat` in turn, then memory, CPU time and a check that the merge lost nothing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::input::{self, Form, Input};
use crate::{peers, process, sort, validators};

/// How much to measure.
struct Effort {
    megabytes: u64,
    rounds: u32,
    /// Whether merges without links of requests are measured too.
    links: bool,
}

/// The figures of one input.
struct Figures {
    form: Form,
    bytes: u64,
    merge: Vec<Duration>,
    cat: Vec<Duration>,
    peak_anonymous_bytes: u64,
    cpu_s: f64,
    unlinked: Option<Unlinked>,
}

/// The figures of merges that link no requests.
struct Unlinked {
    merge: Vec<Duration>,
    cpu_s: f64,
}

/// What the command line may say.
const WORDS: [&str; 8] = [
    "--quick",
    "--links",
    "own",
    "foreign",
    "served",
    "sort",
    "peers",
    "validators",
];

/// Measures the inputs named on the command line, or both.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    if let Some(word) = words.iter().find(|word| !WORDS.contains(word)) {
        return Err(format!(
            "unknown word {word}; there are: {}",
            WORDS.join(" ")
        ));
    }
    if words.contains(&"peers") {
        return peers::run();
    }
    if words.contains(&"validators") {
        return validators::run();
    }
    let (megabytes, rounds) = match words.contains(&"--quick") {
        true => (100, 3),
        false => (1_000, 10),
    };
    let effort = Effort {
        megabytes,
        rounds,
        links: words.contains(&"--links"),
    };
    let all = words.iter().all(|word| word.starts_with("--"));
    let forms = [Form::Own, Form::Foreign, Form::Served]
        .into_iter()
        .filter(|form| words.contains(&form.name()) || all && *form != Form::Served);
    println!("load average before: {}", load_average());
    let mut figures = Vec::new();
    for form in forms {
        let input =
            input::open(form, effort.megabytes).map_err(|error| format!("generating: {error}"))?;
        figures.push(measure(&input, &effort)?);
    }
    if !figures.is_empty() {
        print(&figures);
    }
    if all || words.contains(&"sort") {
        sort::measure(effort.megabytes, effort.rounds)?;
    }
    println!("load average after:  {}", load_average());
    Ok(())
}

fn measure(input: &Input, effort: &Effort) -> Result<Figures, String> {
    let rounds = effort.rounds;
    let merged = Scratch(input.directory.with_extension("merged.json"));
    let joined = Scratch(input.directory.with_extension("joined"));
    check(input, merge_command(input, &merged.0, "json"))?;
    let (mut merge, mut cat, mut unlinked) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        eprintln!("{} {}/{rounds}", input.form.name(), round + 1);
        remove(&joined.0)?;
        cat.push(process::timed(cat_command(input, &joined.0)?)?);
        remove(&joined.0)?;
        remove(&merged.0)?;
        merge.push(process::timed(merge_command(input, &merged.0, "none"))?);
        remove(&merged.0)?;
        if effort.links {
            unlinked.push(process::timed(unlinked_command(input, &merged.0))?);
            remove(&merged.0)?;
        }
    }
    let (mut peak_anonymous_bytes, mut cpu_s) = (0, f64::INFINITY);
    for _ in 0..3 {
        let usage = process::watched(merge_command(input, &merged.0, "none"))?;
        peak_anonymous_bytes = peak_anonymous_bytes.max(usage.peak_anonymous_bytes);
        cpu_s = cpu_s.min(cpu_to_null(merge_command(input, Path::new("-"), "none"))?);
    }
    let unlinked = match effort.links {
        true => Some(Unlinked {
            merge: unlinked,
            cpu_s: (0..3)
                .map(|_| cpu_to_null(unlinked_command(input, Path::new("-"))))
                .try_fold(f64::INFINITY, |least, cpu_s| {
                    Ok::<_, String>(least.min(cpu_s?))
                })?,
        }),
        false => None,
    };
    Ok(Figures {
        form: input.form,
        bytes: input.bytes,
        merge,
        cat,
        peak_anonymous_bytes,
        cpu_s,
        unlinked,
    })
}

fn cpu_to_null(mut command: Command) -> Result<f64, String> {
    command.stdout(Stdio::null());
    Ok(process::watched(command)?.cpu_s)
}

/// Merges once and compares the report with what was generated: a fast merge that loses events is none.
pub(crate) fn check(input: &Input, mut command: Command) -> Result<(), String> {
    let done = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !done.status.success() {
        return Err(format!(
            "{command:?}: {}: {}",
            done.status,
            String::from_utf8_lossy(&done.stderr)
        ));
    }
    let report: serde_json::Value =
        serde_json::from_slice(&done.stdout).map_err(|error| format!("report: {error}"))?;
    if report["damage_total"] != 0 {
        return Err(format!(
            "{}: damage in a clean input: {}",
            input.form.name(),
            report["damage_by_kind"]
        ));
    }
    let counts = input.counts.as_object().ok_or("counts.json: no object")?;
    for (phase, count) in counts {
        if report["events_by_phase"][phase] != *count {
            return Err(format!(
                "{}: phase {phase}: {count} generated, {} merged",
                input.form.name(),
                report["events_by_phase"][phase]
            ));
        }
    }
    Ok(())
}

pub(crate) fn merge_command(input: &Input, output: &Path, report: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trace-merge"));
    command
        .args(["--report", report, "--output"])
        .arg(output)
        .arg(&input.directory)
        .stdin(Stdio::null());
    command
}

fn unlinked_command(input: &Input, output: &Path) -> Command {
    let mut command = merge_command(input, output, "none");
    command.arg("--no-link-requests");
    command
}

pub(crate) fn cat_command(input: &Input, output: &Path) -> Result<Command, String> {
    let file = File::create(output).map_err(|error| format!("{}: {error}", output.display()))?;
    let mut command = Command::new("cat");
    command.args(&input.files).stdin(Stdio::null()).stdout(file);
    Ok(command)
}

pub(crate) fn remove(path: &Path) -> Result<(), String> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// A file that is removed when dropped.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            eprintln!("merge: {error}");
        }
    }
}

fn print(figures: &[Figures]) {
    println!(
        "\nbest and median wall time in s; CPU-s per GB of input, to /dev/null; anonymous memory in MB (10^6 bytes), seen every 2 ms"
    );
    println!(
        "{:<10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>10}{:>10}",
        "input", "MB", "merge", "median", "cat", "median", "MB/s", "CPU-s/GB", "anon MB"
    );
    for one in figures {
        let gigabytes = one.bytes as f64 / 1e9;
        println!(
            "{:<10}{:>9.0}{:>9.3}{:>9.3}{:>9.3}{:>9.3}{:>8.0}{:>10.2}{:>10.1}",
            one.form.name(),
            gigabytes * 1e3,
            best(&one.merge),
            median(&one.merge),
            best(&one.cat),
            median(&one.cat),
            one.megabytes_per_s(),
            one.cpu_s / gigabytes,
            one.peak_anonymous_megabytes(),
        );
    }
    println!();
    for one in figures {
        let ratio = best(&one.merge) / best(&one.cat);
        println!(
            "RESULT merge_{} {:.0} {ratio:.3} {:.1}",
            one.form.name(),
            one.megabytes_per_s(),
            one.peak_anonymous_megabytes()
        );
        if let Some(unlinked) = &one.unlinked {
            println!(
                "RESULT links_{} {:.3} {:.3}",
                one.form.name(),
                best(&one.merge) / best(&unlinked.merge),
                one.cpu_s / unlinked.cpu_s
            );
        }
    }
}

impl Figures {
    fn megabytes_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / best(&self.merge)
    }

    fn peak_anonymous_megabytes(&self) -> f64 {
        self.peak_anonymous_bytes as f64 / 1e6
    }
}

fn sorted_s(times: &[Duration]) -> Vec<f64> {
    let mut seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

pub(crate) fn best(times: &[Duration]) -> f64 {
    sorted_s(times).first().copied().unwrap_or(f64::NAN)
}

pub(crate) fn median(times: &[Duration]) -> f64 {
    sorted_s(times)
        .get(times.len() / 2)
        .copied()
        .unwrap_or(f64::NAN)
}

pub(crate) fn load_average() -> String {
    std::fs::read_to_string("/proc/loadavg")
        .map_or_else(|error| error.to_string(), |text| text.trim_end().to_owned())
}
