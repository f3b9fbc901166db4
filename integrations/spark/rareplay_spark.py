"""rareplay on a Spark cluster: replays a list of captures and rolls up what they give.

Spark ships the program, splits the list and tries again what a lost machine had begun. Everything else
is the program's: each result is a file that it writes in one step under a name that follows from what
was asked, so that a task that runs twice, or on two machines at once, leaves what one run leaves.
"""

import argparse
import csv
import json
import os
import re
import stat
import subprocess
import sys
from collections import namedtuple

from pyspark import SparkFiles
from pyspark.sql import SparkSession

# Exit codes of a run that got to its end: all is well, a capture lost events, is bad, met a bug.
FINISHED = (0, 14, 65, 70)

SUMMARY = re.compile(
    r"rareplay: \d+ sources? listed: (\d+) replayed, (\d+) there before, (\d+) without figures$"
)

Done = namedtuple("Done", "code replayed before failed messages")


def read_list(path):
    """The entries of a list, as lines of JSON."""
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    if text.lstrip().startswith("{"):
        return [line for line in text.splitlines() if line.strip()]
    delimiter = "\t" if "\t" in text.split("\n", 1)[0] else ","
    rows = csv.DictReader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    entries = []
    for row in rows:
        if None in row or None in row.values():
            sys.exit(f"{path}:{rows.line_num}: expected {len(rows.fieldnames)} values")
        cells = {name.strip(): value.strip() for name, value in row.items()}
        entries.append(json.dumps({name: value for name, value in cells.items() if value}))
    return entries


def replay_part(entries, program, arguments, folder, threads):
    """Runs the program over some entries. A run that does not get to its end is an error, which Spark
    takes as a reason to try again."""
    path = SparkFiles.get(program)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    run = subprocess.run(
        [path, "replay", "--from-list", "-", *arguments],
        input="\n".join(entries) + "\n",
        # Relative paths begin where the list is, if that is a folder here too.
        cwd=folder if os.path.isdir(folder) else None,
        env={**os.environ, "RAYON_NUM_THREADS": threads},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    *messages, last = run.stderr.splitlines() or [""]
    summary = SUMMARY.match(last)
    if run.returncode not in FINISHED or summary is None:
        raise RuntimeError(f"rareplay ended with {run.returncode}: {run.stderr}")
    return Done(run.returncode, *map(int, summary.groups()), messages)


def replay(spark, options):
    """Replays a list into a folder of results; returns the exit code of a run on one machine."""
    context = spark.sparkContext
    context.addFile(options.program)
    program = os.path.basename(options.program)
    threads = context.getConf().get("spark.task.cpus", "1")
    folder = os.path.dirname(os.path.abspath(options.list))
    output = options.output if "://" in options.output else os.path.abspath(options.output)
    arguments = [argument for policy in options.policy for argument in ("--policy", policy)]
    arguments += ["-o", output, *options.arguments]
    entries = read_list(options.list)
    if not entries:
        sys.exit(f"{options.list} lists no source")
    parts = [entries[at : at + options.per_task] for at in range(0, len(entries), options.per_task)]
    done = (
        context.parallelize(parts, len(parts))
        .map(lambda part: replay_part(part, program, arguments, folder, threads))
        .collect()
    )
    for message in sorted(message for part in done for message in part.messages):
        print(message, file=sys.stderr)
    replayed, before, failed = (
        sum(getattr(part, name) for part in done) for name in ("replayed", "before", "failed")
    )
    print(
        f"rareplay: {len(entries)} sources listed: {replayed} replayed, {before} there before, "
        f"{failed} without figures",
        file=sys.stderr,
    )
    return max(part.code for part in done)


# What is added up, and how it is called then.
SUMS = {
    "source_bytes": "source_bytes",
    "accesses": "accesses",
    "folios": "folios",
    "device_reads": "device_reads",
    "device_read_bytes": "device_read_bytes",
    "pages_inserted": "pages_inserted",
    "pages_unused": "pages_unused",
    "elapsed_ns": "elapsed_ns",
}

ROLLUP = """
WITH labelled AS (
    SELECT *, coalesce({by}, '(none)') AS label FROM results
), totals AS (
    SELECT policy, label, count_if(error IS NULL) AS sources, count_if(error IS NOT NULL) AS failed,
           count_if(verify_exact) AS exact, {sums}, max(read_wait_ns_max) AS read_wait_ns_max
    FROM labelled GROUP BY policy, label
), by_order AS (
    SELECT policy, label, folio_order, sum(inserted) AS inserted
    FROM labelled LATERAL VIEW posexplode(folios_by_order) each AS folio_order, inserted
    GROUP BY policy, label, folio_order
), orders AS (
    SELECT policy, label,
           transform(array_sort(collect_list(struct(folio_order, inserted))), pair -> pair.inserted)
               AS folios_by_order
    FROM by_order GROUP BY policy, label
), waits AS (
    SELECT policy, label, pair.read_wait_ns AS wait_ns, sum(pair.read_wait_counts) AS reads
    FROM labelled LATERAL VIEW explode(arrays_zip(read_wait_ns, read_wait_counts)) each AS pair
    GROUP BY policy, label, wait_ns
), below AS (
    SELECT policy, label, wait_ns,
           sum(reads) OVER (PARTITION BY policy, label ORDER BY wait_ns) AS reads,
           sum(reads) OVER (PARTITION BY policy, label) AS total
    FROM waits
), percentiles AS (
    SELECT policy, label,
           min(CASE WHEN reads * 100 >= total * 50 THEN wait_ns END) AS read_wait_ns_p50,
           min(CASE WHEN reads * 100 >= total * 99 THEN wait_ns END) AS read_wait_ns_p99
    FROM below GROUP BY policy, label
)
SELECT policy, label AS {by}, sources, failed, exact, {names}, folios_by_order,
       read_wait_ns_p50, read_wait_ns_p99, read_wait_ns_max
FROM totals LEFT JOIN orders USING (policy, label) LEFT JOIN percentiles USING (policy, label)
ORDER BY policy, label
"""


def rollup(spark, options):
    """Adds up results by host, kernel or workload: a data set, or lines of JSON."""
    spark.read.parquet(options.results).createOrReplaceTempView("results")
    sums = ", ".join(f"sum({column}) AS {name}" for column, name in SUMS.items())
    rolled = spark.sql(ROLLUP.format(by=options.by, sums=sums, names=", ".join(SUMS.values())))
    if options.output:
        rolled.coalesce(1).write.mode("overwrite").parquet(options.output)
    else:
        for row in rolled.collect():
            print(json.dumps(row.asDict()))
    return 0


def arguments():
    parser = argparse.ArgumentParser(prog="rareplay_spark", description=__doc__.splitlines()[0])
    tasks = parser.add_subparsers(dest="task", required=True)
    task = tasks.add_parser("replay", help="replay a list into a folder of results")
    task.add_argument("--program", required=True, help="rareplay, built for the executors")
    task.add_argument("--list", required=True, help="the list, where the driver runs")
    task.add_argument("--policy", required=True, action="append", help="may be repeated")
    task.add_argument(
        "--output", required=True, help="folder that all executors see, or URL of an object store"
    )
    task.add_argument("--per-task", type=int, default=8, help="entries of a task")
    task.add_argument("arguments", nargs="*", help="after --: further options of rareplay replay")
    task.set_defaults(run=replay)
    task = tasks.add_parser("rollup", help="add up results")
    task.add_argument("--results", required=True, help="folder or URL, as Spark reads it")
    task.add_argument("--by", choices=("host", "kernel", "workload"), default="host")
    task.add_argument("--output", help="data set to write; lines of JSON if missing")
    task.set_defaults(run=rollup)
    return parser.parse_args()


def main():
    options = arguments()
    spark = SparkSession.builder.appName(f"rareplay {options.task}").getOrCreate()
    try:
        code = options.run(spark, options)
    finally:
        spark.stop()
    sys.exit(code)


if __name__ == "__main__":
    main()
