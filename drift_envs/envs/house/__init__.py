"""A text house: places, names, locks, keys, appliances, words, tidiness, lost commands."""
