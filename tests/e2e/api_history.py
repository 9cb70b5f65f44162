# SPDX-License-Identifier: Apache-2.0
"""A history that the tests of the API ask, as JSON, as rows and as CSV."""

import csv
import io

from harness import GEMV, GPU, SeededCase


ACCEPTED = "gemv/fp16/m8192-k8192"  # whose baseline was raised


def flat(row, prefix=""):
    """A row as CSV has it: objects taken apart, no arrays."""
    out = {}
    for name, value in row.items():
        if isinstance(value, dict):
            out.update(flat(value, f"{prefix}{name}_"))
        elif not isinstance(value, list):
            out[prefix + name] = value
    return out


class History(SeededCase):
    """60 runs, every second of the GPU."""

    runs = 60

    def get(self, path):
        return self.server.json("/api/v1/" + path)

    def rows(self, path):
        """The list as rows, of which its CSV says the same."""
        glue = "&" if "?" in path else "?"
        response = self.server.get(f"/api/v1/{path}{glue}format=csv")
        self.assertEqual(response.status, 200, response.bytes)
        self.assertEqual(response.getheader("Content-Type"),
                         "text/csv; charset=utf-8; header=present")
        text = response.bytes.decode()
        self.assertTrue(text.endswith("\r\n"))
        table = list(csv.DictReader(io.StringIO(text, newline="")))
        rows = self.get(f"{path}{glue}format=rows")
        self.assertEqual(len(table), len(rows))
        for line, row in zip(table, rows):
            self.assert_line(line, flat(row))
        return rows

    def assert_line(self, line, row):
        self.assertEqual(list(line), list(row))
        for name, value in row.items():
            if value is None or isinstance(value, bool):
                self.assertEqual(line[name], {None: "", True: "true", False: "false"}[value])
            elif isinstance(value, str):
                formula = value[:1] in ("=", "+", "-", "@", "\t", "\r")
                self.assertEqual(line[name], ("'" if formula else "") + value)
            else:
                self.assertAlmostEqual(float(line[name]), value, delta=abs(value) * 1e-8)

    def pages(self, path, name, limit):
        """All rows of a list, page by page."""
        seen, after = [], ""
        while True:
            glue = "&" if "?" in path else "?"
            page = self.get(f"{path}{glue}limit={limit}{after}")
            self.assertLessEqual(len(page[name]), limit)
            seen += page[name]
            if page["next"] is None:
                return seen
            self.assertEqual(len(page[name]), limit)
            after = f"&after={page['next']}"

    def trend(self, case=GEMV, device=GPU, **parameters):
        return self.get(f"trends?case={case}&device={device}" +
                        "".join(f"&{k}={v}" for k, v in parameters.items()))

    def ours(self, trend):
        return next(s for s in trend["series"] if s["role"] == "candidate")["columns"]
