"""Runs the migrations on the connection that `gateway.store.opening` hands over."""

from alembic import context

from gateway.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
