"""`python -m drift_agents` is the command `drift-agents`."""

import sys

from drift_agents.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
