"""Finds and reads the one `.env` file in force; nothing in it is ever lost in silence."""

import io
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dotenv.parser import parse_stream

PREFIXES = ("GATEWAY_", "TELEGRAM_", "WHATSAPP_", "HOST_", "MODEL_", "HEARTBEAT_", "DELIVERY_")

_LINE_END = re.compile(r"\r\n|\n|\r")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?(?P<key>[A-Za-z_][A-Za-z0-9_]*)\s*=(?P<raw>.*)", re.S)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvFile:
    """What the file in force says, if there is one (`path`).

    Each problem names the file and the line, never a value.
    """

    path: Path | None
    values: Mapping[str, str]
    problems: tuple[str, ...]


def is_our_key(key: str) -> bool:
    """Whether the name is one that only our settings should have."""
    return key.upper().startswith(PREFIXES)


def find_env_file(cwd: Path, data_dir: Path) -> tuple[Path | None, tuple[str, ...]]:
    """Choose the file to read where none is named, and warn of a file that is passed over.

    First `.env` in `cwd`, if it is ours and nobody else may write to it: a directory that others
    can write to must not decide who may talk to the bot. Else `.env` in `data_dir`.
    """
    here = cwd / ".env"
    warnings: tuple[str, ...] = ()
    if status := _status(here):
        reason = _reason_to_skip(status)
        if reason is None:
            return here, ()
        warnings = (f"{here} is not read: {reason}. Mend that or name it in GATEWAY_ENV_FILE.",)
    at_home = data_dir / ".env"
    return (at_home if _status(at_home) else None), warnings


def read_env_file(path: Path) -> EnvFile:
    """Read every line by itself, so that a broken one cannot swallow its neighbours.

    Values may be bare, in single quotes (as they stand) or in double quotes (with escapes);
    nothing is interpolated.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        problem = f"{path}: cannot be read ({error.strerror}); mend the path or its rights"
        return EnvFile(path=path, values={}, problems=(problem,))
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        problem = f"{path}, line {number}: is not UTF-8 text; save the file as UTF-8"
        return EnvFile(path=path, values={}, problems=(problem,))
    values: dict[str, str] = {}
    problems: list[str] = []
    for number, line in enumerate(_LINE_END.split(text), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            key, value = _read_line(line)
            if key in values and is_our_key(key):
                raise ValueError(f"{key} is set a second time; keep one of them")
        except ValueError as problem:
            problems.append(f"{path}, line {number}: {problem}")
        else:
            values[key] = value
    return EnvFile(path=path, values=values, problems=tuple(problems))


def _status(path: Path) -> os.stat_result | None:
    """What the file system says of the path; None if it is not there or not for us to see."""
    try:
        return path.stat()
    except OSError:
        return None


def _reason_to_skip(status: os.stat_result) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if status.st_uid != os.geteuid():
        return "it belongs to another account"
    if status.st_mode & stat.S_IWOTH:
        return "everybody may write to it"
    return None


def _read_line(line: str) -> tuple[str, str]:
    assignment = _ASSIGNMENT.fullmatch(line)
    if assignment is None:
        raise ValueError("is not of the form NAME=value; start a comment with #")
    if "\0" in line:
        raise ValueError("holds a NUL character; remove it")
    key, raw = assignment["key"], assignment["raw"].strip()
    (binding,) = parse_stream(io.StringIO(line))
    if binding.error or binding.value is None:
        raise ValueError(
            f"the value of {key} cannot be read; close its quote on the same line, and leave"
            " nothing but a comment behind it"
        )
    # A bare value ends at a blank and "#". It may be a comment or half of a secret: we must ask.
    if is_our_key(key) and raw[:1] not in {"'", '"'} and raw != binding.value:
        raise ValueError(
            f"{key} is cut off at its #; put quotes around the value, or the comment on a line"
            " of its own"
        )
    return key, binding.value
