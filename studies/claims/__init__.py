"""The claims of `docs/claims.md`, each decided by a function from the lines of finished runs.

* `registry` - which function decides which claim
* `evidence` - figures beside their bounds
* `tables`, `noise`, `slippery`, `policies`, `course` - the functions, by experiment
* `verdicts` - what came of the claims
* `page` - all of it as Markdown
"""
