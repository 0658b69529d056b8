"""Delivers events over HTTP, signed as Slack signs them. No proxy and no redirect: the app is on this machine."""

import json
import time
from dataclasses import dataclass
from urllib.parse import urlencode

import aiohttp
from slack_sdk.signature import SignatureVerifier

from bot.local.events.socket_mode import NotAcknowledged, json_object
from bot.local.model.roster import Json


@dataclass(slots=True)
class HttpEvents:
    """Post to one app. ``url`` may change while the workspace runs."""

    signing_secret: str
    url: str = ""
    _session: aiohttp.ClientSession | None = None

    async def send(self, kind: str, payload: Json, attempt: int, reason: str, timeout: float) -> Json | None:  # noqa: ASYNC109 - the parts of one request
        """The JSON body of the answer, if it has one. Raises ``NotAcknowledged`` unless it was a 2xx in time."""
        body, content_type = json.dumps(payload).encode(), "application/json"
        if kind != "events_api":  # clicks travel as a form with one field
            body, content_type = urlencode({"payload": body}).encode(), "application/x-www-form-urlencoded"
        timestamp = str(int(time.time()))
        signature = SignatureVerifier(self.signing_secret).generate_signature(timestamp=timestamp, body=body)
        headers = {
            "Content-Type": content_type,
            "X-Slack-Request-Timestamp": timestamp,
            "X-Slack-Signature": signature or "",
            "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
        }
        if attempt:
            headers |= {"X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": reason}
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=False)
        limit = aiohttp.ClientTimeout(total=timeout)
        try:
            async with self._session.post(
                self.url, data=body, headers=headers, timeout=limit, allow_redirects=False
            ) as answer:
                text = await answer.text()
        except TimeoutError:
            raise NotAcknowledged(reason="http_timeout") from None
        except aiohttp.ClientConnectionError:
            raise NotAcknowledged(reason="connection_failed") from None
        except aiohttp.ClientError:
            raise NotAcknowledged(reason="unknown_error") from None
        if answer.status in range(200, 300):
            return json_object(text)
        why = "too_many_redirects" if answer.status in range(300, 400) else "http_error"
        # An app may forbid Slack's retries.
        raise NotAcknowledged(why, final=answer.headers.get("X-Slack-No-Retry") == "1")

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()
            self._session = None
