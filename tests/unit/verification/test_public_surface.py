"""The names of the library, and the example in its documentation."""

import doctest

import verification


def test_the_librarys_example_works() -> None:
    result = doctest.testmod(verification)
    assert result.attempted > 0
    assert result.failed == 0


def test_every_public_name_is_there() -> None:
    assert verification.__all__ == sorted(verification.__all__)
    assert all(hasattr(verification, name) for name in verification.__all__)
