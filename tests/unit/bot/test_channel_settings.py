"""Settings of single channels: read again when they change, wrong ones named, the last good ones kept."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channel_settings import MAX_INSTRUCTION_CHARS, ChannelFile, ChannelSettings, ChannelSettingsError

GOOD = '[C0OPS]\nmode = "listen"\ninstruction = "Short answers."\ndocuments = ["runbooks/"]\n'
OPS = ChannelSettings(mode="listen", instruction="Short answers.", documents=("runbooks/",))


def write(file: Path, text: str) -> None:
    """Write as an editor does: a new file in place of the old one."""
    part = file.with_suffix(".new")
    part.write_text(text)
    part.replace(file)


def test_a_change_counts_at_once_and_a_missing_file_means_the_defaults(tmp_path: Path) -> None:
    settings = ChannelFile(tmp_path / "channels.toml", listen=frozenset({"C0HELP", "T2/C0NEWS"}))
    assert settings.of("T1", "C0OPS") == ChannelSettings()
    assert [settings.of(team, channel).mode for team, channel in (("T1", "C0HELP"), ("T1", "C0NEWS"))] == [
        "listen",
        "mention",
    ]
    assert {team: [*settings.channels_of(team)] for team in ("T1", "T2")} == {
        "T1": ["C0HELP"],
        "T2": ["C0HELP", "C0NEWS"],
    }
    write(settings.path, GOOD)
    assert settings.of("T1", "C0OPS") == OPS
    write(settings.path, GOOD.replace("[C0OPS]", '["T1/C0OPS"]'))
    assert [settings.of(team, "C0OPS") for team in ("T1", "T2")] == [OPS, ChannelSettings()]
    write(settings.path, '[C0HELP]\nmode = "mention"\n')
    assert settings.of("T1", "C0HELP").mode == "mention"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[C0OPS\n", "channels.toml"),
        ('[C0OPS]\nmode = "lis', "channels.toml"),
        ("\x00", "channels.toml"),
        ('[C0OPS]\nmode = "always"\n', "mode must be one of"),
        ("[C0OPS]\nmode = 1\n", "mode must be one of"),
        (f'[C0OPS]\ninstruction = "{"x" * (MAX_INSTRUCTION_CHARS + 1)}"\n', "instruction must be"),
        ('[C0OPS]\ndocuments = "runbooks/"\n', "documents must be"),
        ('[C0OPS]\ndocuments = ["", 1]\n', "documents must be"),
        ('[C0OPS]\ndocuments = ["a\\u0000b"]\n', "documents must be"),
        ('[C0OPS]\nhandoff = "@ann"\n', "handoff must be"),
        ('[C0OPS]\nlanguage = "tlh"\n', "language must be one of"),
        ('[C0OPS]\nmood = "good"\n', "mood is unknown"),
        ("C0OPS = 1\n", "is not a table"),
    ],
)
def test_a_faulty_file_is_reported_and_the_last_good_state_stays(text: str, fault: str, tmp_path: Path) -> None:
    settings = ChannelFile(tmp_path / "channels.toml")
    write(settings.path, GOOD)
    assert settings.of("T1", "C0OPS") == OPS
    write(settings.path, text)
    assert settings.of("T1", "C0OPS") == OPS
    assert fault in settings.faults[0]
    write(settings.path, GOOD)
    assert (settings.of("T1", "C0OPS"), settings.faults) == (OPS, ())


def test_one_invalid_channel_does_not_affect_the_others(tmp_path: Path) -> None:
    settings = ChannelFile(tmp_path / "channels.toml")
    write(settings.path, f'{GOOD}[general]\nmode = "listen"\n')
    assert settings.of("T1", "C0OPS") == OPS
    assert settings.faults == ("[general] is not the id of a channel, such as C0123ABCD or T0ACME/C0123ABCD.",)


@given(
    st.text(max_size=MAX_INSTRUCTION_CHARS),
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")).filter(str.strip), max_size=3),
)
def test_saved_settings_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, instruction: str, docs: list[str]
) -> None:
    settings = ChannelFile(tmp_path_factory.mktemp("home") / "channels.toml")
    wanted = ChannelSettings(instruction=instruction, documents=tuple(docs), mode="listen", language="de")
    settings.save("T1", "C0OPS", wanted)
    settings.save("T1", "C0HR", ChannelSettings(language="fr"))
    settings.save("T1", "C0HR", ChannelSettings())
    assert settings.channels_of("T1") == {"C0OPS": wanted, "C0HR": ChannelSettings()}
    assert settings.channels_of("T2") == {}


AROUND = """# The channels of Acme.

[C0OPS]  # on call
documents = [
  "runbooks/",
  "[C0HR]",
]
instruction = '''
["T1/C0HR"]
# Short answers.
'''

# People:
["T1/C0HR"]
language = "fr"
# Not read yet:
[C0NEWS]
mode = "sometimes"
"""


def test_saving_changes_one_table_and_no_other_line(tmp_path: Path) -> None:
    settings = ChannelFile(tmp_path / "channels.toml")
    write(settings.path, AROUND)
    settings.path.chmod(0o640)
    ops = settings.of("T1", "C0OPS")
    settings.save("T1", "C0HR", ChannelSettings(handoff="#people"))
    assert settings.path.read_text() == AROUND.replace('language = "fr"', 'handoff = "#people"')
    settings.save("T1", "C0OPS", ChannelSettings(mode="listen"))
    assert settings.path.read_text().startswith('# The channels of Acme.\n\n["C0OPS"]\nmode = "listen"\n\n# People:\n')
    assert settings.path.stat().st_mode & 0o777 == 0o640
    assert ops.documents == ("runbooks/", "[C0HR]")


@pytest.mark.parametrize("text", ["[C0OPS\n", '"T1/C0OPS".mode = "listen"\n', '"T1/C0OPS" = {mode = "listen"}\n'])
def test_a_file_that_cannot_be_changed_stays_as_it_is(text: str, tmp_path: Path) -> None:
    settings = ChannelFile(tmp_path / "channels.toml")
    write(settings.path, text)
    with pytest.raises(ChannelSettingsError):
        settings.save("T1", "C0OPS", OPS)
    assert settings.path.read_text() == text
    assert [file.name for file in tmp_path.iterdir()] == ["channels.toml"]
