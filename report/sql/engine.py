"""Runs statements over the tables of a run, with a database engine that this Python has: DuckDB, DataFusion or Spark. `sa-profile sql` contains this file.

Usage: engine.py [--engine duckdb|datafusion|spark] [--master URL] [--format table|csv|json] TABLES < STATEMENTS
TABLES contains a folder for each table, and in it a folder for each host (`host=<host>`). A host is used if it has `metadata`, which is written last. A NUL separates statements.
Exit 0: done. 1: the engine refused a statement. 2: no engine, no tables."""

import sys

sys.path = [folder for folder in sys.path if folder]  # never import modules from the working directory

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

# The tables. Tables that others need come first.
TABLES = ["metadata", "clock", "process", "thread", "track", "slice", "args", "counter", "flow", "request", "step", "device", "idle", "name", "loss", "damage"]

# The newest schema version that can be read. Version 1 had no tables of the report.
SCHEMA_VERSION = 2

# Views with the names of tables in Perfetto's trace processor that we do not have.
VIEWS = {
    "thread_track": "SELECT id, name, utid FROM track WHERE kind = 'thread'",
    "process_track": "SELECT id, name, upid FROM track WHERE kind IN ('async', 'process')",
    "counter_track": "SELECT id, name FROM track WHERE kind = 'counter'",
    "process_counter_track": "SELECT id, name, upid FROM track WHERE kind = 'counter' AND upid IS NOT NULL",
    "thread_counter_track": "SELECT id, name, utid FROM track WHERE kind = 'counter' AND utid IS NOT NULL",
}

# Perfetto's function `extract_arg`. A macro pastes its arguments, so the columns of the view must not have the names of its arguments or of our columns.
EXTRACT_ARG = (
    "CREATE VIEW arg_values AS SELECT arg_set_id AS value_set, key AS value_key, CASE WHEN real_value IS NOT NULL THEN real_value::VARIANT "
    "WHEN int_value IS NOT NULL THEN int_value::VARIANT ELSE string_value::VARIANT END AS arg_value FROM args",
    "CREATE MACRO extract_arg(wanted_set, wanted_key) AS "
    "(SELECT ANY_VALUE(arg_value) FROM arg_values WHERE value_set = wanted_set AND value_key = wanted_key)",
)

PACKAGES = {"duckdb": "duckdb", "datafusion": "datafusion", "spark": "pyspark"}


class Unusable(Exception):
    """No statement can be run. The text says what was expected and found."""


class Refused(Exception):
    """The engine refused a statement. The text is the engine's."""


def view_query(table, source, engine, shifts):
    """Returns the query of a table's view. The times of each host count from the start of its own trace, and `shifts` aligns them."""
    names = engine.rows(f"SELECT * FROM {source} WHERE 1 = 0")[0]
    shown = [f"{engine.quote}{name}{engine.quote}" for name in names]
    if len(set(shifts.values())) > 1 and table != "clock":
        whens = " ".join(f"WHEN host = {literal(host)} THEN {ns}" for host, ns in shifts.items())
        is_time = lambda name: name == "ts" or name.endswith("_ns") and name != "clock_uncertainty_ns"
        shown = [f"{text} + CASE {whens} ELSE 0 END AS {text}" if is_time(name) else text for name, text in zip(names, shown)]
    if table == "args":  # the value as text, as Perfetto formats it, except that floating-point numbers are formatted by the engine
        value = f"COALESCE(string_value, CAST(int_value AS {engine.text_type}), CAST(real_value AS {engine.text_type}))"
        is_bool = "CASE WHEN value_type = 'bool' THEN CASE WHEN int_value = 0 THEN 'false' ELSE 'true' END ELSE"
        shown.append(f"{f'{is_bool} {value} END' if 'value_type' in names else value} AS display_value")
    return f"SELECT {', '.join(shown)} FROM {source}"


def partitions(folder, table):
    """Returns the names of the host folders that contain files of a table on this machine."""
    files = glob.glob(os.path.join(glob.escape(folder), table, "host=*", "*.parquet"))
    return {os.path.basename(os.path.dirname(file)) for file in files}


def host_name(partition):
    """Returns the name of a host from the name of its folder."""
    return urllib.parse.unquote(partition.partition("=")[2])


class Scratch:
    """A folder for temporary files of an engine. It contains a link to the tables, so that no character of their path is read as part of a pattern."""

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
        # No extension is downloaded, and no file is written next to the tables.
        spill = os.path.join(self.scratch.path, "spill")
        self.connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "temp_directory": spill})
        self.connection.execute("SET enable_progress_bar = false")  # it would be drawn on stdout, even in a pipe
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
    failure = Exception  # its errors do not have a class of their own

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
        hosts = ", ".join(literal(host_name(one)) for one in sorted(whole))
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
    """Spark, in this process or on the cluster of a master, whose workers must be able to read the tables at the same path."""

    text_type = "STRING"
    view, quote, functions = "CREATE TEMPORARY VIEW", "`", ()

    def __init__(self, folder, master):
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        self.folder, self.failure = folder, PySparkException
        master = master or "local[*]"
        builder = SparkSession.builder.master(master).appName("sa-profile sql")
        options = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}
        options["spark.sql.sources.partitionColumnTypeInference.enabled"] = "false"  # the name of a host may be a number, such as 7
        if master.startswith("local") or "//127.0.0.1" in master:
            # A single machine needs neither an external address nor hundreds of partitions.
            options |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
            options["spark.sql.shuffle.partitions"] = str(2 * (os.cpu_count() or 1))
        for name, value in options.items():
            builder = builder.config(name, value)
        try:
            self.session = builder.getOrCreate()
        except Exception as error:  # without Java, the type of the error depends on the version
            raise Unusable(f"Spark: expected Java 17 or newer and a master at {master}, found: {first_line(error)}") from error

    def source(self, table, whole):
        path = os.path.join(self.folder, table)
        files = self.session.read.option("basePath", path).option("mergeSchema", "true").option("__globPaths__", "false").parquet(path)
        if whole is not None:
            files = files.filter(files.host.isin([host_name(one) for one in sorted(whole)]))
        files.createOrReplaceTempView(f"{table}_files")
        return f"{table}_files"

    def run(self, statement):
        return self.session.sql(statement).collect()

    def rows(self, statement):
        found = self.session.sql(statement)
        return found.columns, (tuple(row) for row in found.toLocalIterator())


ENGINES = {"duckdb": DuckDb, "datafusion": DataFusion, "spark": Spark}


def literal(text):
    """Returns a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def first_line(error):
    """Returns the first line of an error's text."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def engine_name(wanted):
    """Returns the wanted engine, or else the first one that is installed."""
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
    """Creates views of the tables in a folder that the text may name, for hosts that have `metadata`. Other tables are left out because in Spark a view of many files takes seconds."""
    is_remote, shifts = "://" in folder, {}
    whole = remote_partitions(engine) if is_remote else partitions(folder, "metadata")
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
            shifts = host_shifts(engine, source)
        engine.run(f"{engine.view} {table} AS {view_query(table, source, engine, shifts)}")
    for name, view in VIEWS.items():
        if name in text:
            engine.run(f"{engine.view} {name} AS {view}")
    try:
        for function in engine.functions if "extract_arg" in text else ():
            engine.run(function)
    except engine.failure:
        pass  # older versions of DuckDB do not have VARIANT; the statement then fails with a message


def refuse_newer(engine, source):
    """Refuses tables that a later version wrote, because their columns may have another meaning."""
    _, rows = engine.rows(f"SELECT int_value FROM {source} WHERE name = 'schema_version'")
    newest = max((version for version, in rows if version is not None), default=SCHEMA_VERSION)
    if newest > SCHEMA_VERSION:
        raise Unusable(f"expected tables of schema version {SCHEMA_VERSION} or older, found {newest}: a newer sa-profile wrote them, and reads them")


def remote_partitions(engine):
    """Returns the host folders that have `metadata`, for a URL that only the engine can list."""
    _, rows = engine.rows(f"SELECT DISTINCT host FROM {engine.source('metadata', None)}")
    return {f"host={urllib.parse.quote(host, safe='')}" for host, in rows}


def host_shifts(engine, source):
    """Returns the offset to add to the times of each host, so that all count from the start of the earliest trace."""
    _, rows = engine.rows(f"SELECT host_id, host, base_unix_ns, offset_ns FROM {source}")
    hosts, clocks = {}, [tuple(row) for row in rows]
    for number, host, _, _ in clocks:
        if hosts.get(number, host) != host:
            raise Unusable(f"expected one host of each host_id, found {hosts[number]} and {host} with {number}: write one with another --host-id")
        hosts[number] = host
    bases = [base for _, _, base, _ in clocks if base is not None]
    return {host: (base - min(bases) if base is not None else 0) + (offset or 0) for _, host, base, offset in clocks}


def plain(value):
    """Returns a value as it is written to JSON and CSV."""
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


def json_value(value):
    """Returns a value that JSON can represent. NaN and infinities become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [json_value(one) for one in value]
    return {name: json_value(one) for name, one in value.items()} if isinstance(value, dict) else value


def visible(value):
    """Returns a value as text that cannot control a terminal."""
    text = "" if value is None else str(plain(value))
    is_hidden = lambda one: unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp", "Cs")
    return "".join(f"<U+{ord(one):04X}>" if is_hidden(one) else one for one in text)


def print_table(names, rows, out):
    """Prints rows with aligned columns, numbers to the right."""
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
    """Prints rows as in RFC 4180, but with plain line feeds."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([cell(name) for name in names])
    writer.writerows([cell(value) for value in row] for row in rows)


def print_json(names, rows, out):
    """Prints rows as a JSON array of objects."""
    out.write("[")
    for nth, row in enumerate(rows):
        out.write(",\n" if nth else "")
        json.dump({name: json_value(plain(value)) for name, value in zip(names, row)}, out, ensure_ascii=False, allow_nan=False)
    out.write("]\n")


PRINTERS = {"table": print_table, "csv": print_csv, "json": print_json}


def open_engine(arguments, text):
    """Returns the name of the engine, and the engine with views of the tables that the text may name."""
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
    except Exception as error:  # importing a package may fail in any way
        raise Unusable(f"expected {PACKAGES[name]} that works in {sys.executable or 'python3'}, found: {first_line(error)}") from error
    try:
        create_views(engine, folder, text.lower())
    except Unusable:
        raise
    except engine.failure as error:
        raise Unusable(f"{folder}: expected tables that {name} can read, found: {first_line(error)}") from error
    return name, engine


def print_answers(arguments, statements, out):
    """Runs statements and prints their rows."""
    name, engine = open_engine(arguments, " ".join(statements))
    for statement in statements:
        try:
            names, rows = engine.rows(statement)
        except engine.failure as error:
            raise Refused(f"{name}: {error}{getattr(engine, 'hint', '')}") from error
        PRINTERS[arguments.format](names, checked_rows(rows, name, engine), out)


def checked_rows(rows, name, engine):
    """Yields rows, and converts errors of the engine. Errors while rows are printed are not converted."""
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
        print_answers(arguments, statements, out)
        out.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has closed the pipe
    except KeyboardInterrupt:
        sys.exit(130)
    except (Unusable, Refused) as error:
        print(f"sa-profile: sql: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, Refused) else 2)


if __name__ == "__main__":
    main()
