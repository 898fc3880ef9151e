"""The columnar machine: schemas become an integer program, a numba kernel runs it over all records of a batch."""
