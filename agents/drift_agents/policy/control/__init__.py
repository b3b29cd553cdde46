"""The planner for classic control and MuJoCo."""
