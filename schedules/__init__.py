"""The shipped schedules, data only: `<environment>/<name>.yaml`."""
