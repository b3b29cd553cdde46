"""Claims of papers under the choices that the papers leave open."""
