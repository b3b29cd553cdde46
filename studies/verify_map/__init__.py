"""When must an agent verify? The points of the map, the tuning of its rules, and the claims."""
