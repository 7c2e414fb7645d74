"""Measures the budgets of docs/architecture.md on this machine: `make bench`. Not a test."""
