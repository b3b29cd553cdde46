"""A refusal sends it back to the files: memory is corrected from them, and only what they leave open is tried."""

from workfolder import adapt, keep, look, play, remember


def begin():
    """The notes in memory; in the first issue those from the files."""
    notes = remember() or look()
    keep(notes)
    return notes


def refused(notes, log, refusals):
    """The notes as the files are now; where they say nothing new, the ones that fit the refusal."""
    seen = notes | look()
    new = seen if refusals == 1 and seen != notes else adapt(notes, log)
    keep(new)
    return new


if __name__ == "__main__":
    play(begin, refused)
