"""What a registry is: pure, without clock, input or output."""
