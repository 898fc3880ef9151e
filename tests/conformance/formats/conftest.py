"""Makes `format_cases` importable for the tests of this folder."""
