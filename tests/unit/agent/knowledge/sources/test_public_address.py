"""Addresses that may be connected to. The connection goes to the address that was checked."""

import time
from collections.abc import Iterable

import httpcore2
import pytest

from agent.knowledge.sources.fetch import (
    AddressRefusedError,
    CheckedNetwork,
    is_public,
    is_public_or_private,
    resolve_host,
)
from tests.support.web_site import LocalSite, html


@pytest.mark.parametrize(
    "address",
    [
        *("10.0.0.1", "172.16.9.9", "192.168.1.1", "127.0.0.1", "127.8.8.8", "169.254.169.254", "100.64.0.1"),
        "0.0.0.0",  # noqa: S104 - judged, never bound
        *("224.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1"),
        *("::ffff:10.0.0.1", "::10.0.0.1", "2002:a00:1::", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "ff02::1"),
        "2001:0:808:808::f5ff:fffe",
    ],
)
def test_no_address_of_a_private_network_is_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_are_recognised(address: str) -> None:
    assert is_public(address)
    assert is_public_or_private(address)


def test_even_an_allowed_host_never_leads_to_link_local_or_broadcast_addresses() -> None:
    assert is_public_or_private("10.0.0.1")
    assert is_public_or_private("127.0.0.1")
    assert not any(
        map(is_public_or_private, ("169.254.169.254", "fe80::1", "::", "224.0.0.1", "::ffff:169.254.169.254"))
    )


def test_an_address_needs_no_look_up_and_a_name_has_each_address_once() -> None:
    assert resolve_host("93.184.216.34", 80) == ["93.184.216.34"]
    found = resolve_host("localhost", 80)
    assert len(found) == len(set(found))
    assert set(found) <= {"127.0.0.1", "::1"}


def fetch_status(network: CheckedNetwork, url: str) -> int:
    with httpcore2.ConnectionPool(network_backend=network) as pool:
        return pool.request("GET", url).status


def test_the_name_is_resolved_once_and_the_judged_address_is_used() -> None:
    """A name server that gives another address the second time (DNS rebinding) is not asked a second time."""
    asked: list[str] = []

    def rebinding(host: str, _: int) -> Iterable[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    with LocalSite() as site:
        site.pages["/"] = html("Inside.")
        network = CheckedNetwork(["docs.example"], rebinding)
        assert fetch_status(network, f"http://docs.example:{site.port}/") == 200
        assert asked == ["docs.example"]
        with pytest.raises(AddressRefusedError):
            fetch_status(network, f"http://docs.example:{site.port}/")
        assert site.asked == ["/"]


def test_only_the_allowed_addresses_are_tried() -> None:
    with LocalSite() as site:
        site.pages["/"] = html("Inside.")
        several = CheckedNetwork(["docs.example"], lambda *_: ["169.254.169.254", "127.0.0.2", "127.0.0.1"])
        assert fetch_status(several, f"http://docs.example:{site.port}/") == 200
        with pytest.raises(AddressRefusedError):
            fetch_status(CheckedNetwork([], lambda *_: ["127.0.0.1"]), f"http://docs.example:{site.port}/")
        with pytest.raises(httpcore2.ConnectError):
            fetch_status(CheckedNetwork(["docs.example"], lambda *_: ["127.0.0.1"]), "http://docs.example:9/")


def test_a_host_name_that_does_not_resolve_cannot_be_reached() -> None:
    def unknown(*_: object) -> Iterable[str]:
        raise OSError

    with pytest.raises(httpcore2.ConnectError):
        fetch_status(CheckedNetwork([], unknown), "http://docs.example/")


def test_nothing_continues_after_the_deadline() -> None:
    with LocalSite() as site:
        network = CheckedNetwork(["localhost"])
        network.deadline = time.monotonic() - 1
        with pytest.raises(httpcore2.ReadTimeout):
            fetch_status(network, site.url)
        assert site.asked == []
