"""Teams: the members that decide, and how their decisions combine."""
