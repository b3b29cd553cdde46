"""The loop of memory, verifier, policy and controller; a team's too."""
