"""Tool calls: each effect once, however often a run is repeated, and told to the person."""

from collections.abc import Callable

from sqlalchemy import Connection, bindparam, insert, select

from gateway.domain.schedule import to_millis
from gateway.domain.tool import NOTHING_CHANGED, NOTHING_SET, ToolContext, ToolResult
from gateway.domain.turn import RunState, TurnId
from gateway.errors import StaleStateError
from gateway.store.database import Transaction
from gateway.store.schema import runs, tool_calls

_CALLS = (
    select(tool_calls.c.ok, tool_calls.c.text, tool_calls.c.line, tool_calls.c.is_create)
    .where(tool_calls.c.turn_id == bindparam("turn"))
    .order_by(tool_calls.c.id)
)


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
            is_create=known.is_create,
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
            is_create=result.is_create,
            created_at=to_millis(context.now),
        )
    )
    return result


def with_stored_lines(connection: Connection, turn: TurnId, reply: str) -> str:
    """The reply with the stored line of each job that the turn created or changed, unless it
    holds it word for word; if all that it tried to set failed, that none was set.
    """
    calls = connection.execute(_CALLS, {"turn": turn}).all()
    lines = dict.fromkeys(call.line for call in calls if call.line is not None)
    missing = [line for line in lines if line not in reply]
    setting = [call for call in calls if call.is_create]
    if setting and not any(call.ok for call in setting):
        is_change = all(call.text.startswith(NOTHING_CHANGED) for call in setting)
        said = NOTHING_CHANGED if is_change else NOTHING_SET
        missing += [] if said in reply else [f"{said}."]
    return "\n\n".join([reply, "\n".join(missing)]) if missing else reply
