"""How settings are read: order, values, and every problem at once."""

import re
from collections.abc import Callable
from datetime import time, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import settings as settings_module
from gateway.env_file import read_env_file
from gateway.errors import SettingsError
from gateway.settings import Settings, load_settings
from gateway.settings_reference import render_env_example

TOKEN = "123456:AAE-canary_Token"

Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load from variables given by name, with an empty directory as cwd and data directory."""

    def load_from(env_file: str | None = None, **variables: str) -> Settings:
        if env_file is not None:
            (tmp_path / ".env").write_text(env_file, encoding="utf-8", newline="")
        given_dir = {"GATEWAY_DATA_DIR": str(tmp_path / "data")}
        return load_settings(given_dir | variables, cwd=tmp_path)

    return load_from


def problems_of(load: Load, *args: str, **variables: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(*args, **variables)
    assert all("\n" not in problem for problem in caught.value.problems)
    return caught.value.problems


def problem_of(load: Load, *args: str, **variables: str) -> str:
    (problem,) = problems_of(load, *args, **variables)
    return problem


# ---- lists ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        pytest.param("1,2", ("1", "2"), id="commas"),
        pytest.param(" 1 , 2 ", ("1", "2"), id="commas and blanks"),
        pytest.param("1", ("1",), id="one"),
        pytest.param("", (), id="empty"),
        pytest.param("[1,2]", ("1", "2"), id="JSON numbers"),
        pytest.param('["1", "-2"]', ("1", "-2"), id="JSON texts"),
        pytest.param("[]", (), id="JSON without items"),
        pytest.param("-100123", ("-100123",), id="a group"),
        pytest.param("1,,2", ("1", "2"), id="an empty item"),
        pytest.param(",", (), id="nothing but a comma"),
        pytest.param("1 2\n3", ("1", "2", "3"), id="blanks only"),
        pytest.param("2,1,2", ("2", "1"), id="twice the same"),
    ],
)
def test_s04_allowlist_is_read_in_every_spelling(
    load: Load, text: str, ids: tuple[str, ...]
) -> None:
    assert load(TELEGRAM_ALLOWLIST=text).telegram_allowlist == ids


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        pytest.param("1;2", "1;2", id="semicolon"),
        pytest.param("@name", "@name", id="a name"),
        pytest.param("1.5", "1.5", id="a fraction"),
        pytest.param("0", "0", id="zero"),
        pytest.param("5,abc", "abc", id="a word"),
        pytest.param("[1,2.5]", "2.5", id="a fraction in JSON"),
        pytest.param("[true]", "true", id="a truth value in JSON"),
        pytest.param("[1,2", "[1,2", id="broken JSON"),
        pytest.param("-100200:43", "-100200:43", id="a topic"),
        pytest.param("007", "007", id="leading zeros"),
        pytest.param("\u0661", "\u0661", id="another alphabet's digits"),
        pytest.param("12345678901234567", "12345678901234567", id="too long"),
    ],
)
def test_s04_what_is_no_id_is_named_with_its_variable(load: Load, text: str, entry: str) -> None:
    problem = problem_of(load, TELEGRAM_ALLOWLIST=text)
    assert problem.startswith("TELEGRAM_ALLOWLIST: ")
    assert repr(entry) in problem


def test_s04_all_wrong_entries_are_named_at_once(load: Load) -> None:
    problem = problem_of(load, TELEGRAM_ALLOWLIST="abc,1,@name")
    assert "'abc', '@name'" in problem


def test_whatsapp_numbers_are_read_in_every_spelling(load: Load) -> None:
    text = "+1 (555) 123-4567, 15551234567, 4915112345678@s.whatsapp.net, 99@lid, 1-2@g.us"
    numbers = load(WHATSAPP_ALLOWLIST=text).whatsapp_allowlist
    assert numbers == ("15551234567", "4915112345678", "99@lid", "1-2@g.us")


@pytest.mark.parametrize("text", ["0151 1234567", "+49", "15551234567 15557654321", "1@x"])
def test_what_is_no_whatsapp_number_is_named(load: Load, text: str) -> None:
    assert repr(text) in problem_of(load, WHATSAPP_ALLOWLIST=text)


# ---- .env ----------------------------------------------------------------------------------

AWKWARD = {
    "hash": "x #y",
    "equals": "a=b=c",
    "single quote": "it's",
    "double quote": 'say "x"',
    "dollar": "$HOME ${HOME} $$",
    "backslash": r"C:\new\t\\",
    "blanks": "two  words",
    "outer blanks": "  x  ",
    "emoji": "\U0001f916\u200d\U0001f680",
    "line break": "one\ntwo\r",
    "all": "#= ' \" $ \\ \U0001f916",
}


def in_double_quotes(value: str) -> str:
    """`value` the way a person who reads docs/settings.md writes it."""
    for plain, escaped in {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}.items():
        value = value.replace(plain, escaped)
    return f'"{value}"'


@pytest.mark.parametrize("value", AWKWARD.values(), ids=AWKWARD.keys())
def test_s02_a_quoted_value_survives_and_so_do_its_neighbours(tmp_path: Path, value: str) -> None:
    path = tmp_path / ".env"
    path.write_text(f"A=before\nB={in_double_quotes(value)} # note\nC=after\n", encoding="utf-8")
    file = read_env_file(path)
    assert file.values == {"A": "before", "B": value, "C": "after"}
    assert file.problems == ()


@given(value=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_s02_any_value_survives(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.env"
    path.write_text(f"A={in_double_quotes(value)}\nB=after", encoding="utf-8", newline="")
    assert read_env_file(path).values == {"A": value, "B": "after"}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        pytest.param("A=x#y", "x#y", id="hash without a blank"),
        pytest.param("A=a=b", "a=b", id="equals"),
        pytest.param("A=it's", "it's", id="quote inside"),
        pytest.param("A=$HOME", "$HOME", id="dollar"),
        pytest.param(r"A=C:\new", r"C:\new", id="backslash"),
        pytest.param("A=two words", "two words", id="blank"),
        pytest.param("A=\U0001f916", "\U0001f916", id="emoji"),
        pytest.param(r"A='C:\new $x \'#'", r"C:\new $x '#", id="single quotes"),
        pytest.param("export A = x ", "x", id="export and blanks"),
        pytest.param("A=", "", id="nothing"),
        pytest.param('A=""', "", id="empty quotes"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["plain", "BOM"])
def test_s02_a_bare_value_stands_as_it_is(
    tmp_path: Path, line: str, value: str, end: str, bom: str
) -> None:
    path = tmp_path / ".env"
    text = f"{bom}# comment{end}{line}{end}{end}B=after"
    path.write_text(text, encoding="utf-8", newline="")
    file = read_env_file(path)
    assert file.values == {"A": value, "B": "after"}
    assert file.problems == ()


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        pytest.param('MODEL_NAME="x', "close its quote", id="unbalanced double quote"),
        pytest.param("MODEL_NAME='x", "close its quote", id="unbalanced single quote"),
        pytest.param('MODEL_NAME="x"y', "close its quote", id="text behind the quote"),
        pytest.param("MODEL_NAME=x #y", "quotes around the value", id="cut off at a hash"),
        pytest.param("MODEL_NAME= # note", "quotes around the value", id="comment as value"),
        pytest.param("MODEL_NAME", "NAME=value", id="no equals sign"),
        pytest.param("= x", "NAME=value", id="no name"),
        pytest.param("MODEL NAME=x", "NAME=value", id="blank in the name"),
        pytest.param("MODEL_NAME=x\0", "NUL", id="NUL"),
        pytest.param("HOST_KIND=pi", "a second time", id="twice"),
    ],
)
def test_s02_a_line_that_cannot_be_read_is_named_and_harms_no_neighbour(
    load: Load, tmp_path: Path, line: str, fix: str
) -> None:
    text = f"HOST_KIND=auto\n\n{line}\nHOST_MAX_PROCESSES=wrong\n"
    broken, other = problems_of(load, text)
    assert broken.startswith(f"{tmp_path / '.env'}, line 3: ")
    assert fix in broken
    assert other.startswith(f"HOST_MAX_PROCESSES (in {tmp_path / '.env'}): 'wrong' ")


def test_s02_an_unbalanced_quote_swallows_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text('A="x\nB=1\nC="y"\nD=2\n', encoding="utf-8")
    file = read_env_file(path)
    assert file.values == {"B": "1", "C": "y", "D": "2"}
    assert len(file.problems) == 1


def test_s02_latin_1_is_refused_with_its_line(load: Load, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"HOST_KIND=auto\nMODEL_NAME=\xfcber\n")
    assert problem_of(load).startswith(f"{tmp_path / '.env'}, line 2: is not UTF-8")


def test_s02_lines_of_other_programs_are_left_alone(load: Load) -> None:
    assert load("PORT=80 # web\nPORT=81\nHOST_KIND=pi\nMODEL_NAME=m\n").host_kind == "pi"


# ---- where values come from ----------------------------------------------------------------


def test_the_environment_wins_over_the_file(load: Load) -> None:
    settings = load("HOST_MAX_PROCESSES=2\nMODEL_NAME=file\n", MODEL_NAME="environment")
    assert (settings.host_max_processes, settings.model_name) == (2, "environment")


def test_an_empty_value_means_unset(load: Load) -> None:
    names = [name.upper() for name in Settings.model_fields if name != "gateway_data_dir"]
    assert load(**dict.fromkeys(names, " ")) == load()
    assert load("MODEL_NAME=file\nHOST_KIND=\n", MODEL_NAME="").model_name == "file"


def test_the_named_file_wins_over_the_one_that_lies_here(load: Load, tmp_path: Path) -> None:
    (tmp_path / "named.env").write_text("MODEL_NAME=named\n", encoding="utf-8")
    settings = load("MODEL_NAME=here\n", GATEWAY_ENV_FILE="named.env")
    assert settings.model_name == "named"
    assert settings.env_file == tmp_path / "named.env"


def test_a_named_file_that_is_missing_is_a_problem(load: Load, tmp_path: Path) -> None:
    problem = problem_of(load, GATEWAY_ENV_FILE="missing.env")
    assert problem.startswith(f"{tmp_path / 'missing.env'}: cannot be read")


def test_the_file_in_the_data_directory_comes_last(load: Load, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ".env").write_text("MODEL_NAME=data\n", encoding="utf-8")
    assert load().model_name == "data"
    assert load("HOST_KIND=auto\n").model_name is None


def test_a_file_that_everybody_may_write_to_is_passed_over(load: Load, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ".env").write_text("HOST_MAX_PROCESSES=3\n", encoding="utf-8")
    (tmp_path / ".env").touch()
    (tmp_path / ".env").chmod(0o666)
    settings = load("TELEGRAM_ALLOWLIST=666\n")
    assert settings.telegram_allowlist == ()
    assert settings.host_max_processes == 3
    (warning,) = settings.warnings
    assert "everybody may write" in warning


def test_a_file_of_another_account_is_passed_over(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.env_file.os.geteuid", lambda: -1)
    settings = load("TELEGRAM_ALLOWLIST=666\n")
    assert settings.telegram_allowlist == ()
    assert "another account" in settings.warnings[0]


def test_a_directory_named_like_the_file_is_passed_over(load: Load, tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert "not a regular file" in load().warnings[0]


def test_an_unknown_name_is_a_problem_in_the_file(load: Load, tmp_path: Path) -> None:
    first, second, third = problems_of(
        load, "TELEGRAM_TOKEN=1\nhost_kind=pi\nGATEWAY_ENV_FILE=x\nOTHER=1\n"
    )
    assert first.startswith(f"{tmp_path / '.env'}: TELEGRAM_TOKEN is not a setting.")
    assert "TELEGRAM_BOT_TOKEN" in first
    assert "HOST_KIND" in second
    assert "environment only" in third


def test_an_unknown_name_is_a_warning_in_the_environment(load: Load) -> None:
    (warning,) = load(TELEGRAM_ALOWLIST="1", OTHER="1").warnings
    assert "TELEGRAM_ALOWLIST is not a setting" in warning
    assert "TELEGRAM_ALLOWLIST" in warning


def test_paths_are_relative_to_the_working_directory(load: Load, tmp_path: Path) -> None:
    (tmp_path / "persona.md").touch()
    settings = load(GATEWAY_DATA_DIR=" sub ", HOST_PROMPT_FILE="persona.md")
    assert settings.gateway_data_dir == tmp_path / "sub"
    assert settings.host_prompt_file == tmp_path / "persona.md"
    assert load(GATEWAY_DATA_DIR="~/x").gateway_data_dir == Path("~/x").expanduser()


def test_the_process_environment_is_no_back_door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_ALLOWLIST", "666")
    assert Settings().telegram_allowlist == ()


def test_an_unknown_time_zone_of_the_machine_is_said(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings_module, "system_timezone", lambda: None)
    settings = load()
    assert settings.gateway_timezone == "UTC"
    assert "GATEWAY_TIMEZONE" in settings.warnings[0]
    assert load(GATEWAY_TIMEZONE="Europe/Berlin").warnings == ()


# ---- values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90", timedelta(seconds=90)),
        ("90s", timedelta(seconds=90)),
        ("10m", timedelta(minutes=10)),
        (" 24 h ", timedelta(hours=24)),
        ("2d", timedelta(days=2)),
    ],
)
def test_durations(load: Load, text: str, length: timedelta) -> None:
    assert load(HOST_IDLE_TIMEOUT=text).host_idle_timeout == length


@pytest.mark.parametrize("text", ["0", "-1", "1.5h", "10 minutes", "1h30m", "99999d", "m"])
def test_what_is_no_duration_is_refused(load: Load, text: str) -> None:
    assert problem_of(load, HOST_IDLE_TIMEOUT=text).startswith("HOST_IDLE_TIMEOUT: ")


def test_zero_turns_the_heartbeat_off(load: Load) -> None:
    assert load(HEARTBEAT_INTERVAL="0").heartbeat_interval == timedelta(0)


@pytest.mark.parametrize(
    ("text", "flag"),
    [("true", True), ("YES", True), ("1", True), ("false", False), (" no ", False), ("0", False)],
)
def test_switches(load: Load, text: str, flag: bool) -> None:
    assert load(TELEGRAM_PAIRING=text).telegram_pairing is flag


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("22:00-08:00", (time(22), time(8))),
        ("0:30 \u2013 6:05", (time(0, 30), time(6, 5))),
    ],
)
def test_quiet_hours(load: Load, text: str, hours: tuple[time, time]) -> None:
    assert load(HEARTBEAT_QUIET_HOURS=text).heartbeat_quiet_hours == hours


@pytest.mark.parametrize("text", ["22:00-22:00", "22:00", "22-8", "24:00-08:00", "1:00-2:00-3:00"])
def test_quiet_hours_that_are_none_are_refused(load: Load, text: str) -> None:
    assert "write 22:00-08:00" in problem_of(load, HEARTBEAT_QUIET_HOURS=text)


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        f"  {TOKEN}\r\n",
        f'"{TOKEN}"',
        f"'{TOKEN}'",
        f"\u201c{TOKEN}\u201d",
        f"\u2018 {TOKEN} \u2019",
        "1:abc",
    ],
)
def test_s02_a_token_is_freed_of_blanks_and_quotes(load: Load, text: str) -> None:
    token = load(TELEGRAM_BOT_TOKEN=text).telegram_bot_token
    assert token is not None
    assert token.get_secret_value() == (TOKEN if "AAE" in text else "1:abc")


@pytest.mark.parametrize(
    "text", [f"bot{TOKEN}", f"{TOKEN} x", "canary", "123456:", ":canary", "123456:canary!", "1:ab"]
)
def test_s11_a_wrong_token_is_never_repeated(load: Load, text: str) -> None:
    problem = problem_of(load, TELEGRAM_BOT_TOKEN=text)
    assert problem.startswith("TELEGRAM_BOT_TOKEN: ")
    assert "canary" not in problem


@pytest.mark.parametrize("name", ["TELEGRAM_ALLOWLIST", "GATEWAY_OWNER", "HOST_KIND"])
def test_s11_a_token_in_the_wrong_place_is_never_repeated(load: Load, name: str) -> None:
    assert "canary" not in problem_of(load, **{name: TOKEN})


def test_s11_secrets_do_not_show_in_the_settings(load: Load) -> None:
    settings = load(
        TELEGRAM_BOT_TOKEN=TOKEN,
        MODEL_API_KEY="sk-canary",
        WHATSAPP_PROXY_URL="http://me:canary@host:1",
    )
    assert "canary" not in repr(settings) + str(settings)


@pytest.mark.parametrize(
    ("name", "text", "fix"),
    [
        ("GATEWAY_LOG_LEVEL", "loud", "DEBUG, INFO, WARNING, ERROR"),
        ("GATEWAY_LOG_FORMAT", "xml", "text, json"),
        ("GATEWAY_RETENTION_DAYS", "0", "from 1"),
        ("GATEWAY_TIMEZONE", "Mars/Base", "Europe/Berlin"),
        ("GATEWAY_TIMEZONE", "America", "Europe/Berlin"),
        ("GATEWAY_TIMEZONE", "../../etc/passwd", "Europe/Berlin"),
        ("GATEWAY_DATA_DIR", __file__, "name one"),
        ("GATEWAY_DATA_DIR", "~nobody-at-all/x", "home directory"),
        ("GATEWAY_ENV_FILE", "~nobody-at-all/x", "home directory"),
        ("GATEWAY_DATABASE_URL", "postgresql://me:pw@host/db", "SQLite"),
        ("GATEWAY_DATABASE_URL", "sqlite:///relative.db", "absolute"),
        ("GATEWAY_DATABASE_URL", "sqlite:///:memory:", "absolute"),
        ("TELEGRAM_PAIRING", "maybe", "true or false"),
        ("TELEGRAM_API_BASE_URL", "localhost:8081", "http://host"),
        ("MODEL_BASE_URL", "http://host:port", "http://host"),
        ("MODEL_BASE_URL", "http://", "http://host"),
        ("WHATSAPP_PROXY_URL", "ftp://host", "socks5://host"),
        ("HOST_KIND", "magic", "auto, offline, builtin, pi, acp"),
        ("HOST_COMMAND", "pi 'x", "quote"),
        ("HOST_COMMAND", "''", "program"),
        ("HOST_MAX_PROCESSES", "-1", "from 1"),
        ("HOST_PROMPT_FILE", "missing.md", "mend the path"),
        ("MODEL_API_KEY", "two words", "copy it again"),
        ("MODEL_API_KEY", "\u00fcber", "copy it again"),
        ("MODEL_CONTEXT_WINDOW", "8k", "whole number"),
        ("HEARTBEAT_DAILY_CAP", "many", "whole number"),
    ],
)
def test_a_wrong_value_is_named_with_its_fix(load: Load, name: str, text: str, fix: str) -> None:
    problem = next(p for p in problems_of(load, **{name: text}) if p.startswith(f"{name}: "))
    assert fix in problem
    assert "pw" not in problem


def test_the_right_values_of_all_kinds(load: Load) -> None:
    settings = load(
        GATEWAY_LOG_LEVEL="debug",
        GATEWAY_DATABASE_URL="sqlite:////var/x.db",
        TELEGRAM_API_BASE_URL="http://127.0.0.1:8081/",
        HOST_COMMAND="pi --mode rpc 'two words'",
        MODEL_PROVIDER=" Anthropic ",
        MODEL_NAME="m",
        MODEL_CONTEXT_WINDOW="32768",
    )
    assert settings.gateway_log_level == "DEBUG"
    assert settings.gateway_database_url == "sqlite:////var/x.db"
    assert settings.telegram_api_base_url == "http://127.0.0.1:8081"
    assert settings.host_command == ("pi", "--mode", "rpc", "two words")
    assert settings.model_provider == "anthropic"
    assert settings.model_context_window == 32768


def test_no_default_opens_access(load: Load) -> None:
    settings = load()
    assert settings.telegram_allowlist == settings.whatsapp_allowlist == ()
    assert not settings.telegram_pairing
    assert settings.host_tools == "none"
    assert settings.resolved_host_kind == "offline"


# ---- what must fit together ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "start"),
    [
        ({"HOST_KIND": "builtin"}, "MODEL_NAME: "),
        ({"HOST_KIND": "pi"}, "HOST_COMMAND: "),
        ({"HOST_KIND": "acp"}, "HOST_KIND: acp is not available yet"),
        (
            {"HOST_KIND": "acp", "HOST_COMMAND": "agent --acp"},
            "HOST_KIND: acp is not available yet",
        ),
        (
            {"HOST_TOOLS": "read", "HOST_SANDBOX": "bubblewrap"},
            "HOST_TOOLS: read is not available yet",
        ),
        (
            {"HOST_TOOLS": "all", "HOST_TOOLS_UNSANDBOXED": "yes"},
            "HOST_TOOLS: all is not available yet",
        ),
        ({"MODEL_NAME": "m", "MODEL_PROVIDER": "google"}, "MODEL_PROVIDER: "),
        ({"HOST_TOOLS": "read"}, "HOST_TOOLS: "),
        ({"HOST_TOOLS": "all"}, "HOST_TOOLS: "),
        ({"GATEWAY_OWNER": "telegram:1"}, "GATEWAY_OWNER: "),
        ({"GATEWAY_OWNER": "telegram:-100", "TELEGRAM_ALLOWLIST": "-100"}, "GATEWAY_OWNER: "),
        ({"GATEWAY_OWNER": "telegram:1:2", "TELEGRAM_ALLOWLIST": "1"}, "GATEWAY_OWNER: "),
        ({"GATEWAY_OWNER": "1", "TELEGRAM_ALLOWLIST": "1"}, "GATEWAY_OWNER: "),
        ({"GATEWAY_OWNER": "console:local"}, "GATEWAY_OWNER: "),
        ({"GATEWAY_OWNER": "whatsapp:15551234567", "TELEGRAM_PAIRING": "1"}, "GATEWAY_OWNER: "),
    ],
    ids=str,
)
def test_contradictions_are_refused(load: Load, variables: dict[str, str], start: str) -> None:
    assert problem_of(load, **variables).startswith(start)


@pytest.mark.parametrize(
    "variables",
    [
        {"HOST_KIND": "builtin", "MODEL_NAME": "m"},
        {"HOST_KIND": "pi", "MODEL_NAME": "m", "MODEL_PROVIDER": "google"},
        {"GATEWAY_OWNER": "telegram:1", "TELEGRAM_ALLOWLIST": "1"},
        {"GATEWAY_OWNER": "telegram:1", "TELEGRAM_PAIRING": "true"},
        {"GATEWAY_OWNER": "whatsapp:+15551234567", "WHATSAPP_ALLOWLIST": "+1 555 123 4567"},
    ],
    ids=str,
)
def test_what_fits_together_is_accepted(load: Load, variables: dict[str, str]) -> None:
    load(**variables)


def test_every_problem_is_listed_at_once(load: Load) -> None:
    problems = problems_of(
        load,
        'TELEGRAM_TOKEN=x\nMODEL_NAME="\nHOST_TOOLS=all\n',
        TELEGRAM_ALLOWLIST="@me",
        GATEWAY_OWNER="telegram:1",
        HOST_IDLE_TIMEOUT="soon",
        HEARTBEAT_DAILY_CAP="x",
    )
    words = [re.search(r"[A-Z]+_[A-Z_]+", problem) for problem in problems]
    assert [word and word[0] for word in words] == [
        "MODEL_NAME",
        "TELEGRAM_TOKEN",
        "TELEGRAM_ALLOWLIST",
        "HOST_IDLE_TIMEOUT",
        "HEARTBEAT_DAILY_CAP",
        "HOST_TOOLS",
    ]


def test_nothing_is_concluded_from_a_value_that_is_wrong_itself(load: Load) -> None:
    assert len(problems_of(load, TELEGRAM_ALLOWLIST="@me", GATEWAY_OWNER="telegram:1")) == 1


# ---- documents -----------------------------------------------------------------------------


def test_the_example_file_holds_every_setting_and_each_can_be_switched_on(load: Load) -> None:
    lines = re.findall(r"^#([A-Z_]+)=(.*)$", render_env_example(), re.MULTILINE)
    named = {name for name, _ in lines}
    assert named == {name.upper() for name in Settings.model_fields} - {"GATEWAY_ENV_FILE"}
    for name, value in lines:
        if name not in {"GATEWAY_OWNER", "HOST_PROMPT_FILE"}:
            load(f"{name}={value}\n")
    owner, allowed = dict(lines)["GATEWAY_OWNER"], dict(lines)["TELEGRAM_ALLOWLIST"]
    load(f"GATEWAY_OWNER={owner}\nTELEGRAM_ALLOWLIST={allowed}\n")


def test_the_defaults_that_the_example_file_shows_are_the_defaults(load: Load) -> None:
    lines = re.findall(r"^#([A-Z_]+)=(.*)$", render_env_example(), re.MULTILINE)
    fields = Settings.model_fields
    fixed = {n for n, f in fields.items() if not f.default_factory and f.default not in (None, ())}
    shown = [f"{name}={value}" for name, value in lines if name.lower() in fixed]
    assert len(shown) > 20
    assert load("\n".join(shown)) == load("")


def test_a_model_that_nobody_can_reach_is_doubted(tmp_path: Path) -> None:
    settings = load_settings({"MODEL_NAME": "m"}, cwd=tmp_path)
    assert [text.partition(":")[0] for text in settings.warnings] == ["MODEL_API_KEY"]
    for more in ({"MODEL_API_KEY": "k-123456"}, {"MODEL_BASE_URL": "http://127.0.0.1:1/v1"}):
        assert load_settings({"MODEL_NAME": "m", **more}, cwd=tmp_path).warnings == ()
