"""One messaging platform a module."""
