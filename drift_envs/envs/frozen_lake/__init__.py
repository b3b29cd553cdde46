"""The lake: environment, knobs, maps, model and transition tables."""
