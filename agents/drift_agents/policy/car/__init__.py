"""The planner of the mountain car: parsed evidence, a fitted model, values and a plan."""
