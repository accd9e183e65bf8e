//! Finds the folder that `--python` adds to `PYTHONPATH`. Each Python process imports a module from it at its start.

use super::package;
use std::fs;
use std::path::{Path, PathBuf};

/// Path in the package of the module that Python imports at its start.
const MODULE: &str = "startup/sitecustomize.py";
/// Path in the package of the extension that the module loads.
const EXTENSION: &str = "_sa_profile.abi3.so";

/// Returns the folder for `PYTHONPATH` of the package at `path`, the folder `sa_profile`; without a path, of the package with which this program was
/// installed. `option` is the option that needs it, for errors.
///
/// # Errors
/// Returns a description of the problem. Otherwise each Python process would report it and continue without recording.
pub(crate) fn find(option: &str, path: Option<&Path>) -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("{option}: {error}"))?;
    let module = match path {
        Some(path) => Some(path.join(MODULE)),
        None => package::file(&program, MODULE.as_ref()),
    };
    let module = module.ok_or_else(|| {
        format!(
            "{option}: {} is not part of an installed Python package: install the package and use its sa-profile, or name the package folder: --python=…/site-packages/sa_profile",
            program.display()
        )
    })?;
    checked(&module)
}

fn checked(module: &Path) -> Result<PathBuf, String> {
    let wrong = |path: &Path, what: &str| format!("--python: {}: {what}", path.display());
    let module = fs::canonicalize(module).map_err(|error| wrong(module, &error.to_string()))?;
    let folder = module.parent().unwrap_or(&module);
    let extension = folder.with_file_name(EXTENSION);
    if !extension.exists() {
        return Err(wrong(
            &extension,
            "expected the installed package, found one without its extension",
        ));
    }
    if folder.as_os_str().as_encoded_bytes().contains(&b':') {
        return Err(wrong(folder, "PYTHONPATH cannot name a path with a colon"));
    }
    Ok(folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_installed_package_that_pythonpath_can_name_is_taken() {
        let root = tempfile::tempdir().unwrap();
        for (name, has_extension, problem) in [
            ("whole", true, None),
            ("sources", false, Some("without its extension")),
            ("a:colon", true, Some("a path with a colon")),
        ] {
            let package = root.path().join(name);
            fs::create_dir_all(package.join("startup")).unwrap();
            fs::write(package.join(MODULE), "").unwrap();
            if has_extension {
                fs::write(package.join(EXTENSION), "").unwrap();
            }
            match (find("--python", Some(&package)), problem) {
                (Ok(folder), None) => {
                    let package = fs::canonicalize(&package).unwrap();
                    assert_eq!(folder, package.join("startup"));
                }
                (Err(refused), Some(problem)) => assert!(refused.contains(problem), "{refused}"),
                (found, _) => panic!("{name}: {found:?}"),
            }
        }
        let refused = find("--python", Some(&root.path().join("none"))).unwrap_err();
        assert!(refused.contains("No such file"), "{refused}");
    }
}
