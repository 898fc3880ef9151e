"""Zstandard: the module of the standard library, or its backport to Python before 3.14."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, ZstdCompressor, ZstdError, ZstdFile, compress, decompress
else:
    from backports.zstd import CompressionParameter, ZstdCompressor, ZstdError, ZstdFile, compress, decompress

__all__ = ["CompressionParameter", "ZstdCompressor", "ZstdError", "ZstdFile", "compress", "decompress"]
