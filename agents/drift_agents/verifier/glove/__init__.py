"""GLOVE, its statistics, and the sequential tests that share its trigger."""
