"""Parts by name: those of this package, of files, and of other packages."""
