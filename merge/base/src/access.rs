//! Permissions of files that are derived from others: a user who may not read every input may not read the output. All other new files get the mode of the
//! recorded fragments.

use rustix::fs::{Gid, Mode, Uid, fchown};
use rustix::process::{geteuid, umask};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Permissions that the owner always has. This is also the default mode of fragments.
const OWNER: u32 = 0o600;
/// Read and write permission for everybody.
const FILE: u32 = 0o666;

/// Permission bits of a file that remain effective in a folder. A class of users that may not search the folder cannot use its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderAccess(u32);

/// Mode of a file, together with the group and the owner it applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    mode: u32,
    /// Group id, or `None` if the group has no more permissions than all other users.
    group: Option<u32>,
    /// True if the umask still has to be applied, because nobody chose this mode for files of this project.
    is_masked: bool,
    /// User id of the owner, or `None` if the files have several owners.
    owner: Option<u32>,
}

impl FolderAccess {
    /// All users.
    pub(crate) const ALL: FolderAccess = FolderAccess(FILE);

    /// Removes the bits of users who may not search a folder of this mode.
    pub(crate) fn in_folder(self, folder_mode: u32) -> FolderAccess {
        let search = folder_mode & 0o011;
        FolderAccess(self.0 & (OWNER | search << 2 | search << 1))
    }
}

impl Access {
    /// Access for the owner only.
    pub const OWN: Access = Access {
        mode: OWNER,
        group: None,
        is_masked: false,
        owner: None,
    };

    /// Returns the access to a file in a folder.
    pub fn from_file(file: &Metadata, folder: FolderAccess) -> Access {
        Access {
            owner: Some(file.uid()),
            ..Access::new(file.mode() & folder.0, Some(file.gid()))
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

    /// Returns this access with the umask applied when a file is created.
    pub fn masked(self) -> Access {
        Access {
            is_masked: true,
            ..self
        }
    }

    fn with_mode(self, mode: u32, group: Option<u32>) -> Access {
        Access {
            is_masked: self.is_masked,
            owner: self.owner,
            ..Access::new(mode, group)
        }
    }

    /// Limits the group's bits to those of all other users, for a file that belongs to a different group.
    fn without_group(self) -> Access {
        let others = self.mode & 0o7;
        self.with_mode(self.mode & !0o070 | (others << 3 & self.mode), None)
    }

    /// Returns the access of users who may read both files.
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

    /// Removes the permissions of users who cannot get to a folder.
    pub fn within(self, folder: FolderAccess) -> Access {
        self.with_mode(self.mode & folder.0, self.group)
    }

    /// Removes the permissions that an existing file does not grant.
    pub fn no_wider_than(self, file: &Metadata) -> Access {
        let owner = self.owner.filter(|owner| *owner == file.uid());
        Access {
            owner,
            ..self.with_mode(self.mode & file.mode(), self.group)
        }
    }

    /// Returns the mode to create a file with, before [`Access::apply_to`].
    pub(crate) fn initial_mode(self) -> u32 {
        if self.is_masked { self.mode } else { OWNER }
    }

    /// Sets the mode and the group of a file that was created with its initial mode. If root runs the merge, the owner becomes the one of the inputs. If the
    /// group cannot be changed, it gets the permissions of all other users.
    pub(crate) fn apply_to(self, file: &File) -> io::Result<()> {
        if let Some(owner) = self.owner.filter(|_| geteuid().is_root()) {
            // If the kernel refuses this, the file still belongs to root, and nobody can read more than before.
            let _ = fchown(file, Some(Uid::from_raw(owner)), None);
        }
        let set_group = |group| -> io::Result<bool> {
            let is_set = file.metadata()?.gid() == group;
            Ok(is_set || fchown(file, None, Some(Gid::from_raw(group))).is_ok())
        };
        let access = match self.group {
            Some(group) if !set_group(group)? => self.without_group(),
            _ => self,
        };
        let mode = match self.is_masked {
            true => access.mode & file.metadata()?.mode(),
            false => access.mode,
        };
        file.set_permissions(Permissions::from_mode(mode))
    }
}

/// Environment variable with the mode of fragments.
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
    fn combined_access_is_no_wider_than_each_input() {
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
        // Users who may not search a folder cannot read its files.
        for (folders, file, mode) in [
            (&[0o700][..], 0o666, 0o600),
            (&[0o750], 0o666, 0o660),
            (&[0o755], 0o640, 0o640),
            (&[0o755, 0o750], 0o644, 0o640),
            (&[0o755, 0o744], 0o644, 0o600),
        ] {
            let in_folder = |folder: FolderAccess, mode: &u32| folder.in_folder(*mode);
            let in_folders = folders.iter().fold(FolderAccess::ALL, in_folder);
            let readable = access((file, 1)).within(in_folders);
            assert_eq!(readable.mode, mode, "{folders:?} {file:o}");
        }
    }

    #[test]
    fn the_umask_leaves_the_requested_mode() {
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
