"""Reference coding agents: programs that work in a folder as any coding agent does, without a model.

* `look` - no memory: looks at the files each time
* `trust` - memory first, never checked
* `newest` - a refusal rewrites memory: what it suggests is believed from then on
* `verify` - a refusal sends it back to the files, and memory is corrected
* `rerun` - a refused change is submitted once more as it is before memory changes
* `cite` - memory holds path and hash of what a note was read from, and is read again where the hash differs
"""
