"""Checks the arrows that the viewer shows between the spans of each request."""

import json
import subprocess

from trace import TPQ

LINKED = """select so.name, si.name, count(*) from flow join slice so on so.id = flow.slice_out join slice si
on si.id = flow.slice_in group by 1, 2"""


def check_links(report, path, links, requests):
    """Checks that there are `requests` arrows from the first to the second span of each link."""
    done = subprocess.run([TPQ, str(path), LINKED], capture_output=True, text=True)
    if done.returncode == 3:
        report.skip("links", done.stderr.strip())
        return
    counts = {(out, into): count for out, into, count in json.loads(done.stdout)}
    for out, into in links:
        found = counts.get((out, into), 0)
        report.check(f"linked_{out}_to_{into}", found == requests, f"{found} of {requests}")
