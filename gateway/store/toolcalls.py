"""Tool calls: each effect once, however often a run of its turn is repeated."""

from collections.abc import Callable

from sqlalchemy import insert, select

from gateway.domain.schedule import to_millis
from gateway.domain.tool import ToolContext, ToolResult
from gateway.domain.turn import RunState
from gateway.errors import StaleStateError
from gateway.store.database import Transaction
from gateway.store.schema import runs, tool_calls


def run_once(
    tx: Transaction,
    context: ToolContext,
    tool: str,
    effect: Callable[[Transaction], ToolResult],
) -> ToolResult:
    """Do the effect and note it in the same commit, or return what the same call answered before.

    Raises StaleStateError when the asking run is not running any more.
    """
    connection = tx.connection
    known = connection.execute(
        select(tool_calls).where(tool_calls.c.call_key == context.key)
    ).one_or_none()
    if known is not None:
        return ToolResult(
            ok=known.ok,
            text=known.text,
            line=known.line,
            is_failed_create=known.is_failed_create,
        )
    state = connection.execute(
        select(runs.c.state).where(runs.c.id == context.run)
    ).scalar_one_or_none()
    if state != RunState.RUNNING:
        raise StaleStateError("the run that asks is over")
    result = effect(tx)
    connection.execute(
        insert(tool_calls).values(
            call_key=context.key,
            turn_id=context.turn,
            run_id=context.run,
            tool=tool,
            ok=result.ok,
            text=result.text,
            line=result.line,
            is_failed_create=result.is_failed_create,
            created_at=to_millis(context.now),
        )
    )
    return result
