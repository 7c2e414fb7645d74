"""One chain of migrations for all tables, those of the extensions in it."""
