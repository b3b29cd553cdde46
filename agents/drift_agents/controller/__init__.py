"""How one decision is made."""
