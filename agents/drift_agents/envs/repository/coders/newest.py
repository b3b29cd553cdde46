"""A refusal rewrites memory: a line about what it suggests is added, and the last line about a thing counts."""

from workfolder import MEMORY, adapt, keep, look, play, remember


def begin():
    """The notes in memory; in the first issue those from the files."""
    notes = remember()
    if not notes:
        notes = look()
        keep(notes)
    return notes


def refused(notes, log, refusals):
    """The notes that fit the refusal."""
    new = adapt(notes, log)
    with open(MEMORY, "a", encoding="utf-8") as file:
        file.writelines(f"- {name}: {note}\n" for name, note in new.items() if note != notes[name])
    return new


if __name__ == "__main__":
    play(begin, refused)
