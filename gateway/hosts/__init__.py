"""One host protocol a module; a model is always a subprocess."""
