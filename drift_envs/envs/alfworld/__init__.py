"""ALFWorld's household tasks on its floor plans, played by TextWorld's engine; needs the extra `alfworld`."""
