"""The openai SDK as Orion uses it: one client for a server, every failure a ``ModelError``.

Only this module imports the SDK, which takes half a second: import this module off the event loop.
"""

import base64
import ssl
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Final, cast
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import aiohttp
import httpx  # noqa: F401 - openai fails on a half imported one, and Langfuse's SDK imports it in another thread
import httpx2
import openai

from agent.circuit_breaker import retry_after_s
from agent.model.address import ServerAddress
from agent.model.failures import server_refusal
from agent.model.protocol import ModelError
from agent.packing import compact_json
from observability.loopback import proxy_for

OPENAI_URL: Final = "https://api.openai.com/v1"
_KEEP_ALIVE_S: Final = 120.0  # the next question comes later than aiohttp's 15 s and need not shake hands again
_EMBED_RETRIES: Final = 5  # the SDK's own: it waits as long as a rate limit asks
_MAX_CONNECTIONS: Final = 1_000
_ANY_KEY: Final = "none"  # a local server needs no key, but some want to see one


class SdkClient:
    """Sends to one server. Only embeddings are retried here."""

    def __init__(self, address: ServerAddress, *, connect_timeout_s: float) -> None:
        # Given in any case: left out, the SDK would take the environment's.
        url, login = _split_login(address.base_url.rstrip("/") or OPENAI_URL)
        # The SDK's own reading of the environment would send loopback through a proxy.
        proxy, proxy_login = _split_login(proxy_for(url) or "")
        headers = {**address.headers, **({"Authorization": login} if login else {})}
        if proxy_login and url.startswith("http:"):
            headers["Proxy-Authorization"] = proxy_login
        self._azure = bool(address.azure_api_version)
        timeout = httpx2.Timeout(None, connect=connect_timeout_s)  # callers bound the rest
        common: dict[str, Any] = {
            "max_retries": 0,
            "timeout": timeout,
            "default_headers": {name: openai.Omit() if value is None else value for name, value in headers.items()},
            "http_client": openai.DefaultAioHttpClient(
                proxy=httpx2.Proxy(proxy, headers={"Proxy-Authorization": proxy_login}) if proxy else None,
                trust_env=False,
                verify=ssl.create_default_context(),  # honours SSL_CERT_FILE, which trust_env=False would ignore
                timeout=timeout,
                limits=httpx2.Limits(max_connections=_MAX_CONNECTIONS, keepalive_expiry=_KEEP_ALIVE_S),
            ),
        }
        self._sdk: openai.AsyncOpenAI
        if self._azure:
            key: dict[str, Any] = {"azure_ad_token": address.azure_token} if address.azure_token else {}
            self._sdk = openai.AsyncAzureOpenAI(
                base_url=url if "/openai" in url else f"{url}/openai",
                api_version=address.azure_api_version,
                **(key or {"api_key": address.api_key or _ANY_KEY}),
                **common,
            )
        else:
            self._sdk = openai.AsyncOpenAI(base_url=url, api_key=address.api_key or _ANY_KEY, **common)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sdk.close()

    async def complete(self, body: Mapping[str, Any]) -> bytes:
        """Return the body of a whole chat completion. Raises ``ModelError``."""
        with model_errors():
            return (await self._post(body, stream=False)).content

    async def stream(self, body: Mapping[str, Any]) -> AsyncGenerator[bytes]:
        """Yield the bytes of a streamed chat completion as they arrive. Raises ``ModelError``."""
        with model_errors():
            async with aclosing(await self._post(body, stream=True)) as response:
                async for chunk in response.aiter_bytes():
                    yield chunk

    async def models(self) -> Sequence[Mapping[str, Any]]:
        """Return the server's list of models, each with all that the server says of it. Raises ``ModelError``."""
        with model_errors():
            return [model.to_dict() async for model in self._sdk.models.list()]

    async def embed(self, model: str, texts: Sequence[str], **options: Any) -> tuple[list[list[float]], int]:
        """Return a vector for each text, and the tokens that were read (0: unknown). Raises ``ModelError``."""
        with model_errors():
            reply = await self._sdk.with_options(max_retries=_EMBED_RETRIES).embeddings.create(
                model=model, input=list(texts), encoding_format="float", **options
            )
            vectors = [each.embedding for each in sorted(reply.data or (), key=lambda each: each.index)]
            return vectors, reply.usage.prompt_tokens if reply.usage else 0

    async def _post(self, body: Mapping[str, Any], *, stream: bool) -> httpx2.Response:
        # A prepared body: the SDK's typed methods walk through every message and validate every chunk.
        path = "/chat/completions"
        if self._azure and "/deployments" not in str(self._sdk.base_url):
            path = f"/deployments/{quote(str(body['model']), safe='')}{path}"
        response = await self._sdk.post(
            path,
            cast_to=httpx2.Response,
            content=compact_json(body).encode(),
            stream=stream,
            stream_cls=openai.AsyncStream[object],
        )
        return cast("httpx2.Response", response)


@contextmanager
def model_errors() -> Iterator[None]:
    """Turn whatever a call can raise into ``ModelError``."""
    try:
        yield
    except openai.APIStatusError as error:
        raise server_refusal(
            error.status_code,
            error.code or error.type,
            str(error.body),
            retry_after_s=retry_after_s(error.response.headers, now=time.time()),
            final=error.response.headers.get("x-should-retry") == "false",
        ) from error
    except (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, OSError) as error:
        raise _connection_failure(error) from error
    except (httpx2.InvalidURL, ValueError, TypeError) as error:  # an address, a header or a body that cannot be sent
        raise ModelError(kind="ConfigurationError", detail=f"cannot be called ({type(error).__name__})") from error


def _connection_failure(error: BaseException) -> ModelError:
    """Return a time-out only for one: the SDK's transport reports refused connections as time-outs as well."""
    chain: list[BaseException] = [error]
    while cause := chain[-1].__cause__:
        chain.append(cause)
    if any(isinstance(each, TimeoutError) for each in chain):
        return ModelError(kind="TimeoutError", detail="no reply in time")
    return ModelError(kind="LLMError", detail=f"connection failed ({type(chain[-1]).__name__})")


def _split_login(url: str) -> tuple[str, str]:
    """Return a URL without its name and password, and the header of HTTP's basic login that these make."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, ""
    return urlunsplit(parts._replace(netloc=host)), f"Basic {base64.b64encode(unquote(login).encode()).decode()}"
