//! The command that shows the report, in a form that the user's shell can run.

use std::env;
use std::path::Path;

/// The manifest of the workspace from which this program was built.
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");

/// Returns the command that shows the report of a run: `sa-profile` if it is installed, otherwise a cargo command for this workspace.
pub(super) fn report_command(run: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    let manifest = Path::new(MANIFEST).canonicalize();
    let is_installed = env::var_os("PATH").is_some_and(|path| {
        env::split_paths(&path).any(|folder| folder.join("sa-profile").is_file())
    });
    let run = quoted(run.strip_prefix(&here).unwrap_or(run));
    match manifest {
        Ok(manifest) if !is_installed => {
            format!("{} -- {run}", cargo_command(&manifest, &here))
        }
        _ => format!("sa-profile report {run}"),
    }
}

/// Returns the command that builds and runs `trace-report`, which is quick because this program contains its library. It prints the same as `sa-profile report`.
fn cargo_command(manifest: &Path, here: &Path) -> String {
    let profile = match cfg!(debug_assertions) {
        true => "",
        false => " --profile demo",
    };
    let workspace = manifest.parent().map(Path::to_owned).unwrap_or_default();
    let manifest_option = match here.starts_with(workspace) {
        true => String::new(),
        false => format!(" --manifest-path {}", quoted(manifest)),
    };
    format!("cargo run --quiet{profile}{manifest_option} -p trace-report")
}

/// Returns a path as one word for a shell, with quotes if necessary.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
