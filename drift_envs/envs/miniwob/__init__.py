"""Task pages of MiniWoB++ in a browser, with knobs: labels, order, themes, colours; needs the extra `miniwob`."""
