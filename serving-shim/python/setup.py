"""Builds the wheel. A single ``cargo build`` creates all of its native files, so that they share their dependencies.

Environment variables for cross builds: ``CARGO_BUILD_TARGET``; ``SA_CARGO_BUILD``, a cargo command to use in place of ``build`` (``zigbuild``); ``STRIP``, the program that
removes debug information, or empty for none; ``SA_CARGO_PROFILE``. Cargo's own variables apply too. There are three profiles. ``source`` is the default: it builds in a third of
the time of ``dist`` and leaves the tables out. ``dist`` is for wheels that are given to others. ``dev`` builds the whole workspace, like `cargo build`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

from distutils.command.build_scripts import build_scripts  # isort: skip (setuptools provides it)

HERE = Path(__file__).resolve().parent
EXTENSION = "sa_profile._sa_profile"
COMMANDS = ["sa-profile", "trace-merge"]
PACKAGES = ["sa-profile-python", "sa-profile-preload", "sa-profile-capi", "sa-profile", "trace-merge"]
PROFILE = os.environ.get("SA_CARGO_PROFILE", "source")
FEATURES = ["--no-default-features"] if PROFILE == "source" else []
# Path of each library in the package, and its name in cargo. Programs are linked with libsa_profile.so and load libsa_profile.so.0. A wheel cannot contain links.
LIBRARIES = {
    "lib/libsa_profile_preload.so": "sa_profile_preload",
    "lib/libsa_profile.so": "sa_profile",
    "lib/libsa_profile.so.0": "sa_profile",
}
HEADER = "include/sa_profile.h"
LICENCES = "THIRD-PARTY.txt"
LICENCE_FILE = re.compile(r"LICEN[CS]E|COPYING|NOTICE|UNLICENSE", re.IGNORECASE)
# Outputs of builds and tests, which a source distribution leaves out of the workspace.
MADE = shutil.ignore_patterns("target", "node_modules", "__pycache__", "*.so", "*.pyc", "profile_out", ".pytest_cache", ".venv")


def workspace():
    """Returns the Rust workspace: around this folder in a checkout, inside it in a source distribution."""
    for folder in (HERE / "workspace", HERE.parent.parent):
        if (folder / "Cargo.lock").is_file() and (folder / "serving-shim" / "capi").is_dir():
            return folder
    raise SystemExit(f"{HERE}: expected the Rust workspace around this folder or in its folder workspace")


def version():
    """Returns the version of the Rust packages."""
    manifest = (workspace() / "Cargo.toml").read_text(encoding="utf-8")
    return re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"', manifest, re.MULTILINE)[1]


def cargo_build():
    """Builds everything. Returns the files by (kind of target, name of target)."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SystemExit("sa-profile: expected a Python with a GIL, found a free-threaded one: the extension relies on the GIL to protect shared state")
    command = [os.environ.get("CARGO", "cargo"), os.environ.get("SA_CARGO_BUILD", "build"), "--profile", PROFILE, "--locked", *FEATURES]
    command += ["--message-format=json-render-diagnostics"]
    environment = dict(os.environ)
    if target := environment.pop("CARGO_BUILD_TARGET", None):
        command += ["--target", target]
    # With other features, cargo would build a part of the workspace again.
    command += ["--workspace"] if PROFILE == "dev" else [part for package in PACKAGES for part in ("--package", package)]
    left_out = ", without the tables (SA_CARGO_PROFILE=dist has them)" if FEATURES else ""
    print(f"compiling the native parts of the package, which takes minutes{left_out}: {' '.join(command)}", file=sys.stderr)
    try:
        # In the workspace, where cargo finds its own configuration.
        done = subprocess.run(command, cwd=workspace(), env=environment, stdout=subprocess.PIPE, check=False)
    except FileNotFoundError:
        raise SystemExit(f"{command[0]}: not found: Rust 1.95 or later is needed to build sa-profile; on a machine with Rust, build-wheels.sh builds wheels that do not need it") from None
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}")
    return artefacts(done.stdout.decode("utf-8").splitlines())


def artefacts(messages):
    """Returns the libraries and programs that cargo's messages name."""
    found = {}
    for message in map(json.loads, filter(lambda line: line.startswith("{"), messages)):
        if message["reason"] != "compiler-artifact":
            continue
        target = message["target"]
        if message["executable"]:
            found["bin", target["name"]] = message["executable"]
        elif "cdylib" in target["kind"]:
            found["cdylib", target["name"]] = next(name for name in message["filenames"] if name.endswith(".so"))
    return found


def install(source, target):
    """Copies a file to its destination and strips it. Symbols and line tables are useless without the source and ten times as large as the rest."""
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(target.name + ".new")
    shutil.copy(source, new)
    strip = os.environ.get("STRIP", "strip")
    if strip and target.suffix != ".h":
        try:
            subprocess.run([strip, "--strip-all", new], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{target.name} keeps its symbols: {error}", file=sys.stderr)
    new.replace(target)  # a process may have the old one mapped


def linked_crates():
    """Returns the third-party crates that are linked into the built files."""
    host = re.search(r"^host: (.*)$", subprocess.check_output([os.environ.get("RUSTC", "rustc"), "-vV"], text=True), re.MULTILINE)[1]
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", *FEATURES, "--format-version=1", "--filter-platform", host]
    metadata = json.loads(subprocess.check_output(command, cwd=workspace()))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found = [id for id, package in packages.items() if package["source"] is None and package["name"] in PACKAGES]
    for id in found:  # the list grows in the loop
        for dependency in nodes[id]["deps"]:
            linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if linked and dependency["pkg"] not in found:
                found.append(dependency["pkg"])
    return sorted((packages[id] for id in found if packages[id]["source"]), key=lambda package: package["name"])


def third_party():
    """Returns the licences of these crates: each text once, below the names of its crates."""
    crates, texts = [], {}
    for package in linked_crates():
        title = f"{package['name']} {package['version']}"
        crates.append(f"{title}: {package['license'] or package['license_file']}")
        for file in sorted(Path(package["manifest_path"]).parent.iterdir()):
            if LICENCE_FILE.match(file.name) and file.is_file():
                texts.setdefault(file.read_text(encoding="utf-8", errors="replace").strip(), []).append(title)
    page = workspace() / "report" / "page" / "uplot"
    crates.append("uPlot 1.6.32, in the pages of `sa-profile report --page`: MIT")
    texts.setdefault((page / "LICENSE").read_text(encoding="utf-8").strip(), []).append("uPlot 1.6.32")
    parts = ["Rust crates and scripts that the programs of this package contain.", "\n".join(crates)]
    parts += [f"{'=' * 80}\n{', '.join(titles)}\n{'-' * 80}\n{text}" for text, titles in texts.items()]
    return "\n\n".join(parts) + "\n"


class BuildRust(build_ext):
    """Puts the libraries and the header into the package, and the commands where the command for scripts expects them."""

    def run(self):
        built = cargo_build()
        for target, source in self.places(built).items():
            install(source, target)
        for command in COMMANDS:
            install(built["bin", command], self.commands_folder() / command)
        (Path(self.get_ext_fullpath(EXTENSION)).parent / LICENCES).write_text(third_party(), encoding="utf-8")

    def places(self, built):
        """Returns the destination and the source of each file."""
        extension = Path(self.get_ext_fullpath(EXTENSION))
        libraries = {extension.parent / place: built["cdylib", name] for place, name in LIBRARIES.items()}
        header = workspace() / "serving-shim" / "capi" / HEADER
        return {extension: built["cdylib", "_sa_profile"], extension.parent / HEADER: header, **libraries}

    def commands_folder(self):
        return Path(self.build_temp) / "commands"

    def get_outputs(self):
        extension = Path(self.get_ext_fullpath(EXTENSION))
        return [str(extension), *(str(extension.parent / place) for place in (*LIBRARIES, HEADER, LICENCES))]


class BuildCommands(build_scripts):
    """Copies programs to where setuptools expects scripts. The base class would read them as text."""

    def run(self):
        rust = self.get_finalized_command("build_ext")
        for command in COMMANDS:
            if not (source := rust.commands_folder() / command).exists():
                self.run_command("build_ext")
            install(source, Path(self.build_dir) / command)


class SourceDistribution(sdist):
    """Adds the Rust workspace, from which the native files are built."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        root, copy = workspace(), Path(base_dir) / "workspace"
        manifest = (root / "Cargo.toml").read_text(encoding="utf-8")
        members = json.loads(re.search(r"^members = (\[.*\])$", manifest, re.MULTILINE)[1])
        copy.mkdir()
        for name in ("Cargo.toml", "Cargo.lock", "LICENSE", ".cargo/config.toml"):
            (copy / name).parent.mkdir(exist_ok=True)
            shutil.copy(root / name, copy / name)
        for member in members:
            if (root / member).resolve() == HERE or member == "serving-shim/python":
                for name in ("Cargo.toml", "build.rs", "src"):
                    self.copy_into(root / member / name, copy / member / name)
            elif not (copy / member).exists():  # it may be inside another member
                self.copy_into(root / member, copy / member)
        self.follow_links(Path(base_dir))

    def copy_into(self, source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=MADE)
        else:
            shutil.copy(source, target)

    def follow_links(self, folder):
        """Replaces links, such as the one to the workspace's licence, by copies of the files."""
        for link in (path for path in folder.iterdir() if path.is_symlink()):
            content = (HERE / link.name).read_bytes()
            link.unlink()
            link.write_bytes(content)


# Removed at exit. A permanent folder would let files of an earlier build, or of a parallel one, get into the wheel.
BUILD = tempfile.TemporaryDirectory(prefix="sa-profile-build-")

setup(
    version=version(),
    ext_modules=[Extension(EXTENSION, sources=[], py_limited_api=True)],
    scripts=COMMANDS,
    cmdclass={"build_ext": BuildRust, "build_scripts": BuildCommands, "sdist": SourceDistribution},
    options={"bdist_wheel": {"py_limited_api": "cp310"}, "build": {"build_base": BUILD.name}},
)
