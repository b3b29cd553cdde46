"""What a policy sees: the view, its builder, lessons, value estimates and the conflict rules."""
