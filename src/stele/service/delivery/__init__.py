"""Delivery of events to subscribers: where they go, how far each subscriber is, and which node sends."""
