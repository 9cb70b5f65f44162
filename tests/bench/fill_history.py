# SPDX-License-Identifier: Apache-2.0
"""fill_history.py BUILD DATABASE RUNS CASES [BRANCHES]: a long history, for measuring.

The first two runs are of seed_store; the others are copies of them with times, commits and figures
of their own. Every second run is of main, the others are of BRANCHES merge requests in turn. A case
of a GPU has three results, so 12,000 runs of 54 cases are two million.
"""
import os
import sqlite3
import subprocess
import sys



def columns_of(db, table, values):
    """The columns of a table in their order, some of them with another value."""
    names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    return ", ".join(values.get(name, f"o.{name}") for name in names)


def fill(build, path, runs, cases, branches=1000):
    """Makes the database; the documents of all runs are that of the first."""
    subprocess.run([os.path.join(build, "tests/tools/seed_store"), path, "2", str(cases), "1"],
                   check=True, stdout=subprocess.DEVNULL)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1"
               " FROM n WHERE i < ?) SELECT i, 1600000000000 + i * 7200000 AS ms,"
               " iif(i % 2, 'main', 'merge-' || (i / 2 % ?)) AS branch,"
               " 0.97 + 0.06 * (i * 7919 % 1000) / 1000.0 AS factor FROM n", (runs, branches))
    db.execute("INSERT INTO revision (id, commit_id, parent, merge_base, first_ms, place_ms)"
               " SELECT i + 10, printf('%040x', i), printf('%040x', i - 1), '', ms, ms FROM n")
    run = columns_of(db, "run", {
        "id": "n.i", "uuid": "printf('%08x-0000-4000-8000-%012x', n.i, n.i)", "time_ms": "n.ms",
        "place_ms": "n.ms", "revision_id": "n.i + 10", "branch": "n.branch", "calibration": "NULL"})
    db.execute(f"INSERT INTO run SELECT {run} FROM n JOIN run o ON o.id = 1")
    document = columns_of(db, "document", {"run_id": "n.i", "packed": "zeroblob(10)"})
    db.execute(f"INSERT INTO document SELECT {document} FROM n JOIN document o ON o.run_id = 1")
    result = columns_of(db, "result", {
        "time_ms": "n.ms", "place_ms": "n.ms", "run_id": "n.i", "branch": "n.branch",
        "baseline_change": "NULL", "baseline_from_ns": "NULL", "p50_ns": "o.p50_ns * n.factor",
        "p50_lo_ns": "o.p50_lo_ns * n.factor", "p50_hi_ns": "o.p50_hi_ns * n.factor"})
    db.execute(f"INSERT INTO result SELECT {result} FROM result o JOIN n WHERE o.run_id = 1"
               " ORDER BY o.track_id, n.ms, o.arm")
    db.execute("UPDATE track SET n_runs = (SELECT count(*) FROM result e"
               " WHERE e.track_id = track.id AND e.arm = 0)")
    db.execute("UPDATE meta SET value = (SELECT max(id) FROM run) WHERE key = 'watch_run'")
    db.execute("UPDATE meta SET value = 9223372036854775807 WHERE key = 'watch_track'")
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return db.execute("SELECT count(*) FROM result").fetchone()[0]


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    print(fill(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])), "results")
