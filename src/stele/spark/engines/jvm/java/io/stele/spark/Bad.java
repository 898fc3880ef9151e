package io.stele.spark;

/** The record cannot be decoded; {@code at} is where in the frame the value at fault begins. Carries no stack trace. */
final class Bad extends RuntimeException {
  private static final long serialVersionUID = 1L;

  final transient Reason reason;
  final int at;

  Bad(Reason reason, int at) {
    super(reason.name(), null, false, false);
    this.reason = reason;
    this.at = at;
  }
}
