"""Memory first, never checked: what was noted once counts, and a refused change is submitted as it is."""

from workfolder import keep, look, play, remember


def begin():
    """The notes in memory; in the first issue those from the files."""
    notes = remember() or look()
    keep(notes)
    return notes


def refused(notes, log, refusals):
    """Nothing new."""


if __name__ == "__main__":
    play(begin, refused)
