"""What environments with tasks in words share: tasks that recur, households, tools of packages, calls."""
