"""Runs that others can check and repeat: submissions, tracks and the board that is made of them.

* `bundle` - the files of a submission, as a folder or a zip file
* `prepare`, `validate`, `replay` - make a submission, check it without playing, play a sample of it again
* `run_statement`, `cell_lines`, `line_values` - the checks of `run.json` and of the lines; `checked`, what they find
* `track` - the same instances for all agents, open or derived from a secret salt
* `results`, `board`, `board_pages` - results as small files, the standings of all, and the pages that show them
"""
