"""Delivery of events to subscribers: sinks, the progress of each subscriber, and the choice of the node that sends."""
