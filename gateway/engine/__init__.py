"""The workers: each is a loop over the store, and none knows a platform."""
