"""Which certificates of servers are good, by the same rules on every Python."""

from __future__ import annotations

import ssl


def unify_verification(context: ssl.SSLContext) -> ssl.SSLContext:
    """Make a context judge certificates as Python 3.11 does, and return it.

    From 3.13 on Python refuses authorities without the extension `keyUsage`, which private ones often lack, and takes
    an intermediate authority for the root.
    """
    context.verify_flags &= ~(ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
    return context
