"""The domain logic of a registry: pure, without clock, input or output."""
