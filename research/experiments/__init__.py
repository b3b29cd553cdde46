"""The experiments of this folder, and the parts that they name by file and hash."""
