//! The command that shows the report, as the shell that started the demo can run it.

use std::env;
use std::path::Path;

/// The manifest of the workspace that this program was built from.
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");

/// Returns the command that shows the report of a run. `sa-profile` is taken if it is installed, or else what cargo builds of this workspace.
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

/// Returns the command that builds and runs `trace-report`, whose library this program has in it. It prints what `sa-profile report` does.
fn cargo_command(manifest: &Path, here: &Path) -> String {
    let profile = match cfg!(debug_assertions) {
        true => "",
        false => " --profile demo",
    };
    let workspace = manifest.parent().map(Path::to_owned).unwrap_or_default();
    let place = match here.starts_with(workspace) {
        true => String::new(),
        false => format!(" --manifest-path {}", quoted(manifest)),
    };
    format!("cargo run --quiet{profile}{place} -p trace-report")
}

/// Returns a path as one word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
