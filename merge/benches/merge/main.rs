//! Measures the speed of a merge, compared with `cat` of the same files:
//! `cargo bench -p trace-merge --bench merge [-- [--quick] [own] [foreign] [kineto] [sort]]`.
//!
//! Generates 1 GB of each input (8 files each), and keeps them in `target/tmp`: our own fragments, fragments of pypto-serving's recorder, and traces of
//! PyTorch's profiler. Then it alternates between ten merges and ten runs of `cat` into a file on the same file system, and prints the best of each as
//! `RESULT merge_<input> <MB_per_s> <ratio_to_cat> <peak_anonymous_MB>`. `sort` does the same with `--sort`, and prints
//! `RESULT sort <MB_per_s> <ratio_to_cat> <CPU_s_per_GB> <peak_anonymous_MB>`. Without a name, it measures all of these.
//!
//! `-- memory [MB]` prints the memory of a merge of that size (8,000 MB by default): `RESULT memory_<input>_<MB> <peak_anonymous_MiB>`.
//! `-- window [MB [processes]]` merges ten seconds of a run of 1,000 s (2,000 MB in 8 processes by default):
//! `RESULT window_<part> <best seconds> <seconds from the disk> <MB not read>`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the figures are this program's output"
)]

mod foreign;
mod input;
mod lines;
mod measure;
mod own;
mod window;

use std::process::ExitCode;

use ::measure::process::load_average;

use crate::input::Form;
use crate::measure::Effort;

fn main() -> ExitCode {
    let args = ::measure::words();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    println!("load average before: {}", load_average());
    let measured = run(&args);
    println!("load average after:  {}", load_average());
    ::measure::exit_code(measured)
}

fn run(args: &[&str]) -> Result<(), String> {
    let number = |at: usize, default: u64| match args.get(at).map(|arg| arg.parse()) {
        None => Ok(default),
        Some(Ok(number)) => Ok(number),
        Some(Err(_)) => Err(format!("expected a number, found {}", args[at])),
    };
    match args.first() {
        Some(&"memory") => return measure::memory(number(1, 8_000)?),
        Some(&"window") => {
            let processes = u32::try_from(number(2, 8)?).map_err(|error| error.to_string())?;
            return window::run(number(1, 2_000)?, processes);
        }
        _ => {}
    }
    let (megabytes, rounds) = match args.contains(&"--quick") {
        true => (100, 3),
        false => (1_000, 10),
    };
    let effort = Effort { megabytes, rounds };
    let named: Vec<&str> = args
        .iter()
        .copied()
        .filter(|arg| *arg != "--quick")
        .collect();
    let cases = if named.is_empty() {
        vec!["own", "foreign", "kineto", "sort"]
    } else {
        named
    };
    for case in cases {
        let form = Form::ALL.into_iter().find(|form| form.name() == case);
        match (form, case) {
            (Some(form), _) => measure::merge(form, &[], effort)?,
            (None, "sort") => measure::merge(Form::Own, &["--sort"], effort)?,
            _ => {
                return Err(format!(
                    "expected --quick, own, foreign, kineto, sort, memory or window, found {case}"
                ));
            }
        }
    }
    Ok(())
}
