"""What `make docs` adds to the pages of `docs/`; not installed, and imported by no package.

* `hooks` - the pages from the root of the repository, links to files that are no pages, pages without a place
* `gallery` - pictures of every environment and every schedule
"""
