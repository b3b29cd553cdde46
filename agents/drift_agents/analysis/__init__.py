"""Reads the lines of finished runs and plays nothing: tables, report, ranking, plots and pages."""
