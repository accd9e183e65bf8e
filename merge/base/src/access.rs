//! Permissions of files made from others: a user who may not read all inputs may not read the output. Other files get the mode of the recorded fragments.

use rustix::fs::{Gid, Mode, Uid, fchown};
use rustix::process::{geteuid, umask};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Permissions that the owner always has. This is also the default mode of fragments.
const OWNER: u32 = 0o600;
/// Reading and writing, of everybody.
const FILE: u32 = 0o666;

/// Who comes as far as a folder: the group's and the others' bits of a file's mode that count there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach(u32);

/// The mode of a file, and whose group it speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    mode: u32,
    /// `None` if the group may do no more than all others.
    group: Option<u32>,
    /// Whether the umask takes from it: nobody chose this mode for what this project writes.
    is_masked: bool,
    /// Whose files they are; `None` if not all of them are the same user's.
    owner: Option<u32>,
}

impl Reach {
    /// Everybody.
    pub(crate) const ALL: Reach = Reach(FILE);

    /// Who of them comes through a folder of this mode: it takes the right to search it.
    pub(crate) fn through(self, folder_mode: u32) -> Reach {
        let search = folder_mode & 0o011;
        Reach(self.0 & (OWNER | search << 2 | search << 1))
    }
}

impl Access {
    /// Nobody but the owner.
    pub const OWN: Access = Access {
        mode: OWNER,
        group: None,
        is_masked: false,
        owner: None,
    };

    /// Who may read a file in a folder.
    pub fn of(file: &Metadata, reach: Reach) -> Access {
        Access {
            owner: Some(file.uid()),
            ..Access::new(file.mode() & reach.0, Some(file.gid()))
        }
    }

    fn new(mode: u32, group: Option<u32>) -> Access {
        let mode = mode & FILE | OWNER;
        let is_more = (mode >> 3 & 0o7) & !(mode & 0o7) != 0;
        Access {
            mode,
            group: group.filter(|_| is_more),
            is_masked: false,
            owner: None,
        }
    }

    /// The same, less what the umask takes.
    pub fn masked(self) -> Access {
        Access {
            is_masked: true,
            ..self
        }
    }

    fn changed(self, mode: u32, group: Option<u32>) -> Access {
        Access {
            is_masked: self.is_masked,
            owner: self.owner,
            ..Access::new(mode, group)
        }
    }

    /// The group's bits are of no use where they speak of another group.
    fn without_group(self) -> Access {
        let others = self.mode & 0o7;
        self.changed(self.mode & !0o070 | (others << 3 & self.mode), None)
    }

    /// Who may read both.
    pub fn and(self, other: Access) -> Access {
        let mode = self.mode & other.mode;
        let both = match (self.group, other.group) {
            (Some(one), Some(two)) if one != two => Access::new(mode, None).without_group(),
            (one, two) => Access::new(mode, one.or(two)),
        };
        Access {
            is_masked: self.is_masked && other.is_masked,
            owner: self.owner.filter(|owner| other.owner == Some(*owner)),
            ..both
        }
    }

    /// Who of them comes to a folder.
    pub fn within(self, reach: Reach) -> Access {
        self.changed(self.mode & reach.0, self.group)
    }

    /// Who of them the file at hand is for already.
    pub fn no_wider_than(self, file: &Metadata) -> Access {
        let owner = self.owner.filter(|owner| *owner == file.uid());
        Access {
            owner,
            ..self.changed(self.mode & file.mode(), self.group)
        }
    }

    /// The mode that a new file begins with.
    pub(crate) fn first_mode(self) -> u32 {
        if self.is_masked { self.mode } else { OWNER }
    }

    /// Gives a file that has its first mode this one, and to whom its inputs belong if root merges them. Where its group is another one, and cannot be changed, the group gets what all others have.
    pub(crate) fn give(self, file: &File) -> io::Result<()> {
        if let Some(owner) = self.owner.filter(|_| geteuid().is_root()) {
            // Where the kernel refuses that, the file stays root's, and nobody reads more than before.
            let _ = fchown(file, Some(Uid::from_raw(owner)), None);
        }
        let is_of_group = |group| -> io::Result<bool> {
            let own = file.metadata()?.gid() == group;
            Ok(own || fchown(file, None, Some(Gid::from_raw(group))).is_ok())
        };
        let access = match self.group {
            Some(group) if !is_of_group(group)? => self.without_group(),
            _ => self,
        };
        let mode = match self.is_masked {
            true => access.mode & file.metadata()?.mode(),
            false => access.mode,
        };
        file.set_permissions(Permissions::from_mode(mode))
    }
}

/// The variable that says which mode the fragments have.
const VARIABLE: &str = "SA_PROFILE_MODE";
/// Sets the umask so that new files get the mode in `SA_PROFILE_MODE`, and new folders that mode plus search permission. Commands that start a user's program
/// must not call this, because the program would inherit the umask.
pub fn use_recorded_mode() {
    let asked = std::env::var(VARIABLE).ok();
    umask(Mode::from_raw_mode(mask(asked.as_deref())));
}

/// Returns the umask for a mode given as octal text.
fn mask(asked: Option<&str>) -> u32 {
    let asked = asked.map(|text| u32::from_str_radix(text.strip_prefix("0o").unwrap_or(text), 8));
    let is_mode = |mode: &u32| mode & OWNER == OWNER && mode & !FILE == 0;
    // For any other value, the recorder warns and uses the default.
    let files = asked.and_then(Result::ok).filter(is_mode);
    let files = files.unwrap_or(OWNER);
    let folders = files | (files & 0o444) >> 2;
    !folders & 0o777
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_reads_more_than_all_files_allow() {
        let access = |(mode, group)| Access::new(mode, Some(group));
        for (one, two, mode) in [
            ((0o600, 1), (0o644, 1), 0o600),
            ((0o640, 1), (0o660, 1), 0o640),
            ((0o640, 1), (0o640, 2), 0o600),
            ((0o644, 1), (0o644, 2), 0o644),
            ((0o664, 1), (0o664, 2), 0o644),
            ((0o640, 1), (0o644, 2), 0o640),
            ((0o400, 1), (0o755, 1), 0o600),
        ] {
            let both = access(one).and(access(two));
            assert_eq!(both.mode, mode, "{one:?} {two:?}");
        }
        // A folder that nobody may search hides its files.
        for (folders, file, mode) in [
            (&[0o700][..], 0o666, 0o600),
            (&[0o750], 0o666, 0o660),
            (&[0o755], 0o640, 0o640),
            (&[0o755, 0o750], 0o644, 0o640),
            (&[0o755, 0o744], 0o644, 0o600),
        ] {
            let through = |reach: Reach, mode: &u32| reach.through(*mode);
            let reach = folders.iter().fold(Reach::ALL, through);
            let all = access((file, 1)).within(reach);
            assert_eq!(all.mode, mode, "{folders:?} {file:o}");
        }
    }

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
