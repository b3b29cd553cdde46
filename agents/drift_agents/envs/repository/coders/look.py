"""No memory: looks at the files each time."""

from workfolder import adapt, look, play

if __name__ == "__main__":
    play(look, lambda notes, log, refusals: adapt(notes, log))
