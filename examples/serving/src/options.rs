//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Where the workers' kernels run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceKind {
    /// On a simulated NPU each.
    Sim,
    /// On the processor, which sleeps for each kernel.
    Off,
}

/// Serves completions with a tree of recorded processes, drives load through it, and merges their trace.
#[derive(Debug, Clone, Parser)]
#[command(version, after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Requests to send.
    #[arg(long, default_value = "24", value_name = "N")]
    pub(crate) requests: NonZeroUsize,
    /// Requests under way at a time.
    #[arg(long, default_value = "8", value_name = "N")]
    pub(crate) concurrency: NonZeroUsize,
    /// Worker processes.
    #[arg(long, default_value = "2", value_name = "N")]
    pub(crate) workers: NonZeroUsize,
    /// Most tokens that a request asks for (each asks for between half of it and all).
    #[arg(long, default_value = "24", value_name = "N")]
    pub(crate) tokens: NonZeroUsize,
    /// Requests sent per second; 0 sends as soon as there is room.
    #[arg(long, default_value = "0", value_name = "R", value_parser = parse_rate)]
    pub(crate) rate: f64,
    /// Blocks in the cache for keys and values, 4 tokens each; when they run out, requests are preempted.
    #[arg(long, default_value = "56", value_name = "N")]
    pub(crate) kv_blocks: NonZeroUsize,
    /// Seed of the prompts and the tokens: the same seed gives the same texts.
    #[arg(long, default_value = "1", value_name = "N")]
    pub(crate) seed: u64,
    /// Where the workers' kernels run: on a simulated NPU each (the trace says SIMULATED), or on the processor alone.
    #[arg(long, value_enum, default_value = "sim", value_name = "KIND")]
    pub(crate) device: DeviceKind,
    /// Let the workers record nothing themselves: the interposer alone (LD_PRELOAD) shows their launches.
    #[arg(long)]
    pub(crate) preload: bool,
    /// Kill one worker in the middle of a step, once a third of the requests is answered.
    #[arg(long)]
    pub(crate) kill_worker: bool,
    /// Where the merged trace goes; `.gz` compresses it [default: trace.json in the run directory].
    #[arg(short, long, value_name = "FILE", conflicts_with = "no_merge")]
    pub(crate) output: Option<PathBuf>,
    /// Leave the fragments as they are.
    #[arg(long)]
    pub(crate) no_merge: bool,
}

const EXAMPLES: &str = "\
Examples:
  serving-demo                          24 requests on 2 workers; the trace is in profile_out/trace.json
  serving-demo --kill-worker            the same, and a worker dies in the middle of a step
  serving-demo --preload                the workers are as if nobody could change them: LD_PRELOAD alone records their kernel launches
  serving-demo --requests 200 --concurrency 16 --workers 4 --rate 20
  SA_PROFILE_DIR=/tmp/run serving-demo -o /tmp/run.json.gz

The fragments go to SA_PROFILE_DIR (default ./profile_out); SA_PROFILE_LEVEL chooses what is recorded.
Exit code: 0 all went as asked, 1 not, 2 bad usage, 130 or 143 ended by Ctrl-C or a termination signal.";

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if rate.is_finite() && rate >= 0.0 {
        Ok(rate)
    } else {
        Err("must be 0 or more".to_owned())
    }
}
