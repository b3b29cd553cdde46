"""No memory: looks at the files each time."""

from workfolder import adapt, look, play


def begin():
    """The notes from the files."""
    return look()


def refused(notes, log, refusals):
    """The notes that fit the refusal."""
    return adapt(notes, log)


if __name__ == "__main__":
    play(begin, refused)
