"""Makes the helper modules of this folder importable."""
