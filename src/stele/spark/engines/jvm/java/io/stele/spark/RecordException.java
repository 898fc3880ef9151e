package io.stele.spark;

/** The record cannot be decoded; {@code at} is where in the frame the value at fault begins. Carries no stack trace. */
final class RecordException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  final transient ErrorCode code;
  final int at;

  RecordException(ErrorCode code, int at) {
    super(code.name(), null, false, false);
    this.code = code;
    this.at = at;
  }
}
