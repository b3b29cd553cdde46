"""Six coding agents in a repository that changes: what a memory is worth, by what is done with a refusal.

* `play` - the episodes; their lines stand in `research/results/coders`, a file a condition
* `page` - the tables and the picture of docs/research/coders.md, and the row of the map
"""
