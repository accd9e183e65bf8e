"""Runs statements over the tables of a run with an engine that this Python has: DuckDB, DataFusion or Spark. `sa-profile sql` carries this file.

Usage: engine.py [--engine duckdb|datafusion|spark] [--master URL] [--format table|csv|json] TABLES < STATEMENTS

TABLES has a folder for each table, and in it one for each host. A NUL stands between two statements.
Exit 0: done. 1: the engine refused a statement. 2: no engine, no tables.
"""

import sys

sys.path = [folder for folder in sys.path if folder]  # no module of the working directory is meant

import argparse
import atexit
import csv
import glob
import importlib.util
import json
import os
import shutil
import tempfile
import unicodedata

# What a table has where no file of it was written.
TABLES = {
    "slice": "id ts dur track_id category:text name:text depth:small parent_id arg_set_id thread_dur",
    "args": "arg_set_id flat_key:text key:text int_value string_value:text real_value:real",
    "counter": "id ts track_id value:real",
    "flow": "id slice_out slice_in",
    "track": "id name:text kind:text utid upid",
    "thread": "utid tid upid name:text is_main_thread",
    "process": "upid pid name:text host:text boot_id:text labels:text is_device",
    "clock": "host_id host:text boot_id:text base_unix_ns offset_ns uncertainty_ns",
    "loss": "cause:text events upid ts dur",
    "damage": "file:text offset kind:text count",
    "metadata": "name:text str_value:text int_value",
}

# The names of Perfetto's trace processor that are no tables of ours.
VIEWS = {
    "thread_track": "SELECT id, name, utid FROM track WHERE kind = 'thread'",
    "process_track": "SELECT id, name, upid FROM track WHERE kind IN ('async', 'process')",
    "counter_track": "SELECT id, name FROM track WHERE kind = 'counter'",
    "process_counter_track": "SELECT id, name, upid FROM track WHERE kind = 'counter' AND upid IS NOT NULL",
    "thread_counter_track": "SELECT id, name, utid FROM track WHERE kind = 'counter' AND utid IS NOT NULL",
}

# What tells the host of a row that has a time, and how many ids a host has.
OF_HOST = {"slice": ("id", 1 << 39), "counter": ("id", 1 << 39), "loss": ("upid", 1 << 16)}

PACKAGES = {"duckdb": "duckdb", "datafusion": "datafusion", "spark": "pyspark"}


class Unusable(Exception):
    """Nothing can be run; its text says what was expected and found."""


class Refused(Exception):
    """The engine did not carry a statement out; its text is the engine's."""


def view_of(table, source, engine, shifts):
    """What a table shows of its files. Hosts that wrote alone have times of their own, and `shifts` brings them together."""
    if table == "args":
        text = engine.types["text"]
        return f"SELECT *, COALESCE(string_value, CAST(int_value AS {text}), CAST(real_value AS {text})) AS display_value FROM {source}"
    if table == "track":  # in Perfetto the args of a track name the process of some
        return f"SELECT *, CAST(NULL AS BIGINT) AS source_arg_set_id FROM {source}"
    if table in OF_HOST and len(set(shifts.values())) > 1:
        key, ids = OF_HOST[table]
        names = [column.partition(":")[0] for column in TABLES[table].split()]
        shown = ", ".join("s.ts + h.ns AS ts" if name == "ts" else f"s.{name}" for name in names)
        hosts = " UNION ALL ".join(f"SELECT CAST({host * ids} AS BIGINT) AS first_id, CAST({ns} AS BIGINT) AS ns" for host, ns in shifts.items())
        return f"SELECT {shown} FROM {source} s LEFT JOIN ({hosts}) h ON h.first_id = s.{key} - s.{key} % {ids}"
    return f"SELECT * FROM {source}"


def no_rows(table, engine):
    """A source with the columns of a table, and no rows."""
    columns = [column.partition(":")[::2] for column in TABLES[table].split()]
    nulls = ", ".join(f"CAST(NULL AS {engine.types[kind]}) AS {engine.quote}{name}{engine.quote}" for name, kind in columns)
    return f"(SELECT {nulls} WHERE 1 = 0) AS nothing"


class DuckDb:
    """DuckDB, in this process."""

    types = {"": "BIGINT", "small": "INTEGER", "real": "DOUBLE", "text": "VARCHAR"}
    view, quote = "CREATE VIEW", '"'

    def __init__(self, folder, _master):
        import duckdb

        os.chdir(folder)  # so that no character of its path is one of a pattern
        # Nothing is fetched, and nothing is written beside the tables.
        scratch = tempfile.mkdtemp(prefix="sa-profile-duckdb-")
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        self.connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "temp_directory": scratch})
        self.failure = duckdb.Error

    def source(self, table):
        return f"read_parquet('{table}/*/*.parquet', hive_partitioning = false)"

    def run(self, statement):
        return self.connection.execute(statement)

    def rows(self, statement):
        found = self.run(statement)
        names = [column[0] for column in found.description or []]
        return names, iter(found.fetchone, None)


class DataFusion:
    """DataFusion, in this process."""

    types = {"": "BIGINT", "small": "INT", "real": "DOUBLE", "text": "VARCHAR"}
    view, quote = "CREATE VIEW", '"'
    failure = Exception  # its errors have no class of their own

    def __init__(self, folder, _master):
        import datafusion

        os.chdir(folder)
        self.context = datafusion.SessionContext()

    def source(self, table):
        self.context.register_parquet(f"{table}_files", f"{table}/")
        return f"{table}_files"

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

    types = {"": "BIGINT", "small": "INT", "real": "DOUBLE", "text": "STRING"}
    view, quote = "CREATE TEMPORARY VIEW", "`"

    def __init__(self, folder, master):
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        self.folder, self.failure = folder, PySparkException
        master = master or "local[*]"
        builder = SparkSession.builder.master(master).appName("sa-profile sql")
        options = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}
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

    def source(self, table):
        # The folders are no columns, and no character of the path is one of a pattern.
        reader = self.session.read.option("recursiveFileLookup", "true").option("__globPaths__", "false")
        reader.parquet(os.path.join(self.folder, table)).createOrReplaceTempView(f"{table}_files")
        return f"{table}_files"

    def run(self, statement):
        return self.session.sql(statement).collect()

    def rows(self, statement):
        found = self.session.sql(statement)
        return found.columns, (tuple(row) for row in found.toLocalIterator())


ENGINES = {"duckdb": DuckDb, "datafusion": DataFusion, "spark": Spark}


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


def create_views(engine, folder):
    """Makes the tables of a folder known to an engine."""
    shifts = {}
    for table in sorted(TABLES, key=lambda table: table != "clock"):
        is_remote = "://" in folder
        has_files = is_remote or glob.glob(os.path.join(glob.escape(folder), table, "*", "*.parquet"))
        try:
            source = engine.source(table) if has_files else no_rows(table, engine)
        except engine.failure:
            if not is_remote:
                raise
            source = no_rows(table, engine)
        engine.run(f"{engine.view} {table} AS {view_of(table, source, engine, shifts)}")
        if table == "clock":
            shifts = shifts_of(engine)
    for name, text in VIEWS.items():
        engine.run(f"{engine.view} {name} AS {text}")


def shifts_of(engine):
    """What to add to the times of each host: all count from the begin of the earliest trace."""
    _, rows = engine.rows("SELECT host_id, base_unix_ns, offset_ns FROM clock")
    clocks = [tuple(row) for row in rows]
    bases = [base for _, base, _ in clocks if base is not None]
    return {host: (base - min(bases) if base is not None else 0) + (offset or 0) for host, base, offset in clocks}


def plain(value):
    """A value as JSON and CSV have it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    try:
        number = float(value)  # a decimal
    except (TypeError, ValueError):
        return str(value)
    return int(value) if number.is_integer() else number


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


def print_csv(names, rows, out):
    """As RFC 4180 has it, with plain line ends."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([plain(value) for value in row] for row in rows)


def print_json(names, rows, out):
    """One line: an array of objects."""
    out.write("[")
    for nth, row in enumerate(rows):
        out.write(",\n" if nth else "")
        json.dump({name: plain(value) for name, value in zip(names, row)}, out, ensure_ascii=False)
    out.write("]\n")


PRINTERS = {"table": print_table, "csv": print_csv, "json": print_json}


def answer(arguments, statements, out):
    """Runs statements and prints their rows."""
    is_remote = "://" in arguments.tables
    folder = arguments.tables if is_remote else os.path.abspath(arguments.tables)
    if not is_remote and not glob.glob(os.path.join(glob.escape(folder), "*", "*", "*.parquet")):
        raise Unusable(f"{folder}: expected tables (<table>/<host>/*.parquet), found none")
    name = engine_name(arguments.engine)
    if is_remote and name != "spark":
        raise Unusable(f"{folder}: expected a folder of this machine for {name}, found an URL")
    engine = ENGINES[name](folder, arguments.master)
    create_views(engine, folder)
    for statement in statements:
        try:
            names, rows = engine.rows(statement)
            PRINTERS[arguments.format](names, rows, out)
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
        os._exit(0)  # whoever read has enough
    except KeyboardInterrupt:
        sys.exit(130)
    except (Unusable, Refused) as error:
        print(f"sa-profile: sql: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, Refused) else 2)


if __name__ == "__main__":
    main()
