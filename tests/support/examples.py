"""Number of generated examples that a property test tries: few in everyday runs, more in long ones.

`HYPOTHESIS_PROFILE` chooses: `everyday` (the default) draws the same fifth of the examples in every run, so that a
failure means that the code changed; `long` draws the same full number; `deep` draws many new ones.
"""

from __future__ import annotations

import os
from typing import Final

from hypothesis import HealthCheck, Phase, settings

PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "everyday")
_SHARES: Final = {"everyday": 1 / 5, "long": 1.0, "deep": 15.0}
_DEFAULT: Final = 60


def scale_examples(full: int) -> int:
    """Return the number of examples, or of seconds to draw them, in the chosen profile for this full number.

    At least 5.
    """
    return max(5, round(full * _SHARES[PROFILE]))


def load_profile() -> None:
    """Make the chosen profile the default for tests without settings of their own."""
    settings.register_profile(
        PROFILE,
        max_examples=scale_examples(_DEFAULT),
        deadline=None,
        derandomize=PROFILE != "deep",
        phases=tuple(
            phase for phase in Phase if phase is not Phase.explain
        ),  # explaining traces every line, which takes minutes
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    settings.load_profile(PROFILE)
