//! Directories by descriptor. Symlinks inside a run directory are never followed, and files of
//! other users are never touched.

use std::ffi::{OsStr, OsString};
use std::io::{self, Error, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::entries;
use super::fd::{self, Status, c_name, check};
use super::sleep::sleep;
use crate::sys::clock;

/// Maximum number of symlinks that are followed in the path that the user named; the kernel's own
/// limit.
const MAX_LINKS: usize = 40;
/// Maximum length of a symlink's target in bytes.
const TARGET_BYTES: usize = 4096;

/// Flags for opening a folder.
const FOLDER: libc::c_int = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

impl Dir {
    /// Opens the directory that the user named, creating it and its parents with the permission
    /// bits `mode` if needed. It may be a symlink, which is the user's choice.
    pub(crate) fn create_path(path: &Path, mode: u32) -> io::Result<Dir> {
        make_path(path, mode)?;
        Dir::open_path(path)
    }

    /// Opens an existing directory by path. A symlink there is followed if it belongs to this user,
    /// to root, or to the owner of the folder that contains it. Anybody else's symlink could lead
    /// us to a place of their choice.
    pub(crate) fn open_path(path: &Path) -> io::Result<Dir> {
        let mut place: PathBuf = path.components().collect(); // drops a trailing slash, with which the kernel would follow a symlink
        for _ in 0..MAX_LINKS {
            let fd = match open_at(libc::AT_FDCWD, place.as_os_str(), FOLDER, 0) {
                Err(error) => match link_target(&place)? {
                    Some(target) => {
                        place.pop();
                        place.push(target);
                        continue;
                    }
                    None => return Err(error),
                },
                opened => opened?,
            };
            let path = path.to_owned();
            return Ok(Dir { fd, path });
        }
        Err(Error::from_raw_os_error(libc::ELOOP))
    }

    /// Opens the folder `name` in this directory, creating it if needed. Refuses symlinks, and
    /// folders that belong to a user other than this one or root.
    pub(crate) fn create_folder(&self, name: &str, mode: u32) -> io::Result<Dir> {
        let text = c_name(OsStr::new(name))?;
        // SAFETY: the name is a C string.
        let result = unsafe { libc::mkdirat(self.fd.as_raw_fd(), text.as_ptr(), mode) };
        if result < 0 && Error::last_os_error().kind() != ErrorKind::AlreadyExists {
            return Err(Error::last_os_error());
        }
        let folder = self.open_folder(name)?;
        if result == 0 {
            set_mode(&folder.fd, mode);
        }
        Ok(folder)
    }

    /// Opens the existing folder `name` in this directory. Like [`Dir::create_folder`], refuses
    /// symlinks and folders that belong to a user other than this one or root.
    pub(crate) fn open_folder(&self, name: &str) -> io::Result<Dir> {
        let fd = open_at(self.fd.as_raw_fd(), OsStr::new(name), FOLDER, 0)?;
        let owner = fd::status(fd.as_raw_fd())?.owner;
        if owner != effective_user() && owner != 0 {
            return Err(permission_denied(name, "belongs to another user"));
        }
        Ok(Dir {
            fd,
            path: self.path.join(name),
        })
    }

    /// Creates and opens the file `name` in this directory, with the permission bits `mode`. Fails
    /// if the name is already in use.
    pub(crate) fn create_file(
        &self,
        name: &str,
        mode: u32,
        flags: libc::c_int,
    ) -> io::Result<OwnedFd> {
        let flags = flags | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let fd = open_at(self.fd.as_raw_fd(), OsStr::new(name), flags, mode)?;
        // SAFETY: the descriptor is open. On an error the file keeps the mode from the umask, which
        // is narrower.
        unsafe { libc::fchmod(fd.as_raw_fd(), mode) };
        Ok(fd)
    }

    /// Opens an existing plain file of this user in this directory for reading, and returns it with
    /// its status. Refuses anything else of this name, such as a symlink or a file with several
    /// links.
    pub(crate) fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<(OwnedFd, Status)> {
        self.open_plain(name.as_ref(), 1)
    }

    /// Opens a plain file of this user in this directory for reading. Unlike in [`Dir::open_file`],
    /// it may have several links, as a segment does that a snapshot shares. It may also be any
    /// other file of this user that somebody has linked here, so only its name may be changed.
    pub(crate) fn open_linked(&self, name: impl AsRef<OsStr>) -> io::Result<(OwnedFd, Status)> {
        self.open_plain(name.as_ref(), u64::MAX)
    }

    fn open_plain(&self, name: &OsStr, max_links: u64) -> io::Result<(OwnedFd, Status)> {
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let fd = open_at(self.fd.as_raw_fd(), name, flags, 0)?;
        let status = fd::status(fd.as_raw_fd())?;
        if !status.is_regular() || status.owner != effective_user() || status.links > max_links {
            let name = name.to_string_lossy();
            return Err(permission_denied(&name, "is not a plain file of this user"));
        }
        Ok((fd, status))
    }

    /// Renames the file `from` in this directory to `to`. Replaces an existing file of that name.
    pub(crate) fn replace(&self, from: &str, to: &str) -> io::Result<()> {
        self.rename(from, self, to, 0)
    }

    /// Moves a file from this directory to `target`, where it is called `new_name`. Fails if that
    /// name is already in use.
    pub(crate) fn move_to(&self, name: &str, target: &Dir, new_name: &str) -> io::Result<()> {
        self.rename(name, target, new_name, libc::RENAME_NOREPLACE)
    }

    fn rename(&self, from: &str, target: &Dir, to: &str, flags: libc::c_uint) -> io::Result<()> {
        let (from, to) = (c_name(from.as_ref())?, c_name(to.as_ref())?);
        let (old, new) = (self.fd.as_raw_fd(), target.fd.as_raw_fd());
        // SAFETY: both names are C strings and both descriptors are open.
        check(unsafe {
            libc::syscall(
                libc::SYS_renameat2,
                old,
                from.as_ptr(),
                new,
                to.as_ptr(),
                flags,
            )
        })
    }

    /// Removes a file from this directory. A symlink itself is removed, never its target.
    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.unlink(name.as_ref(), 0)
    }

    /// Removes an empty folder from this directory.
    pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        self.unlink(name, libc::AT_REMOVEDIR)
    }

    fn unlink(&self, name: &OsStr, flags: libc::c_int) -> io::Result<()> {
        let name = c_name(name)?;
        // SAFETY: the name is a C string.
        check(unsafe { libc::unlinkat(self.fd.as_raw_fd(), name.as_ptr(), flags) })
    }

    /// Returns the names of all entries of this directory, except for `.` and `..`.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let reopened = open_at(self.fd.as_raw_fd(), OsStr::new("."), flags, 0)?; // a new descriptor starts at the first entry
        entries::names(&reopened)
    }

    /// Returns true if this directory has an entry of this name, even a dangling symlink.
    pub(crate) fn has(&self, name: impl AsRef<OsStr>) -> bool {
        let Ok(name) = c_name(name.as_ref()) else {
            return false;
        };
        fd::status_at(self.fd.as_raw_fd(), &name, libc::AT_SYMLINK_NOFOLLOW).is_ok()
    }

    /// Returns the path by which the directory was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Releases the directory's lock, even if a forked child shares the open directory.
    pub(crate) fn unlock(&self) {
        fd::unlock(self.fd.as_raw_fd());
    }

    /// Locks the directory against other recorders. Returns false if another process keeps the lock
    /// for longer than `patience_ns`. The lock is released with the `Dir`.
    pub(crate) fn lock(&self, patience_ns: u64) -> bool {
        let end_ns = clock::now_ns() + patience_ns;
        while !fd::try_lock(self.fd.as_raw_fd()) {
            if clock::now_ns() > end_ns {
                return false;
            }
            sleep(std::time::Duration::from_millis(1));
        }
        true
    }
}

/// Creates a folder and its parents, with the permission bits `mode`, if they do not exist.
fn make_path(path: &Path, mode: u32) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
    let created = match builder.create(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parent = path.parent().ok_or(error)?;
            make_path(parent, mode)?;
            builder.create(path)
        }
        created => created,
    };
    match created {
        Err(_) if path.is_dir() => Ok(()), // it already existed, or another process was faster
        Err(error) => Err(error),
        Ok(()) => {
            set_mode(&open_at(libc::AT_FDCWD, path.as_os_str(), FOLDER, 0)?, mode);
            Ok(())
        }
    }
}

/// Returns the target of the symlink at `path`, or `None` if there is no symlink. Refuses symlinks
/// of users that are not trusted.
fn link_target(path: &Path) -> io::Result<Option<PathBuf>> {
    // The symlink is opened so that owner and target belong to the same one, even if it is replaced
    // meanwhile.
    let flags = libc::O_PATH | libc::O_NOFOLLOW;
    let link = open_at(libc::AT_FDCWD, path.as_os_str(), flags, 0)?;
    let mut target = vec![0u8; TARGET_BYTES];
    let (room, bytes) = (target.as_mut_ptr().cast(), target.len());
    // SAFETY: the empty name stands for the open symlink itself, and the buffer is valid for its
    // length.
    let length = unsafe { libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), room, bytes) };
    let Ok(length) = usize::try_from(length) else {
        return Ok(None);
    };
    let owner = fd::status(link.as_raw_fd())?.owner;
    if owner != effective_user() && owner != 0 && Some(owner) != owner_of_folder(path) {
        let path = path.to_string_lossy();
        return Err(permission_denied(
            &path,
            "is a symlink that belongs to another user",
        ));
    }
    target.truncate(length);
    Ok(Some(PathBuf::from(OsString::from_vec(target))))
}

/// Returns the user id of the owner of the folder that contains a path.
fn owner_of_folder(path: &Path) -> Option<u32> {
    let folder = c_name(path.parent()?.as_os_str()).ok()?;
    Some(fd::status_at(libc::AT_FDCWD, &folder, 0).ok()?.owner)
}

/// Gives a folder that we have just created the permissions that the umask removed. Bits inherited
/// from its parent (a shared group's setgid bit) stay. Another user with write access could have
/// replaced the folder before it was opened, so only a folder of this user is changed.
fn set_mode(folder: &OwnedFd, mode: u32) {
    if let Ok(status) = fd::status(folder.as_raw_fd())
        && status.owner == effective_user()
    {
        // SAFETY: the descriptor is open. On an error the folder keeps the mode from the umask,
        // which is narrower.
        unsafe { libc::fchmod(folder.as_raw_fd(), mode | status.mode & 0o7000) };
    }
}

/// Returns the id of the effective user, who owns the files that the recorder creates.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: geteuid cannot fail.
    unsafe { libc::geteuid() }
}

fn permission_denied(name: &str, why: &str) -> Error {
    Error::new(ErrorKind::PermissionDenied, format!("{name} {why}"))
}

/// Opens the file at a path relative to the open directory `dir`, with the flags and the mode of an
/// `openat` call.
pub(super) fn open_at(
    dir: libc::c_int,
    path: &OsStr,
    flags: libc::c_int,
    mode: u32,
) -> io::Result<OwnedFd> {
    let name = c_name(path)?;
    // SAFETY: the name is a C string; the mode is read only with O_CREAT.
    let fd = unsafe { libc::openat(dir, name.as_ptr(), flags | libc::O_CLOEXEC, mode) };
    // SAFETY: a new descriptor that nothing else owns.
    unsafe { fd::owned(fd) }
}
