"""Research on this project: claims, belief studies and experience following. Not installed; nothing imports it."""
