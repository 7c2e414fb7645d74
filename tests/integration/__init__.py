"""Tests of this kind; see docs/architecture.md."""
