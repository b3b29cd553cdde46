"""The mountain car: matching, and a planner with parsed evidence, a fitted model, values and a plan."""
