"""One answer to "is it this machine?" for Slack, the model and the traces."""

from pathlib import Path

import pytest

from agent.model.chat_server import Timeouts
from agent.model.openai import OpenAIModel
from agent.model.protocol import ModelError, ServerAddress
from agent.tools.builtin.web import WebSearchFailed, open_searxng
from observability.loopback import is_loopback
from tests.support.http_server import behind_tls, own_certificate


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:11434/v1", "http://LOCALHOST", "http://slack.localhost:3000/api/", "https://127.0.0.1/api/",
        "http://127.8.8.8", "http://[::1]:3000",
    ],
)  # fmt: skip
def test_this_machine_is_known_by_name_and_by_address(url: str) -> None:
    assert is_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://slack.com/api/", "https://cloud.langfuse.com", "http://localhost.example.com", "http://192.168.0.1",
        "http://0.0.0.0", "http://[::1", "localhost", "",
    ],
)  # fmt: skip
def test_any_other_host_is_remote(url: str) -> None:
    assert not is_loopback(url)


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_server_on_this_machine_is_trusted_as_the_host_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, trusted: bool
) -> None:
    file, asked = own_certificate(tmp_path), list[str]()
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with behind_tls(file, asked) as host:
        model = OpenAIModel(address=ServerAddress(base_url=f"{host}/v1"), model="m", timeouts=Timeouts(retries=0))
        with pytest.raises(ModelError) as failure:  # its reply is empty
            await model.generate("x", max_tokens=1, temperature=0.0)
        assert failure.value.kind == ("LLMError" if trusted else "ConfigurationError")
        await model.aclose()
        async with open_searxng(host) as searxng:
            with pytest.raises(WebSearchFailed):  # as above
                await searxng.search("x")
    paths = [path.partition("?")[0] for path in asked]
    assert paths == (["/v1/chat/completions", "/search"] if trusted else [])
