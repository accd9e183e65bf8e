"""``sa_profile.tables``: unit tests use a fake command, and the example of docs/python.md uses the installed command."""

import copy
import importlib.util
import json
import os
import pickle
import re
import sys
from pathlib import Path

import pytest

import sa_profile

from .test_readme import PAGE, examples_of_the_page

INTERPRETER = sys.executable  # tests change the value
# Writes its arguments to a file, two tables, incomplete tables, and a folder that is not a table.
FAKE = """#!{python}
import json, sys
from pathlib import Path
Path(__file__).with_suffix(".json").write_text(json.dumps(sys.argv[1:]))
to = Path(sys.argv[sys.argv.index("--to") + 1])
for folder in ("slice/host=a", "request/host=a", "request/host=b", ".new-1/host=a", "notes"):
    (to / folder).mkdir(parents=True, exist_ok=True)
print("sa-profile: {name}: 2 tables", file=sys.stderr)
"""
class Command:
    """A fake `sa-profile` in a folder."""

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self.path = folder / "sa-profile"
        self.write(FAKE.format(python=INTERPRETER, name=folder.name))

    def write(self, text):
        self.path.write_text(text)
        self.path.chmod(0o755)

    def arguments(self):
        """Returns the arguments of the last call."""
        return json.loads(self.path.with_suffix(".json").read_text())


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Returns the folder for temporary files, which is empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def command(tmp_path, temporary, monkeypatch):
    """Returns the only `sa-profile` that can be found, next to the interpreter."""
    found = Command(tmp_path / "bin")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.chdir(tmp_path)
    return found


@pytest.mark.parametrize(
    ("run", "options", "expected"),
    [
        (None, {}, []),
        (Path("profile_out/trace.json"), {}, ["--", "profile_out/trace.json"]),
        ("--help", {"force": True}, ["--force", "--", "--help"]),
    ],
)
def test_the_command_gets_the_arguments(command, tmp_path, run, options, expected):
    for to in ("parquet", tmp_path / "parquet"):
        tables = sa_profile.tables(run, to=to, **options)
        assert command.arguments() == ["tables", "--to", str(tmp_path / "parquet"), *expected]
        assert tables.folder == str(tmp_path / "parquet")


def test_the_result_is_a_mapping_from_the_tables_to_their_paths(command, tmp_path):
    tables = sa_profile.tables(to="parquet")
    assert dict(tables) == {name: str(tmp_path / "parquet" / name) for name in ("request", "slice")}
    assert list(tables) == ["request", "slice"] and len(tables) == 2
    assert "request" in tables and "notes" not in tables and tables.get("notes") is None
    assert isinstance(tables["request"], str) and tables.text == "sa-profile: bin: 2 tables"
    assert repr(tables) == f"<Tables in {tmp_path}/parquet: request, slice>"
    with pytest.raises(KeyError, match="requests: expected one of request, slice"):
        tables["requests"]
    with pytest.raises(TypeError):
        tables["request"] = "elsewhere"
    del tables
    assert (tmp_path / "parquet" / "request").is_dir(), "a given folder stays"


@pytest.mark.parametrize("interpreter", [None, "", "bin/python"])
def test_the_command_next_to_the_interpreter_takes_precedence_over_path(command, tmp_path, temporary, monkeypatch, interpreter):
    if not interpreter:  # a program embeds Python
        command.path.unlink()
    monkeypatch.setattr(sys, "executable", interpreter and str(tmp_path / interpreter))
    Command(tmp_path / "path")
    assert sa_profile.tables().text == f"sa-profile: {'bin' if interpreter else 'path'}: 2 tables"
    command.write("")
    command.path.chmod(0o644)
    assert sa_profile.tables().text == "sa-profile: path: 2 tables"
    (tmp_path / "path" / "sa-profile").unlink()
    expected = f"next to {tmp_path}/bin/python or on PATH" if interpreter else "on PATH"
    with pytest.raises(FileNotFoundError, match=f"^sa-profile: expected this command {expected}, found none; install.*pip install"):
        sa_profile.tables()
    assert os.listdir(temporary) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "sa-profile: profile_out: expected a run directory, found nothing",
            r"{program} tables --to {temporary}/sa-profile-tables-\w+ -- profile_out: expected exit code 0, found 2: {words}",
        ),
        (
            "sa-profile: tables: this build cannot write Parquet: install a wheel",
            r"{program}: expected a build that can write Parquet, found one that cannot; install a wheel .*pip install.*",
        ),
    ],
)
def test_a_failing_command_is_an_error_with_its_message(command, tmp_path, temporary, words, said):
    command.write(f"#!/bin/sh\necho '{words}' >&2\nexit 2\n")
    with pytest.raises(OSError) as error:
        sa_profile.tables("profile_out")
    assert re.fullmatch(said.format(program=command.path, temporary=temporary, words=words), str(error.value))
    assert os.listdir(temporary) == []
    (tmp_path / "parquet").mkdir()
    with pytest.raises(OSError):
        sa_profile.tables(to="parquet")
    assert (tmp_path / "parquet").is_dir()


@pytest.mark.parametrize("kept_of", [lambda tables: tables, lambda tables: tables["request"], lambda tables: tables.folder, lambda tables: list(tables.values())])
def test_a_temporary_folder_exists_as_long_as_the_result_or_one_of_its_paths(command, temporary, kept_of):
    kept = kept_of(sa_profile.tables())
    (folder,) = temporary.iterdir()
    assert (folder / "request").is_dir()
    for copied in (copy.copy(kept), copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))) if isinstance(kept, str) else ():
        assert type(copied) is str and copied == kept
    del kept
    assert os.listdir(temporary) == []


PROGRAM = """
import os, sys
import sa_profile
kept = sa_profile.tables()
print(kept.folder)
if (pid := os.fork()) == 0:
    del kept
    sys.exit()
assert os.waitpid(pid, 0)[1] == 0
assert os.path.isdir(kept["request"])
"""


def test_only_the_end_of_the_owning_process_removes_a_temporary_folder(process, tmp_path):
    Command(tmp_path / "bin")
    program = f"import sys; sys.executable = {str(tmp_path / 'bin' / 'python')!r}\n{PROGRAM}"
    folder = process.python("-X", "dev", "-c", program, TMPDIR=str(tmp_path)).strip()
    assert Path(folder).parent == tmp_path and not Path(folder).exists()


def test_importing_the_package_does_not_import_modules_for_tables(process):
    program = "import sys, sa_profile; print(*{'subprocess', 'tempfile', 'shutil', 'pandas', 'polars', 'pyarrow'} & sys.modules.keys())"
    assert process.python("-c", program).strip() == ""


# Two requests: one ends after its second token, the other after its first.
RECORDING = """
import sa_profile
with sa_profile.recording("profile_out"):
    for name, tokens in (("cmpl-1", 2), ("cmpl-2", 1)):
        with sa_profile.span("step"):
            request = sa_profile.request(name, prompt_tokens=12)
            request.instant("request.scheduled")
            for _ in range(tokens):
                request.instant("request.token")
            request.end(output_tokens=tokens)
"""
CHECKS = """
assert len(requests) == 2 and set(requests["request_id"]) == {"cmpl-1", "cmpl-2"}
assert (requests["ttft_us"] > 0).all() and requests["host"].notna().all()
scanned = polars.scan_parquet(tables["request"]).collect()
assert scanned.columns == list(requests.columns)
assert scanned["ttft_us"].to_list() == requests["ttft_us"].to_list()
assert "step" in slices.select("name").collect()["name"].to_list()
for name, path in tables.items():
    frame, scanned = pandas.read_parquet(path), polars.scan_parquet(path).collect()
    assert list(frame.columns) == scanned.columns and len(frame) == len(scanned), name
# Only the path refers to the folder here.
assert pandas.read_parquet(sa_profile.tables("profile_out")["request"])["ttft_us"].mean() == requests["ttft_us"].mean()
sa_profile.start("live")
sa_profile.instant("just now")
assert "just now" in set(pandas.read_parquet(sa_profile.tables("live")["slice"])["name"])
sa_profile.stop()
"""
MISSING = [name for name in ("pandas", "polars", "pyarrow") if importlib.util.find_spec(name) is None]


@pytest.mark.skipif(not PAGE.exists(), reason="SKIPPED the example of docs/python.md that reads tables: the page is not beside the package")
@pytest.mark.skipif(bool(MISSING), reason=f"SKIPPED the example of docs/python.md that reads tables: no {', '.join(MISSING)}")
def test_the_example_of_the_page_reads_the_tables(process, tmp_path):
    (example,) = examples_of_the_page("test_tables.py")
    (tmp_path / "example.py").write_text(RECORDING + example + CHECKS)
    if os.environ.get("SA_CARGO_PROFILE") == "source":
        _, said = process.run(sys.executable, "example.py", expected=1)
        assert "expected a build that can write Parquet, found one that cannot" in said
        return
    process.python("example.py")
    assert list((tmp_path / "parquet" / "request").glob("host=*/*.parquet"))
