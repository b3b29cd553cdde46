"""Gymnasium's frozen lake with knobs: map, slip, goal rewards, false responses, places that turn bad."""
