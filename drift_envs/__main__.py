"""`python -m drift_envs`: the command `drift-envs`."""

import sys

from drift_envs.cli import main

if __name__ == "__main__":
    sys.exit(main())
