//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// The device on which the workers' kernels run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceKind {
    /// A simulated NPU for each worker.
    Sim,
    /// The CPU, which sleeps for each kernel.
    Off,
}

/// Serves completions with several recorded processes, sends them a load, and merges their trace.
#[derive(Debug, Clone, Parser)]
#[command(version, after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Number of requests.
    #[arg(long, default_value = "24", value_name = "N")]
    pub(crate) requests: NonZeroUsize,
    /// Maximum number of requests at a time.
    #[arg(long, default_value = "8", value_name = "N")]
    pub(crate) concurrency: NonZeroUsize,
    /// Number of worker processes.
    #[arg(long, default_value = "2", value_name = "N")]
    pub(crate) workers: NonZeroUsize,
    /// Maximum number of output tokens of a request (each request asks for between half of it and all).
    #[arg(long, default_value = "24", value_name = "N")]
    pub(crate) tokens: NonZeroUsize,
    /// Requests per second; 0 sends each as soon as the concurrency allows.
    #[arg(long, default_value = "0", value_name = "R", value_parser = parse_rate)]
    pub(crate) rate: f64,
    /// Blocks in the KV cache, 4 tokens each; when they run out, requests are preempted.
    #[arg(long, default_value = "56", value_name = "N")]
    pub(crate) kv_blocks: NonZeroUsize,
    /// Seed of the prompts and tokens; the same seed gives the same texts.
    #[arg(long, default_value = "1", value_name = "N")]
    pub(crate) seed: u64,
    /// Device for the workers' kernels: a simulated NPU for each worker (marked SIMULATED in the trace), or only the CPU.
    #[arg(long, value_enum, default_value = "sim", value_name = "KIND")]
    pub(crate) device: DeviceKind,
    /// Run the workers without the recorder; only the preload library (LD_PRELOAD) records their launches.
    #[arg(long)]
    pub(crate) preload: bool,
    /// Kill one worker in the middle of a step, after a third of the requests have finished.
    #[arg(long)]
    pub(crate) kill_worker: bool,
    /// File for the merged trace; `.gz` compresses it [default: trace.json in the run directory].
    #[arg(short, long, value_name = "FILE", conflicts_with = "no_merge")]
    pub(crate) output: Option<PathBuf>,
    /// Do not merge the fragments.
    #[arg(long)]
    pub(crate) no_merge: bool,
}

const EXAMPLES: &str = "\
Examples:
  serving-demo                          24 requests on 2 workers; the trace is in profile_out/trace.json
  serving-demo --kill-worker            the same, and a worker dies in the middle of a step
  serving-demo --preload                like workers that cannot be modified: only LD_PRELOAD records their kernel launches
  serving-demo --requests 200 --concurrency 16 --workers 4 --rate 20
  SA_PROFILE_DIR=/tmp/run serving-demo -o /tmp/run.json.gz

The fragments go to SA_PROFILE_DIR (default ./profile_out); SA_PROFILE_LEVEL selects what is recorded.
Exit status: 0 success, 1 failure, 2 bad usage, 130 or 143 ended by Ctrl-C or a termination signal.";

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if rate.is_finite() && rate >= 0.0 {
        Ok(rate)
    } else {
        Err("must be 0 or more".to_owned())
    }
}
