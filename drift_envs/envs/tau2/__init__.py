"""tau2-bench's airline and retail domains with knobs; needs the extra `tau2`, but for the knobs."""
