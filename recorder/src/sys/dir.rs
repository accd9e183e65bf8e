//! Directories by descriptor: nothing is followed, nothing of a foreign owner is touched.

use std::ffi::{OsStr, OsString};
use std::io::{self, Error, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::entries;
use super::fd::{self, Status, c_name, check};
use super::sleep::sleep;
use crate::sys::clock;

/// Links that are followed from the path that the user named, as the kernel does.
const MOST_LINKS: usize = 40;
/// Longest target of a link.
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
    /// Opens the directory the user named (a symlink to one is the user's choice), making it and its parents if needed.
    pub(crate) fn create_path(path: &Path, mode: u32) -> io::Result<Dir> {
        make_path(path, mode)?;
        Dir::open_path(path)
    }

    /// Opens an existing directory by path. A link there is followed if it is this user's, root's or that of the owner of the folder in which it
    /// lies. Anybody else's link would lead us to where they want.
    pub(crate) fn open_path(path: &Path) -> io::Result<Dir> {
        let mut place: PathBuf = path.components().collect(); // with a slash at its end it would be followed by the kernel
        for _ in 0..MOST_LINKS {
            let fd = match open_at(libc::AT_FDCWD, place.as_os_str(), FOLDER, 0) {
                Err(error) => match target_of(&place)? {
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

    /// Opens the folder `name` in this directory, making it if needed; refuses a symlink, or one of another user than us or root.
    pub(crate) fn create_folder(&self, name: &str, mode: u32) -> io::Result<Dir> {
        let text = c_name(OsStr::new(name))?;
        // SAFETY: the name is a C string.
        let made = unsafe { libc::mkdirat(self.fd.as_raw_fd(), text.as_ptr(), mode) };
        if made < 0 && Error::last_os_error().kind() != ErrorKind::AlreadyExists {
            return Err(Error::last_os_error());
        }
        let folder = self.open_folder(name)?;
        if made == 0 {
            set_mode(&folder.fd, mode);
        }
        Ok(folder)
    }

    /// Opens the existing folder `name`, refusing what [`Dir::create_folder`] refuses.
    pub(crate) fn open_folder(&self, name: &str) -> io::Result<Dir> {
        let fd = open_at(self.fd.as_raw_fd(), OsStr::new(name), FOLDER, 0)?;
        let owner = fd::status(fd.as_raw_fd())?.owner;
        if owner != user() && owner != 0 {
            return Err(refused(name, "belongs to another user"));
        }
        Ok(Dir {
            fd,
            path: self.path.join(name),
        })
    }

    /// Makes a file that must not exist yet.
    pub(crate) fn create_file(
        &self,
        name: &str,
        mode: u32,
        flags: libc::c_int,
    ) -> io::Result<OwnedFd> {
        let flags = flags | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let fd = open_at(self.fd.as_raw_fd(), OsStr::new(name), flags, mode)?;
        // SAFETY: the descriptor is open; an error leaves the mode the umask gave, which is narrower.
        unsafe { libc::fchmod(fd.as_raw_fd(), mode) };
        Ok(fd)
    }

    /// Opens an existing plain file of ours with a single link for reading; anything else in its place is refused.
    pub(crate) fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<(OwnedFd, Status)> {
        self.open_plain(name.as_ref(), 1)
    }

    /// Opens a plain file of ours for reading that may have more names than this one, as a segment has that a snapshot shares. It may be any file
    /// of ours that somebody has linked here: only its name may be changed.
    pub(crate) fn open_linked(&self, name: impl AsRef<OsStr>) -> io::Result<(OwnedFd, Status)> {
        self.open_plain(name.as_ref(), u64::MAX)
    }

    fn open_plain(&self, name: &OsStr, most_links: u64) -> io::Result<(OwnedFd, Status)> {
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let fd = open_at(self.fd.as_raw_fd(), name, flags, 0)?;
        let status = fd::status(fd.as_raw_fd())?;
        if !status.is_regular() || status.owner != user() || status.links > most_links {
            let name = name.to_string_lossy();
            return Err(refused(&name, "is no plain file of this user"));
        }
        Ok((fd, status))
    }

    /// Renames within this directory, replacing what is there.
    pub(crate) fn replace(&self, from: &str, to: &str) -> io::Result<()> {
        self.rename(from, self, to, 0)
    }

    /// Moves a file to another directory; fails if the name is taken there.
    pub(crate) fn move_to(&self, name: &str, target: &Dir, new_name: &str) -> io::Result<()> {
        self.rename(name, target, new_name, libc::RENAME_NOREPLACE)
    }

    fn rename(&self, from: &str, target: &Dir, to: &str, flags: libc::c_uint) -> io::Result<()> {
        let (from, to) = (c_name(from.as_ref())?, c_name(to.as_ref())?);
        let (old, new) = (self.fd.as_raw_fd(), target.fd.as_raw_fd());
        // SAFETY: both names are C strings, both descriptors open.
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

    /// Removes a file (never what a symlink points to).
    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.unlink(name.as_ref(), 0)
    }

    /// Removes an empty folder.
    pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        self.unlink(name, libc::AT_REMOVEDIR)
    }

    fn unlink(&self, name: &OsStr, flags: libc::c_int) -> io::Result<()> {
        let name = c_name(name)?;
        // SAFETY: the name is a C string.
        check(unsafe { libc::unlinkat(self.fd.as_raw_fd(), name.as_ptr(), flags) })
    }

    /// Names of the entries.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let again = open_at(self.fd.as_raw_fd(), OsStr::new("."), flags, 0)?; // from the first entry on
        entries::names(&again)
    }

    /// Whether there is anything of this name, be it a link to nowhere.
    pub(crate) fn has(&self, name: impl AsRef<OsStr>) -> bool {
        let Ok(name) = c_name(name.as_ref()) else {
            return false;
        };
        fd::status_at(self.fd.as_raw_fd(), &name, libc::AT_SYMLINK_NOFOLLOW).is_ok()
    }

    /// The path it was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the directory's lock back, also where a forked child has the same open directory.
    pub(crate) fn unlock(&self) {
        fd::unlock(self.fd.as_raw_fd());
    }

    /// Takes the directory's lock, waiting at most `patience_ns`; it ends with the `Dir`.
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

/// Makes a folder and its parents, where they do not exist yet.
fn make_path(path: &Path, mode: u32) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
    let made = match builder.create(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parent = path.parent().ok_or(error)?;
            make_path(parent, mode)?;
            builder.create(path)
        }
        made => made,
    };
    match made {
        Err(_) if path.is_dir() => Ok(()), // it was there, or another process was faster
        Err(error) => Err(error),
        Ok(()) => {
            set_mode(&open_at(libc::AT_FDCWD, path.as_os_str(), FOLDER, 0)?, mode);
            Ok(())
        }
    }
}

/// Where a link leads; `None` if it is none. One of a user who is not trusted is refused.
fn target_of(path: &Path) -> io::Result<Option<PathBuf>> {
    // Opened, so that owner and target are of the same link, whatever takes its place meanwhile.
    let flags = libc::O_PATH | libc::O_NOFOLLOW;
    let link = open_at(libc::AT_FDCWD, path.as_os_str(), flags, 0)?;
    let mut target = vec![0u8; TARGET_BYTES];
    let (room, bytes) = (target.as_mut_ptr().cast(), target.len());
    // SAFETY: the empty name is the open link itself, and the buffer is valid for its length.
    let length = unsafe { libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), room, bytes) };
    let Ok(length) = usize::try_from(length) else {
        return Ok(None);
    };
    let owner = fd::status(link.as_raw_fd())?.owner;
    if owner != user() && owner != 0 && Some(owner) != owner_of_folder(path) {
        let path = path.to_string_lossy();
        return Err(refused(&path, "is a link that belongs to another user"));
    }
    target.truncate(length);
    Ok(Some(PathBuf::from(OsString::from_vec(target))))
}

/// The owner of the folder that a path lies in.
fn owner_of_folder(path: &Path) -> Option<u32> {
    let folder = c_name(path.parent()?.as_os_str()).ok()?;
    Some(fd::status_at(libc::AT_FDCWD, &folder, 0).ok()?.owner)
}

/// Gives a folder we have just made the mode that the umask took from it; what it has from its parent (a shared group's bit) stays. Somebody who may
/// write there could have put another one in its place before it was opened: only one of this user gets a mode.
fn set_mode(folder: &OwnedFd, mode: u32) {
    if let Ok(status) = fd::status(folder.as_raw_fd())
        && status.owner == user()
    {
        // SAFETY: the descriptor is open; an error leaves the mode the umask gave, which is narrower.
        unsafe { libc::fchmod(folder.as_raw_fd(), mode | status.mode & 0o7000) };
    }
}

/// The user whose files we make.
pub(crate) fn user() -> u32 {
    // SAFETY: geteuid cannot fail.
    unsafe { libc::geteuid() }
}

fn refused(name: &str, why: &str) -> Error {
    Error::new(ErrorKind::PermissionDenied, format!("{name} {why}"))
}

/// Opens the file at a path, seen from the directory `dir`.
pub(super) fn open_at(
    dir: libc::c_int,
    path: &OsStr,
    flags: libc::c_int,
    mode: u32,
) -> io::Result<OwnedFd> {
    let name = c_name(path)?;
    // SAFETY: the name is a C string; the mode is read only with O_CREAT.
    let fd = unsafe { libc::openat(dir, name.as_ptr(), flags | libc::O_CLOEXEC, mode) };
    // SAFETY: a new descriptor that nobody else owns.
    unsafe { fd::owned(fd) }
}
