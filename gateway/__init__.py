"""A chat gateway between messaging channels and a model host."""
