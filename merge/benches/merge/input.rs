//! The generated inputs: written once, kept for the next run.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::lines::Counts;
use crate::{foreign, own, served};

/// Changes whenever the generators do, so that old files are not taken for new ones.
const GENERATION: u32 = 3;
const FILES: u32 = 8;

/// Which recorder's form an input has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Ours, with header and blocks.
    Own,
    /// pypto-serving's.
    Foreign,
    /// The same, of requests that are served in batches.
    Served,
}

impl Form {
    /// The name of the input in results and on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Own => "own",
            Form::Foreign => "foreign",
            Form::Served => "served",
        }
    }
}

/// A generated input.
pub(crate) struct Input {
    pub(crate) form: Form,
    /// The run directory.
    pub(crate) directory: PathBuf,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) bytes: u64,
    /// Events by phase, as JSON; metadata not counted.
    pub(crate) counts: serde_json::Value,
}

/// Opens the input of `megabytes` MB, generating it if it is not there.
pub(crate) fn open(form: Form, megabytes: u64) -> io::Result<Input> {
    let name = format!("merge-bench-{GENERATION}/{}-{megabytes}", form.name());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let counts_path = directory.join("counts.json");
    if !counts_path.exists() {
        generate(form, megabytes, &directory)?;
    }
    let counts = serde_json::from_slice(&std::fs::read(&counts_path)?)?;
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory.join("fragments"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    let mut bytes = 0;
    for file in &files {
        bytes += file.metadata()?.len();
    }
    Ok(Input {
        form,
        directory,
        files,
        bytes,
        counts,
    })
}

fn generate(form: Form, megabytes: u64, directory: &Path) -> io::Result<()> {
    eprintln!("generating {megabytes} MB in {}", directory.display());
    let fragments = directory.join("fragments");
    std::fs::create_dir_all(&fragments)?;
    let file_bytes = megabytes * 1_000_000 / u64::from(FILES);
    let mut counts = Counts::default();
    for index in 0..FILES {
        counts.join(match form {
            Form::Own => own::write(&fragments, index, file_bytes)?,
            Form::Foreign => foreign::write(&fragments, index, file_bytes)?,
            Form::Served => served::write(&fragments, index, file_bytes)?,
        });
    }
    // What the kernel still had to write back would weigh on the first rounds.
    for file in std::fs::read_dir(&fragments)? {
        File::open(file?.path())?.sync_all()?;
    }
    // Last, so that an interrupted generation starts anew.
    std::fs::write(
        directory.join("counts.json"),
        serde_json::to_vec(&counts.0)?,
    )
}
