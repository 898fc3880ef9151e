"""Operations that take several steps."""
