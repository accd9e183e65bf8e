//! Gives files that commands write the same mode as the recorded fragments.

use rustix::fs::Mode;
use rustix::process::umask;

/// The variable that says which mode the fragments have.
const VARIABLE: &str = "SA_PROFILE_MODE";
/// Mode of fragments if the variable is not set.
const DEFAULT: u32 = 0o600;
/// Bits that a file may have.
const FILE: u32 = 0o666;

/// Sets the umask so that new files get the mode in `SA_PROFILE_MODE`, and new folders that mode plus search permission. Commands that start a user's program
/// must not call this, because the program would inherit the umask.
pub fn use_recorded_mode() {
    let asked = std::env::var(VARIABLE).ok();
    umask(Mode::from_raw_mode(mask(asked.as_deref())));
}

/// Returns the umask for a mode given as octal text.
fn mask(asked: Option<&str>) -> u32 {
    let asked = asked.map(|text| u32::from_str_radix(text.strip_prefix("0o").unwrap_or(text), 8));
    let is_mode = |mode: &u32| mode & DEFAULT == DEFAULT && mode & !FILE == 0;
    // For any other value, the recorder warns and uses the default.
    let files = asked.and_then(Result::ok).filter(is_mode);
    let files = files.unwrap_or(DEFAULT);
    let folders = files | (files & 0o444) >> 2;
    !folders & 0o777
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_what_its_mask_leaves() {
        for (asked, files, folders) in [
            (None, 0o600, 0o700),
            (Some("0600"), 0o600, 0o700),
            (Some("0640"), 0o640, 0o750),
            (Some("0o660"), 0o660, 0o770),
            (Some("644"), 0o644, 0o755),
            (Some("0777"), 0o600, 0o700),
            (Some("0044"), 0o600, 0o700),
            (Some("rw"), 0o600, 0o700),
            (Some(""), 0o600, 0o700),
        ] {
            let mask = mask(asked);
            assert_eq!((FILE & !mask, 0o777 & !mask), (files, folders), "{asked:?}");
        }
    }
}
