"""The tools of BFCL's multi-turn tasks, played by the engines of `bfcl-eval`; needs the extra `bfcl`."""
