package io.stele.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;

/**
 * Why a record could not be decoded. Names and numbers are those of {@code error_codes.py}, which a test compares; the
 * English sentences come from {@code error_messages.py} and are put into the jar when it is built.
 */
enum ErrorCode {
  NOT_FRAMED(1),
  UNKNOWN_SCHEMA_ID(2),
  UNUSABLE_SCHEMA(3),
  TRUNCATED(10),
  BAD_VARINT(11),
  INT_RANGE(12),
  BAD_LENGTH(13),
  BAD_BOOLEAN(14),
  BAD_UTF8(15),
  BAD_SYMBOL(16),
  UNREADABLE_SYMBOL(17),
  BAD_BRANCH(18),
  UNREADABLE_BRANCH(19),
  BAD_BLOCK(20),
  TOO_MANY_ITEMS(21),
  EMPTY_DECIMAL(22),
  DECIMAL_RANGE(23),
  OUT_OF_RANGE(24),
  TRAILING(25),
  TOO_DEEP(26),
  ENDLESS(27);

  private static final String ID = "{id}";

  final int number;

  ErrorCode(int number) {
    this.number = number;
  }

  /** The code with this number. */
  static ErrorCode of(int number) {
    for (ErrorCode code : values()) {
      if (code.number == number) {
        return code;
      }
    }
    throw new IllegalArgumentException("there is no error code " + number);
  }

  /** Whether the sentence has the record's id in it. */
  boolean namesSchemaId() {
    return message().contains(ID);
  }

  /** The sentence for people; the detail is null for codes that need none. */
  String describe(Integer schemaId, String detail) {
    String sentence = message().replace("{label}", "schema id").replace(ID, String.valueOf(schemaId));
    return detail == null ? sentence : sentence.replace("{detail}", detail);
  }

  private String message() {
    return Messages.ALL.required(name()).textValue();
  }

  private static final class Messages {
    static final JsonNode ALL = read();

    private static JsonNode read() {
      try (InputStream in = ErrorCode.class.getResourceAsStream("error_messages.json")) {
        return new ObjectMapper().readTree(in);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
