//! The arguments of `sa-profile bundle`, and the file that it writes.

use super::run_args::RunArgs;
use super::whole_file::{ReadyFile, Replaced};
use crate::bundle::{Member, archive, bundle};
use crate::screen::grouped;
use clap::Args;
use std::path::PathBuf;
use trace_merge::{Error, Progress, Runs};

/// Folder in the archive.
const FOLDER: &str = "sa-profile-bundle";
const EXAMPLES: &str = "\
Examples:
  sa-profile bundle                  the newest run, as sa-profile-bundle.tar.gz
  sa-profile bundle out -o slow.tar.gz

Exit status: 0 written, 2 nothing usable, or the file is another program's.";

/// Creates one redacted file from a run, to attach to an issue.
///
/// It contains the report, versions, settings, losses, and at most five seconds of the trace.
///
/// It leaves out prompts, paths and command lines, and it renames hosts and requests.
///
/// Names of spans are kept, so look through it before you attach it.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES, after_help = "See --help for examples.")]
pub struct BundleArgs {
    /// Run directory, fragment, pattern or Chrome trace [default: the newest run]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The file to write; only an older bundle is replaced
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "sa-profile-bundle.tar.gz"
    )]
    out: PathBuf,
    #[command(flatten)]
    runs: RunArgs,
}

impl BundleArgs {
    /// Calls `find` to choose the runs of the given paths, or of the default directory if no path is given.
    ///
    /// # Errors
    /// The errors of `find`.
    pub fn find_runs<E>(
        mut self,
        find: impl FnOnce(Vec<PathBuf>, &Runs) -> Result<(Vec<PathBuf>, Runs), E>,
    ) -> Result<BundleArgs, E> {
        self.runs.find(&mut self.paths, find)?;
        Ok(self)
    }

    /// Runs `sa-profile bundle`: writes the bundle of the chosen run to a file, and returns a message for the user: the
    /// path and size of the file, its contents, and the kinds of removed or replaced texts, one line each.
    ///
    /// # Errors
    /// Returns the errors of [`read`](crate::read()), and an error if the bundle cannot be written.
    pub fn write(&self, progress: &Progress) -> Result<String, Error> {
        Replaced::Bundle.check(&self.out, &[])?; // fails before the run is read
        let mut bundle = bundle(&self.runs.options(&self.paths), progress)?;
        let contents = contents(&bundle.members, &bundle.removed);
        bundle.members.insert(
            0,
            Member {
                name: "contents.txt",
                about: "this list".to_owned(),
                bytes: contents.clone().into_bytes(),
            },
        );
        let packed = archive(FOLDER, &bundle.members)
            .map_err(|source| Error::from_write(&self.out, source))?;
        ReadyFile::write(&self.out, Replaced::Bundle, &packed)?.persist()?;
        let bytes = grouped(packed.len() as u64);
        Ok(format!("{}: {bytes} bytes\n{contents}", self.out.display()))
    }
}

/// Lists the contents of a bundle and the texts that were removed.
fn contents(members: &[Member], removed: &[String]) -> String {
    let mut out = String::new();
    for member in members {
        let bytes = grouped(member.bytes.len() as u64);
        out += &format!(
            "  {:<15} {bytes:>12} bytes  {}\n",
            member.name, member.about
        );
    }
    out += "  contents.txt                        this list\nremoved or replaced:\n";
    for phrase in removed {
        out += &format!("  {phrase}\n");
    }
    out += "Numbers and names of spans, threads, processes and args stay: look through it before you attach it.\n";
    out
}
