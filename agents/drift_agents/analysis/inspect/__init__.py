"""A page to step through the episodes of a run.

* `page` - one self-contained HTML file, and its data
* `serve` - the same page from a local server, for runs whose file would be too large
"""
