"""The claims of `docs/claims.md`, each decided by a function from the lines of finished runs.

* `registry` - which function decides which claim
* `evidence` - figures beside their bounds
* `paper_tables`, `noise`, `detection`, `policies`, `adaptation` - the functions, by experiment
* `decisions` - held, refuted, inconclusive or not played
* `page` - all of it as Markdown

The files in `parts/` have what the claims compare of an experiment and no more, under its name.
"""
