"""`python -m drift_agents` is the command `drift-agents`."""

import sys

from drift_agents.cli import main

if __name__ == "__main__":
    sys.exit(main())
