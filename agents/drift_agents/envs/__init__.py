"""What agents know of each environment: one folder an environment, none imports another."""
