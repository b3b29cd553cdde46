"""Gymnasium's classic control and LunarLander with knobs: masses, lengths, forces, gravity, wind, time steps."""
