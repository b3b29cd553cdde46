"""A page to step through the episodes of a run.

* `gather` - what the page shows: an index of all episodes, and the files with their steps
* `page` - one self-contained HTML file
* `serve` - the same page from this machine, for runs whose file would be too large
"""
