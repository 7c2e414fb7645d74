"""The durable truth: every state change is one transaction here."""
