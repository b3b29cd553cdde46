"""Agents in a process of their own, over a pipe: what board entries are played with.

* `sandbox` - the program that takes rights away from itself and then becomes the agent's program; stands alone
* `process` - starts it, and exchanges lines with it in bounded time
* `player` - plays the episodes of a cell with it: checks every message, charges probes, counts what can be counted
* `worker` - the far side for agents made of this package's parts and of plug-ins

`docs/joining.md` documents the protocol, and what is not defended.
"""
