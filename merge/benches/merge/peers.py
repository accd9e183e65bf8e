"""What else joins fragments into one trace: python peers.py json|orjson OUT FRAGMENT...; documents DIRECTORY FRAGMENT...

json and orjson are the merge as one writes it in an afternoon: each line is read into a dict, a torn one left out, times are made relative to
the first, and all is written as one document. documents makes one trace of each fragment, which is what `viztracer --combine` takes.
"""

import sys
from pathlib import Path


def events(path, loads):
    """The events of a fragment; what is no JSON is left out."""
    with path.open("rb") as lines:
        for line in lines:
            if line.isspace():
                continue
            try:
                yield loads(line)
            except ValueError:
                pass


def merged(paths, loads):
    """All events, with times from the first one on."""
    found = [event for path in paths for event in events(path, loads)]
    base = min(event["ts"] for event in found if "ts" in event)
    for event in found:
        if "ts" in event:
            event["ts"] -= base
    return {"traceEvents": found}


def with_json(output, paths):
    import json

    with output.open("w") as out:
        json.dump(merged(paths, json.loads), out, separators=(",", ":"))


def with_orjson(output, paths):
    import orjson

    output.write_bytes(orjson.dumps(merged(paths, orjson.loads)))


def documents(directory, paths):
    import json

    for path in paths:
        with (directory / f"{path.stem}.json").open("w") as out:
            json.dump({"traceEvents": list(events(path, json.loads))}, out)


if __name__ == "__main__":
    way, target, *fragments = sys.argv[1:]
    ways = {"json": with_json, "orjson": with_orjson, "documents": documents}
    ways[way](Path(target), [Path(fragment) for fragment in fragments])
