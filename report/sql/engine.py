"""Runs statements over the tables of a run with an engine that this Python has: DuckDB, DataFusion or Spark. `sa-profile sql` carries this file.

Usage: engine.py [--engine duckdb|datafusion|spark] [--master URL] [--format table|csv|json] TABLES < STATEMENTS
TABLES has a folder for each table, and in it one for each host (`host=<host>`). Those of a host count if it has `metadata`, which comes last. A NUL separates statements.
Exit 0: done. 1: the engine refused a statement. 2: no engine, no tables."""

import sys

sys.path = [folder for folder in sys.path if folder]  # no module of the working directory is meant

import argparse
import atexit
import csv
import decimal
import glob
import importlib.util
import json
import math
import os
import shutil
import tempfile
import unicodedata
import urllib.parse

# The tables, those first that others need.
TABLES = ["metadata", "clock", "process", "thread", "track", "slice", "args", "counter", "flow", "request", "step", "device", "idle", "name", "loss", "damage"]

# The newest version of the tables that can be read. Version 1 had no tables of the report.
SCHEMA_VERSION = 2

# The names of Perfetto's trace processor that are no tables of ours.
VIEWS = {
    "thread_track": "SELECT id, name, utid FROM track WHERE kind = 'thread'",
    "process_track": "SELECT id, name, upid FROM track WHERE kind IN ('async', 'process')",
    "counter_track": "SELECT id, name FROM track WHERE kind = 'counter'",
    "process_counter_track": "SELECT id, name, upid FROM track WHERE kind = 'counter' AND upid IS NOT NULL",
    "thread_counter_track": "SELECT id, name, utid FROM track WHERE kind = 'counter' AND utid IS NOT NULL",
}

# Perfetto's function. A macro pastes its arguments, so no column of the view has the name of an argument or of a column of ours.
EXTRACT_ARG = (
    "CREATE VIEW arg_values AS SELECT arg_set_id AS value_set, key AS value_key, CASE WHEN real_value IS NOT NULL THEN real_value::VARIANT "
    "WHEN int_value IS NOT NULL THEN int_value::VARIANT ELSE string_value::VARIANT END AS arg_value FROM args",
    "CREATE MACRO extract_arg(wanted_set, wanted_key) AS "
    "(SELECT ANY_VALUE(arg_value) FROM arg_values WHERE value_set = wanted_set AND value_key = wanted_key)",
)

PACKAGES = {"duckdb": "duckdb", "datafusion": "datafusion", "spark": "pyspark"}


class Unusable(Exception):
    """Nothing can be run; its text says what was expected and found."""


class Refused(Exception):
    """The engine did not carry a statement out; its text is the engine's."""


def view_of(table, source, engine, shifts):
    """Returns the query of a table's view. Each host that wrote its own tables counts its times from the start of its own trace, and `shifts` brings them together."""
    names = engine.rows(f"SELECT * FROM {source} WHERE 1 = 0")[0]
    shown = [f"{engine.quote}{name}{engine.quote}" for name in names]
    if len(set(shifts.values())) > 1 and table != "clock":
        whens = " ".join(f"WHEN host = {literal(host)} THEN {ns}" for host, ns in shifts.items())
        is_time = lambda name: name == "ts" or name.endswith("_ns") and name != "clock_uncertainty_ns"
        shown = [f"{text} + CASE {whens} ELSE 0 END AS {text}" if is_time(name) else text for name, text in zip(names, shown)]
    if table == "args":  # the value as text, as Perfetto spells it; a double is spelled as the engine does
        value = f"COALESCE(string_value, CAST(int_value AS {engine.text_type}), CAST(real_value AS {engine.text_type}))"
        is_bool = "CASE WHEN value_type = 'bool' THEN CASE WHEN int_value = 0 THEN 'false' ELSE 'true' END ELSE"
        shown.append(f"{f'{is_bool} {value} END' if 'value_type' in names else value} AS display_value")
    return f"SELECT {', '.join(shown)} FROM {source}"


def partitions(folder, table):
    """The folders of hosts that have files of a table of this machine."""
    files = glob.glob(os.path.join(glob.escape(folder), table, "host=*", "*.parquet"))
    return {os.path.basename(os.path.dirname(file)) for file in files}


def host_of(partition):
    """The name of a host, by the name of its folder."""
    return urllib.parse.unquote(partition.partition("=")[2])


class Scratch:
    """A folder for what an engine spills. A link in it leads to the tables, so that no character of their path is one of a pattern."""

    def __init__(self, folder):
        self.path = tempfile.mkdtemp(prefix="sa-profile-sql-")
        atexit.register(shutil.rmtree, self.path, ignore_errors=True)
        self.tables = os.path.join(self.path, "tables")
        os.symlink(folder, self.tables)


class DuckDb:
    """DuckDB, in this process."""

    text_type = "VARCHAR"
    view, quote, functions = "CREATE VIEW", '"', EXTRACT_ARG

    def __init__(self, folder, _master):
        import duckdb

        self.scratch = Scratch(folder)
        # Nothing is fetched, and nothing is written beside the tables.
        spill = os.path.join(self.scratch.path, "spill")
        self.connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "temp_directory": spill})
        self.connection.execute("SET enable_progress_bar = false")  # it is drawn on stdout, pipe or not
        self.failure = duckdb.Error

    def source(self, table, whole):
        found = ["*"] if whole is None else sorted(whole)
        paths = (os.path.join(glob.escape(self.scratch.tables), table, one, "*.parquet") for one in found)
        listed = ", ".join(literal(path) for path in paths)
        return f"read_parquet([{listed}], hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"

    def run(self, statement):
        return self.connection.execute(statement)

    def rows(self, statement):
        found = self.run(statement)
        names = [column[0] for column in found.description or []]
        return names, iter(found.fetchone, None)


class DataFusion:
    """DataFusion, in this process."""

    text_type = "VARCHAR"
    view, quote, functions = "CREATE VIEW", '"', ()
    failure = Exception  # its errors have no class of their own

    def __init__(self, folder, _master):
        import datafusion
        import pyarrow

        self.scratch, self.text = Scratch(folder), pyarrow.string()
        self.context = datafusion.SessionContext()

    def source(self, table, whole):
        name, path = f"{table}_files", os.path.join(self.scratch.tables, table, "")
        self.context.register_parquet(name, path, table_partition_cols=[("host", self.text)])
        if whole is None:
            return name
        hosts = ", ".join(literal(host_of(one)) for one in sorted(whole))
        return f"(SELECT * FROM {name} WHERE host IN ({hosts}))"

    def run(self, statement):
        return self.context.sql(statement).collect()

    def rows(self, statement):
        found = self.context.sql(statement)
        names = [field.name for field in found.schema()]
        batches = (batch.to_pyarrow() for batch in found.execute_stream())
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns)))
        return names, rows


class Spark:
    """Spark: in this process, or the cluster of a master. Its workers read the tables by the same path."""

    text_type = "STRING"
    view, quote, functions = "CREATE TEMPORARY VIEW", "`", ()

    def __init__(self, folder, master):
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        self.folder, self.failure = folder, PySparkException
        master = master or "local[*]"
        builder = SparkSession.builder.master(master).appName("sa-profile sql")
        options = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}
        options["spark.sql.sources.partitionColumnTypeInference.enabled"] = "false"  # a host may be called 7
        if master.startswith("local") or "//127.0.0.1" in master:
            # One machine needs no address of its own, and no hundreds of parts.
            options |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
            options["spark.sql.shuffle.partitions"] = str(2 * (os.cpu_count() or 1))
        for name, value in options.items():
            builder = builder.config(name, value)
        try:
            self.session = builder.getOrCreate()
        except Exception as error:  # what it raises without Java differs by version
            raise Unusable(f"Spark: expected Java 17 or newer and a master at {master}, found: {first_line(error)}") from error

    def source(self, table, whole):
        path = os.path.join(self.folder, table)
        files = self.session.read.option("basePath", path).option("mergeSchema", "true").option("__globPaths__", "false").parquet(path)
        if whole is not None:
            files = files.filter(files.host.isin([host_of(one) for one in sorted(whole)]))
        files.createOrReplaceTempView(f"{table}_files")
        return f"{table}_files"

    def run(self, statement):
        return self.session.sql(statement).collect()

    def rows(self, statement):
        found = self.session.sql(statement)
        return found.columns, (tuple(row) for row in found.toLocalIterator())


ENGINES = {"duckdb": DuckDb, "datafusion": DataFusion, "spark": Spark}


def literal(text):
    """A text in a statement."""
    return "'" + text.replace("'", "''") + "'"


def first_line(error):
    """What an error says first."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def engine_name(wanted):
    """The engine that is wanted, else the first one that is installed."""
    installed = [name for name, package in PACKAGES.items() if importlib.util.find_spec(package)]
    if wanted is None and installed:
        return installed[0]
    if wanted in installed:
        return wanted
    expected = PACKAGES[wanted] if wanted else "duckdb, datafusion or pyspark"
    package = PACKAGES[wanted or "duckdb"]
    python = sys.executable or "python3"
    raise Unusable(f"expected {expected} in {python}, found none: {python} -m pip install {package}")


def create_views(engine, folder, text):
    """Makes the tables of a folder that a text may name known to an engine: those of hosts that have `metadata`. In Spark a view of many files takes seconds."""
    is_remote, shifts = "://" in folder, {}
    whole = whole_of_url(engine) if is_remote else partitions(folder, "metadata")
    is_named = lambda table: table in ("metadata", "clock") or "show" in text or "schema" in text or table.removesuffix("s") in text
    for table in filter(is_named, TABLES):
        there = whole if is_remote else partitions(folder, table)
        if not there & whole:
            engine.hint = ". An older version wrote these tables, and the run must be written again to have all of them"
            continue
        try:
            source = engine.source(table, None if there <= whole and not is_remote else there & whole)
        except engine.failure:
            if is_remote:
                continue
            raise
        if table == "metadata":
            refuse_newer(engine, source)
        if table == "clock":
            shifts = shifts_of(engine, source)
        engine.run(f"{engine.view} {table} AS {view_of(table, source, engine, shifts)}")
    for name, view in VIEWS.items():
        if name in text:
            engine.run(f"{engine.view} {name} AS {view}")
    try:
        for function in engine.functions if "extract_arg" in text else ():
            engine.run(function)
    except engine.failure:
        pass  # an older DuckDB has no VARIANT: the statement fails, and says so


def refuse_newer(engine, source):
    """Refuses tables that a later version wrote: their columns may mean something else."""
    _, rows = engine.rows(f"SELECT int_value FROM {source} WHERE name = 'schema_version'")
    newest = max((version for version, in rows if version is not None), default=SCHEMA_VERSION)
    if newest > SCHEMA_VERSION:
        raise Unusable(f"expected tables of schema version {SCHEMA_VERSION} or older, found {newest}: a newer sa-profile wrote them, and reads them")


def whole_of_url(engine):
    """The folders of hosts that have `metadata` in a place of which only the engine has a list."""
    _, rows = engine.rows(f"SELECT DISTINCT host FROM {engine.source('metadata', None)}")
    return {f"host={urllib.parse.quote(host, safe='')}" for host, in rows}


def shifts_of(engine, source):
    """Returns what to add to the times of each host: all count from the start of the earliest trace."""
    _, rows = engine.rows(f"SELECT host_id, host, base_unix_ns, offset_ns FROM {source}")
    hosts, clocks = {}, [tuple(row) for row in rows]
    for number, host, _, _ in clocks:
        if hosts.get(number, host) != host:
            raise Unusable(f"expected one host of each host_id, found {hosts[number]} and {host} with {number}: write one with another --host-id")
        hosts[number] = host
    bases = [base for _, _, base, _ in clocks if base is not None]
    return {host: (base - min(bases) if base is not None else 0) + (offset or 0) for _, host, base, offset in clocks}


def plain(value):
    """A value as JSON and CSV have it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, decimal.Decimal) and value.is_finite() and value == value.to_integral_value():
        return int(value)
    try:
        return float(value)  # a decimal
    except (TypeError, ValueError):
        return str(value)


def known(value):
    """A value as JSON can have it: none for what is no number, or has no end."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [known(one) for one in value]
    return {name: known(one) for name, one in value.items()} if isinstance(value, dict) else value


def visible(value):
    """A value for a terminal, which takes none of it for a command."""
    text = "" if value is None else str(plain(value))
    is_hidden = lambda one: unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp", "Cs")
    return "".join(f"<U+{ord(one):04X}>" if is_hidden(one) else one for one in text)


def print_table(names, rows, out):
    """Columns of one width; numbers stand to the right."""
    rows = [tuple(row) for row in rows]
    texts = [[visible(value) for value in row] for row in rows]
    names = [visible(name) for name in names]
    widths = [max(map(len, column)) for column in zip(names, *texts)]
    are_numbers = [
        any(value is not None for value in column) and all(value is None or not isinstance(plain(value), str) for value in column)
        for column in (zip(*rows) if rows else [()] * len(names))
    ]
    for line in [names, *texts]:
        cells = (text.rjust(width) if is_number else text.ljust(width) for text, width, is_number in zip(line, widths, are_numbers))
        out.write("  ".join(cells).rstrip() + "\n")


def cell(value):
    """Returns a value as a cell that no spreadsheet treats as a formula. Clients choose their request ids."""
    value = plain(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def print_csv(names, rows, out):
    """As RFC 4180 has it, with plain line ends."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([cell(name) for name in names])
    writer.writerows([cell(value) for value in row] for row in rows)


def print_json(names, rows, out):
    """One line: an array of objects."""
    out.write("[")
    for nth, row in enumerate(rows):
        out.write(",\n" if nth else "")
        json.dump({name: known(plain(value)) for name, value in zip(names, row)}, out, ensure_ascii=False, allow_nan=False)
    out.write("]\n")


PRINTERS = {"table": print_table, "csv": print_csv, "json": print_json}


def begun(arguments, text):
    """The name of the engine, and the engine with the tables that a text may name."""
    is_remote = "://" in arguments.tables
    folder = arguments.tables if is_remote else os.path.abspath(arguments.tables)
    if not is_remote and not partitions(folder, "metadata"):
        raise Unusable(f"{folder}: expected tables (<table>/host=<host>/*.parquet, with `metadata`), found none")
    name = engine_name(arguments.engine)
    if is_remote and name != "spark":
        raise Unusable(f"{folder}: expected a folder of this machine for {name}, found an URL")
    try:
        engine = ENGINES[name](folder, arguments.master)
    except Unusable:
        raise
    except Exception as error:  # a package may fail in any way as it is imported
        raise Unusable(f"expected {PACKAGES[name]} that works in {sys.executable or 'python3'}, found: {first_line(error)}") from error
    try:
        create_views(engine, folder, text.lower())
    except Unusable:
        raise
    except engine.failure as error:
        raise Unusable(f"{folder}: expected tables that {name} can read, found: {first_line(error)}") from error
    return name, engine


def answer(arguments, statements, out):
    """Runs statements and prints their rows."""
    name, engine = begun(arguments, " ".join(statements))
    for statement in statements:
        try:
            names, rows = engine.rows(statement)
        except engine.failure as error:
            raise Refused(f"{name}: {error}{getattr(engine, 'hint', '')}") from error
        PRINTERS[arguments.format](names, computed(rows, name, engine), out)


def computed(rows, name, engine):
    """Rows as they come. What fails as they are printed is none of the engine's."""
    try:
        yield from rows
    except engine.failure as error:
        raise Refused(f"{name}: {error}") from error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES)
    parser.add_argument("--master")
    parser.add_argument("--format", choices=PRINTERS, default="table")
    parser.add_argument("tables")
    arguments = parser.parse_args()
    statements = sys.stdin.buffer.read().decode().split("\0")
    out = open(sys.stdout.fileno(), "w", encoding="utf-8", errors="backslashreplace", newline="\n", closefd=False)
    try:
        answer(arguments, statements, out)
        out.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read has enough
    except KeyboardInterrupt:
        sys.exit(130)
    except (Unusable, Refused) as error:
        print(f"sa-profile: sql: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, Refused) else 2)


if __name__ == "__main__":
    main()
