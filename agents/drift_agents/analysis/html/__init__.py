"""The report and the board, as one HTML file each."""
