"""The engine inside Spark's JVM: programs compiled here, run by a small jar of our own on Spark's function catalog."""
