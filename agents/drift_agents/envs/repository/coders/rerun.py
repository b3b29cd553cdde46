"""A refused change is submitted once more as it is; memory changes after the second refusal, from the files."""

from verify import begin
from verify import refused as look_again
from workfolder import play


def refused(notes, log, refusals):
    """Nothing new after the first refusal."""
    return None if refusals == 1 else look_again(notes, log, refusals - 1)


if __name__ == "__main__":
    play(begin, refused)
