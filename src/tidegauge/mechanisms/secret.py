"""Secrets of a store that are no noise: they come through the same door."""

from __future__ import annotations

from tidegauge.noise.randomness import fresh_key, secret

__all__ = ["noise_key", "store_secret"]


def store_secret(purpose: str) -> bytes:
    """Return 32 bytes that nobody else has, fresh from the operating system.

    Args:
        purpose: What they are for; no two purposes share bytes.

    Examples:
        >>> store_secret("unit ids") == store_secret("unit ids")
        False
    """
    return secret("tidegauge store 1", purpose)


def noise_key() -> bytes:
    """Return the key of the noise of one opening, 32 bytes: stored before the first draw.

    See :class:`~tidegauge.mechanisms.finder.Finder`. It is as private as the data.

    Examples:
        >>> noise_key() == noise_key()
        False
    """
    return fresh_key()
