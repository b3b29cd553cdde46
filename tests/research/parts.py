"""How experiments name the policies of `research/experiments/readers.py`."""

from drift_agents.registry.part_file import PartFile

from research.experiments import readers

READER = PartFile(readers.__file__, "MessageReader").pin().text
