"""Tools offered to hosts, one extension a module."""
