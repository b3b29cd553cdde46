"""Runs that others can check and repeat: submissions, tracks and the board that is made of them.

* `bundle` - the files of a submission, as a folder or a zip file
* `prepare`, `validate`, `replay` - make a submission, check it without playing, play a sample of it again
* `track` - the same instances for all agents, open or derived from a secret salt
* `results`, `board` - results as small files, and the page with the standings of all
"""
