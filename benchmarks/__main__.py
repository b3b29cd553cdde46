"""All benchmarks, one after the other: `python -m benchmarks`, or those that are named: `python -m benchmarks NAME`.

`python -m benchmarks.NAME --help` shows the options of one.

Each prints ratios measured in one run, since absolute times depend on the machine and on what else it does.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run them; the exit status is 1 when one of them failed, 2 when there is no such benchmark."""
    here = Path(__file__).resolve().parent
    known = {path.stem: path for path in sorted(here.glob("[a-z]*.py"))}
    unknown = [name for name in sys.argv[1:] if name not in known]
    if unknown:
        print(f"there is no benchmark {', '.join(unknown)}, only {', '.join(known)}", file=sys.stderr)
        return 2
    failed = []
    for path in [known[name] for name in sys.argv[1:] or known]:
        print(f"\n== {path.stem}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{path.stem}"], cwd=here.parent, check=False).returncode:
            failed.append(path.stem)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
