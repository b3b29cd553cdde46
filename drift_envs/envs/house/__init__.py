"""A text house with knobs: vocabulary, plan of a house, rules, tasks, texts and the environment."""
