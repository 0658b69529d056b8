"""All tests; a package, for some dependencies install a package of the same name."""
