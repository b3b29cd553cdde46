"""Gymnasium's MuJoCo environments with knobs: masses, friction, damping, actuators; needs the extra `mujoco`."""
