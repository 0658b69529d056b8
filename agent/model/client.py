"""The openai SDK as Orion uses it: one client per server, and every failure is a ``ModelError``.

Only this module imports the SDK, which takes half a second: import this module off the event loop.
"""

import json
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any, Final, cast

import aiohttp
import httpx  # noqa: F401 - openai fails on a half imported one, and Langfuse's SDK imports it in another thread
import httpx2
import openai

from agent.circuit_breaker import retry_after_s
from agent.json_data import objects, string
from agent.limited_reply import reply_limit
from agent.model.failures import ServerRefusalError
from agent.model.protocol import ModelError, ModelErrorKind, ServerAddress
from observability.loopback import proxy_for

OPENAI_URL: Final = "https://api.openai.com/v1"
MAX_REPLY: Final = 1 << 26
"""In unpacked bytes: an endless reply must not use up the memory."""
_KEEP_ALIVE_S: Final = 120.0  # the next question often comes after aiohttp's 15 s, and should not need a new handshake
_MAX_CONNECTIONS: Final = 1_000
_ANY_KEY: Final = "none"  # a local server needs no key, but some demand one
_COMPLETIONS: Final = "/chat/completions"
_BEFORE_TEXT: Final = b"\xef\xbb\xbf \t\r\n"  # skips a byte order mark and blanks


class SdkClient:
    """Sends to one server through ``sdk``, without retries."""

    def __init__(self, address: ServerAddress, *, connect_s: float, read_s: float) -> None:
        # Always given: otherwise the SDK would use the environment's.
        url = httpx2.URL(address.base_url.rstrip("/") or OPENAI_URL)
        headers = {name: openai.Omit() if value is None else value for name, value in address.headers.items()}
        if url.userinfo:  # aiohttp refuses a name and a password in a URL next to a key
            headers["Authorization"] = aiohttp.encode_basic_auth(url.username, url.password)
            url = url.copy_with(userinfo=b"")
        # If the SDK read the environment itself, it would send loopback requests through a proxy.
        proxy = httpx2.Proxy(host_proxy) if (host_proxy := proxy_for(str(url))) else None
        if proxy and proxy.auth:  # aiohttp would omit it when it reuses a connection
            login = {"Proxy-Authorization": aiohttp.encode_basic_auth(*proxy.auth)}
            proxy = httpx2.Proxy(proxy.url, headers=login)
            headers |= login if url.scheme == "http" else {}
        timeout = httpx2.Timeout(None, connect=connect_s, read=read_s)  # callers limit the total time
        http = openai.DefaultAioHttpClient(
            proxy=proxy,
            trust_env=False,
            verify=ssl.create_default_context(),  # honours SSL_CERT_FILE, which trust_env=False would ignore
            timeout=timeout,
            event_hooks={"response": [reply_limit(MAX_REPLY)]},
            follow_redirects=False,  # another server would get the prompt, and a key that is sent in a custom header
            limits=httpx2.Limits(max_connections=_MAX_CONNECTIONS, keepalive_expiry=_KEEP_ALIVE_S),
        )
        common: dict[str, Any] = {"max_retries": 0, "timeout": timeout, "default_headers": headers, "http_client": http}
        key = address.api_key or _ANY_KEY
        self.sdk: openai.AsyncOpenAI
        if address.azure_api_version:
            common |= {"azure_ad_token": address.azure_token} if address.azure_token else {"api_key": key}
            base = str(url) if "/openai" in url.path else f"{url}/openai"
            self.sdk = openai.AsyncAzureOpenAI(base_url=base, api_version=address.azure_api_version, **common)
        else:
            self.sdk = openai.AsyncOpenAI(base_url=str(url), api_key=key, **common)

    # ``post`` with a prepared body: the SDK's typed methods walk through every message, validate every chunk, and fail
    # on replies that lack a field.

    async def post(self, body: Mapping[str, Any], path: str = _COMPLETIONS) -> object:
        """Return the JSON of a whole reply. Raises ``ModelError``."""
        with model_errors():
            return (await self.sdk.post(path, body=body, cast_to=httpx2.Response)).json()

    async def stream(self, body: Mapping[str, Any]) -> AsyncGenerator[object]:
        """Yield the chunks of a streamed chat completion as they arrive. Raises ``ModelError``."""
        with model_errors():
            stream = await self.sdk.post(_COMPLETIONS, body=body, cast_to=object, stream=True, stream_cls=_Chunks)
            async with aclosing(stream):
                async for chunk in stream:
                    yield chunk

    async def model_names(self) -> list[str]:
        """Return the server's list of models. Raises ``ModelError``."""
        with model_errors():
            listed = (await self.sdk.get("/models", cast_to=httpx2.Response)).json()
        return [string(model, "id") for model in objects(listed, "data") or objects(listed)]


class _Chunks(openai.AsyncStream[object]):
    """The SDK's stream of plain JSON, tolerant of servers that follow the protocol less strictly."""

    async def _iter_events(self) -> AsyncIterator[Any]:
        # Closed here: left to the event loop, each generator would cost a task of its own.
        async with (
            aclosing(self.response.aiter_bytes()) as chunks,
            aclosing(_event_bytes(chunks)) as body,
            aclosing(cast("AsyncGenerator[Any]", self._decoder.aiter_bytes(body))) as events,
        ):
            async for event in events:
                if event.event == "error":
                    raise ServerRefusalError(0, event.json() if "{" in event.data else event.data)
                texts = [event.data]
                if "\n" in event.data:
                    try:
                        json.loads(event.data)
                    except ValueError:  # some servers leave out the empty lines between events
                        texts = event.data.split("\n")
                for text in texts:
                    if text.lstrip().startswith("[DONE]"):  # the SDK would stop there too, and leave this open
                        return
                    if "{" in text:  # anything else keeps the connection alive
                        yield type(event)(data=text)


async def _event_bytes(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield a body without a byte order mark and with a final empty line. Plain JSON becomes one event."""
    is_begun = is_object = False
    async for chunk in chunks:
        text = chunk if is_begun else chunk.lstrip(_BEFORE_TEXT)
        if not is_begun and text.startswith(b"{"):
            is_object, text = True, b"data:" + text
        is_begun = is_begun or bool(text)
        yield text.replace(b"\n", b"\ndata:") if is_object else text
    yield b"\n\n"


@contextmanager
def model_errors() -> Iterator[None]:
    """Turn every exception of a call into a ``ModelError``."""
    try:
        yield
    except openai.APIStatusError as error:
        raise _refusal(error) from error
    except (openai.APIConnectionError, httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, OSError) as error:
        raise _connection_failure(error) from error
    except openai.OpenAIError as error:  # error inside a stream
        raise ServerRefusalError(0, getattr(error, "body", None) or str(error)) from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(kind="LLMError", detail="the server sent a reply that is not JSON") from error
    except (httpx2.InvalidURL, ValueError, TypeError) as error:  # an address, a header or a body that cannot be sent
        raise ModelError(kind="ConfigurationError", detail=f"cannot be called ({type(error).__name__})") from error


def _refusal(error: openai.APIStatusError) -> ServerRefusalError:
    fault, headers = error.body, error.response.headers
    if error.response.next_request:  # its query may be secret
        fault = {"code": f"redirects to {error.response.next_request.url.copy_with(query=None)}"}
    wait_s, is_final = retry_after_s(headers, now=time.time()), headers.get("x-should-retry") == "false"
    return ServerRefusalError(error.status_code, fault, retry_after_s=wait_s, is_final=is_final)


def _connection_failure(error: BaseException) -> ModelError:
    cause = error  # the SDK's transport reports refused connections as time-outs too
    while cause.__cause__ and not isinstance(cause, TimeoutError):
        cause = cause.__cause__
    if isinstance(cause, TimeoutError):
        return ModelError(kind="TimeoutError", detail="no reply in time")
    if isinstance(cause, aiohttp.ClientHttpProxyError):
        return ServerRefusalError(cause.status, {"code": "from the proxy"})
    lasting = isinstance(cause, ssl.SSLCertVerificationError | aiohttp.InvalidURL)
    kind: ModelErrorKind = "ConfigurationError" if lasting else "LLMError"
    return ModelError(kind=kind, detail=f"connection failed ({type(cause).__name__})")
