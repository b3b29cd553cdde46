"""The tools of BFCL's multi-turn tasks with knobs; needs the extra `bfcl`, but for the knobs."""
