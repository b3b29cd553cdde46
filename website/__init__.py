"""What `make docs` adds to the pages of `docs/`; not installed, and imported by no package.

* `hooks` - the pages from the root of the repository, links to files that are no pages, pages without a place
* `environments`, `schedules` - a page for each environment, and all shipped schedules by kind
* `pictures`, `shipped` - programs that write the pictures of environments and the table of schedules
"""
