//! Generated inputs, which are written once and kept for later runs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lines::Counts;
use crate::{foreign, own};

/// Version of the generators. It has to be incremented for each change of their output, so that old files are not used.
const GENERATION: u32 = 5;
const FILES: u32 = 8;

/// Program that would write such an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Our recorder, with header and blocks.
    Own,
    /// pypto-serving.
    Foreign,
    /// PyTorch's profiler.
    Kineto,
}

impl Form {
    pub(crate) const ALL: [Form; 3] = [Form::Own, Form::Foreign, Form::Kineto];

    /// Returns the name of the input in results and on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Own => "own",
            Form::Foreign => "foreign",
            Form::Kineto => "kineto",
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
    /// Number of events by phase, without metadata.
    pub(crate) counts: Counts,
}

/// Opens the input of `megabytes` MB. Generates it if it does not exist.
pub(crate) fn open(form: Form, megabytes: u64) -> Result<Input, String> {
    let name = format!("{}-{megabytes}", form.name());
    let bytes = megabytes * 1_000_000 / u64::from(FILES);
    let (directory, counts) = generated(&name, |fragments| {
        let mut counts = Counts::new();
        for index in 0..FILES {
            let more = match form {
                Form::Own => own::write(fragments, index, bytes, &mut [])?,
                Form::Foreign => foreign::write(fragments, index, bytes)?,
                Form::Kineto => foreign::write_kineto(fragments, index, bytes)?,
            };
            more.into_iter()
                .for_each(|(phase, count)| *counts.entry(phase).or_default() += count);
        }
        Ok(counts)
    })?;
    let files = files_of(&directory).map_err(|error| error.to_string())?;
    let lengths = files
        .iter()
        .map(|file| file.metadata().map_or(0, |file| file.len()));
    Ok(Input {
        form,
        bytes: lengths.sum(),
        directory,
        files,
        counts,
    })
}

/// Returns the fragments of a run in the order of their names.
pub(crate) fn files_of(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory.join("fragments"))?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    Ok(files)
}

/// Returns a run directory and the counts of its generator. Generates the run if it does not exist.
pub(crate) fn generated<C: Serialize + DeserializeOwned>(
    name: &str,
    generate: impl FnOnce(&Path) -> io::Result<C>,
) -> Result<(PathBuf, C), String> {
    let name = format!("merge-bench-{GENERATION}/{name}");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let counts_path = directory.join("counts.json");
    let run = || -> io::Result<C> {
        if !counts_path.exists() {
            eprintln!("generating {}", directory.display());
            let fragments = directory.join("fragments");
            std::fs::create_dir_all(&fragments)?;
            let counts = generate(&fragments)?;
            // Otherwise, the kernel would still be writing the files to disk during the first rounds.
            for file in files_of(&directory)? {
                File::open(file)?.sync_all()?;
            }
            // This is the last step, so that an interrupted generation starts again.
            std::fs::write(&counts_path, serde_json::to_vec(&counts)?)?;
        }
        Ok(serde_json::from_slice(&std::fs::read(&counts_path)?)?)
    };
    let counts = run().map_err(|error| format!("generating {}: {error}", directory.display()))?;
    Ok((directory, counts))
}
