"""Every benchmark, one after the other: `python -m benchmarks`, or `python -m benchmarks.NAME` for one.

Each prints ratios measured in one run, since absolute times depend on the machine and on what else it does.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run them all; the exit status is 1 when one of them failed."""
    here = Path(__file__).resolve().parent
    failed = []
    for path in sorted(here.glob("[a-z]*.py")):
        print(f"\n== {path.stem}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{path.stem}"], cwd=here.parent, check=False).returncode:
            failed.append(path.stem)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
