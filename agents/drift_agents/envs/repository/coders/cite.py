"""Memory holds path and hash of what a note was read from; a note whose file has changed is read again."""

from workfolder import adapt, cited, digest, keep, look, play, remember, source


def begin():
    """The notes in memory whose files are the same, and the others from the files."""
    notes, hashes = remember(), cited()
    changed = [name for name in notes if hashes.get(name) != digest(source(name))]
    notes = notes | look(changed) if notes else look()
    keep(notes, cites=True)
    return notes


def refused(notes, log, refusals):
    """The notes that fit the refusal."""
    new = adapt(notes, log)
    keep(new, cites=True)
    return new


if __name__ == "__main__":
    play(begin, refused)
