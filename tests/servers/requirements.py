"""Prints the requirements of a wheel that a server on the CPU needs, changed so that the Python registry has them.

    python requirements.py WHEEL [NAME...]

Leaves out extras and the packages with these names. A pin to a build that only another index has, such as `torch==2.9.1+cpu`, becomes a pin to the registry's plain
build of the same version, which works without a GPU as well.
"""

import email
import re
import sys
import zipfile

LOCAL = re.compile(r"\+\w+.*")
NAME = re.compile(r"[\w.-]+")


def main(wheel, *left_out):
    """Prints the requirements, one per line."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        listed = email.message_from_bytes(archive.read(metadata)).get_all("Requires-Dist", ())
    has_local_build = {name_of(one) for one in listed if LOCAL.search(one)}
    for one in listed:
        if "extra ==" in one or name_of(one) in left_out:
            continue
        if name_of(one) not in has_local_build or LOCAL.search(one):
            print(LOCAL.sub("", one))


def name_of(requirement):
    """Returns the normalised name of the required package."""
    return NAME.match(requirement)[0].lower().replace("_", "-")


if __name__ == "__main__":
    main(*sys.argv[1:])
